#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "sys/mutex.hpp"

namespace tenure::test {

/// Decorator that simulates a network: while it is silent, nothing arrives and nothing returns;
/// while it is slow, grants are delayed and cancellations do not reach the service. It can also
/// lose changes of a TTL only.
class SilentBackend : public backends::Backend, private backends::Listener {
 public:
  /// Shared with the test.
  struct Network {
    std::atomic<bool> is_silent = false;
    std::atomic<bool> is_slow = false;
    std::atomic<bool> loses_ttl_changes = false;

    [[nodiscard]] std::size_t kept() {
      const sys::MutexGuard lock(mutex);
      return grants.size();
    }
    /// What was kept back arrives.
    void deliver() {
      std::vector<std::move_only_function<void()>> all;
      {
        const sys::MutexGuard lock(mutex);
        all = std::exchange(grants, {});
      }
      is_slow = false;
      for (auto& grant : all) {
        grant();
      }
    }

    sys::Mutex mutex;
    std::vector<std::move_only_function<void()>> grants TENURE_GUARDED_BY(mutex);
  };

  SilentBackend(std::unique_ptr<backends::Backend> inner, std::shared_ptr<Network> network)
      : network_(std::move(network)), inner_(std::move(inner)) {}
  SilentBackend(const SilentBackend&) = delete;
  SilentBackend& operator=(const SilentBackend&) = delete;
  ~SilentBackend() override {
    std::vector<std::move_only_function<void()>> swallowed;
    {
      const sys::MutexGuard lock(mutex_);
      swallowed = std::exchange(swallowed_, {});
    }
    for (auto& end : swallowed) {
      end();
    }
  }

  [[nodiscard]] backends::Capabilities capabilities() const noexcept override {
    return inner_->capabilities();
  }
  [[nodiscard]] backends::Limits limits() const noexcept override { return inner_->limits(); }
  void start(backends::Listener& listener) override {
    listener_ = &listener;
    inner_->start(*this);
  }

  void grant_lease(backends::LeaseRequest request, Done<void> done) override {
    if (!swallow(done)) {
      inner_->grant_lease(std::move(request), heard(std::move(done)));
    }
  }
  void renew_leases(std::vector<LeaseId> leases, Done<backends::Renewed> done) override {
    if (!swallow(done)) {
      inner_->renew_leases(std::move(leases), heard(std::move(done)));
    }
  }
  void set_ttl(backends::TtlRequest request, Done<void> done) override {
    if (network_->loses_ttl_changes) {
      keep(done);
    } else if (!swallow(done)) {
      inner_->set_ttl(request, heard(std::move(done)));
    }
  }
  void revoke_lease(LeaseId lease, Done<void> done) override {
    if (!swallow(done)) {
      inner_->revoke_lease(lease, heard(std::move(done)));
    }
  }
  void acquire(backends::AcquireRequest request, Done<backends::Granted> done) override {
    if (!swallow(done)) {
      inner_->acquire(std::move(request), kept_back(heard(std::move(done))));
    }
  }
  void abandon(LeaseId lease, backends::RequestId request) override {
    if (!network_->is_silent && !network_->is_slow) {
      inner_->abandon(lease, request);
    }
  }
  void release(backends::ReleaseRequest request, Done<void> done) override {
    if (!swallow(done)) {
      inner_->release(std::move(request), heard(std::move(done)));
    }
  }
  void downgrade(backends::DowngradeRequest request, Done<void> done) override {
    if (!swallow(done)) {
      inner_->downgrade(std::move(request), heard(std::move(done)));
    }
  }
  backends::WatchId watch(backends::WatchRequest request, Sink sink) override {
    return inner_->watch(std::move(request), std::move(sink));
  }
  void unwatch(backends::WatchId watch) override { inner_->unwatch(watch); }
  [[nodiscard]] sys::Parker& parker() noexcept override { return inner_->parker(); }
  void holders(std::string name, Done<std::vector<Holder>> done) override {
    if (!swallow(done)) {
      inner_->holders(std::move(name), heard(std::move(done)));
    }
  }

 private:
  template <class T>
  [[nodiscard]] bool swallow(Done<T>& done) {
    if (!network_->is_silent) {
      return false;
    }
    keep(done);
    return true;
  }
  /// Leaves the request without a reply until this backend is destroyed.
  template <class T>
  void keep(Done<T>& done) {
    const sys::MutexGuard lock(mutex_);
    swallowed_.push_back([done = std::move(done)]() mutable { done(fail(Errc::unavailable)); });
  }
  /// The answer, unless it is lost on its way.
  template <class T>
  [[nodiscard]] Done<T> heard(Done<T> done) {
    return [this, done = std::move(done)](Result<T> answer) mutable {
      if (!swallow(done)) {
        done(std::move(answer));
      }
    };
  }

  [[nodiscard]] Done<backends::Granted> kept_back(Done<backends::Granted> done) {
    return [network = network_, done = std::move(done)](Result<backends::Granted> answer) mutable {
      if (!network->is_slow) {
        done(std::move(answer));
        return;
      }
      const sys::MutexGuard lock(network->mutex);
      network->grants.push_back([done = std::move(done), answer = std::move(answer)]() mutable {
        done(std::move(answer));
      });
    };
  }

  void lease_lost(LeaseId lease) override {
    if (!network_->is_silent) {
      listener_->lease_lost(lease);
    }
  }
  void hold_force_released(LeaseId lease, backends::RequestId acquired) override {
    if (!network_->is_silent) {
      listener_->hold_force_released(lease, acquired);
    }
  }
  void connection_changed(bool is_connected, std::string_view detail) override {
    listener_->connection_changed(is_connected, detail);
  }

  std::shared_ptr<Network> network_;
  backends::Listener* listener_ = nullptr;
  sys::Mutex mutex_;
  std::vector<std::move_only_function<void()>> swallowed_ TENURE_GUARDED_BY(mutex_);
  std::unique_ptr<backends::Backend> inner_;  ///< Last: what it still answers goes to the rest.
};

}  // namespace tenure::test
