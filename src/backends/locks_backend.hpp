#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/backend.hpp"

namespace tenure::backends {

/// Backend that forwards each operation to the function of the same name of a `Locks` object, as a
/// job that `Base::post()` runs. An optional operation that `Locks` does not have is unsupported.
template <class Locks, class Base>
class LocksBackend : public Base {
 public:
  template <class T>
  using Done = Backend::Done<T>;

  void grant_lease(LeaseRequest request, Done<void> done) override {
    this->post([this, request = std::move(request), done = std::move(done)]() mutable {
      locks().grant_lease(request, std::move(done));
    });
  }
  void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) override {
    this->post([this, leases = std::move(leases), done = std::move(done)]() mutable {
      locks().renew(std::move(leases), std::move(done));
    });
  }
  void set_ttl(TtlRequest request, Done<void> done) override {
    if constexpr (requires(Locks& target) { target.set_ttl(request, std::move(done)); }) {
      this->post([this, request, done = std::move(done)]() mutable {
        locks().set_ttl(request, std::move(done));
      });
    } else {
      Base::set_ttl(request, std::move(done));
    }
  }
  void revoke_lease(LeaseId lease, Done<void> done) override {
    this->post([this, lease, done = std::move(done)]() mutable {
      locks().revoke(lease, std::move(done));
    });
  }
  void acquire(AcquireRequest request, Done<Granted> done) override {
    this->post([this, request = std::move(request), done = std::move(done)]() mutable {
      locks().acquire(std::move(request), std::move(done));
    });
  }
  void abandon(LeaseId lease, RequestId request) override {
    this->post([this, lease, request] { locks().abandon(lease, request); });
  }
  void release(ReleaseRequest request, Done<void> done) override {
    this->post([this, request = std::move(request), done = std::move(done)]() mutable {
      locks().release(std::move(request), std::move(done));
    });
  }
  void downgrade(DowngradeRequest request, Done<void> done) override {
    if constexpr (requires(Locks& target) { target.downgrade(request, std::move(done)); }) {
      this->post([this, request = std::move(request), done = std::move(done)]() mutable {
        locks().downgrade(request, std::move(done));
      });
    } else {
      Base::downgrade(std::move(request), std::move(done));
    }
  }
  void holders(std::string name, Done<std::vector<Holder>> done) override {
    this->post([this, name = std::move(name), done = std::move(done)]() mutable {
      locks().holders(name, std::move(done));
    });
  }

 protected:
  using Base::Base;
  /// Object that performs the operations.
  [[nodiscard]] virtual Locks& locks() noexcept = 0;
};

}  // namespace tenure::backends
