#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/etcd/address.hpp"
#include "backends/etcd/connection.hpp"
#include "backends/etcd/convoy.hpp"
#include "backends/etcd/key_watches.hpp"
#include "backends/etcd/leases.hpp"
#include "backends/etcd/locks.hpp"
#include "backends/net/loop_backend.hpp"

namespace tenure::backends::etcd {

/// Locks in an etcd cluster, over one connection to one of its members, whatever the number of
/// waits.
class EtcdBackend final : public LoopBackend {
 public:
  /// Returns when a member answers; else says why none did within `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<EtcdBackend>> open(
      const Address& address, std::chrono::milliseconds timeout);
  explicit EtcdBackend(const Address& address);
  ~EtcdBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] Limits limits() const noexcept override;
  void start(Listener& listener) override;

  void grant_lease(LeaseRequest request, Done<void> done) override;
  void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) override;
  void revoke_lease(LeaseId lease, Done<void> done) override;
  void acquire(AcquireRequest request, Done<Granted> done) override;
  void abandon(LeaseId lease, RequestId request) override;
  void release(ReleaseRequest request, Done<void> done) override;
  void downgrade(DowngradeRequest request, Done<void> done) override;
  void holders(std::string name, Done<std::vector<Holder>> done) override;

 private:
  void came_up();
  void went_down(const Error& why);
  void refused(const Error& why);
  void begin_end();
  void end_if_idle();

  const std::chrono::milliseconds farewell_;
  Listener* listener_ = nullptr;
  std::optional<Error> refusal_;  ///< Why nobody lets us in; none if that is not so.
  Result<void> first_;            ///< What became of the first attempt to connect.
  sys::WaitSlot opened_;
  sys::WaitSlot ended_;
  bool is_ending_ = false;

  // On its loop:
  boost::asio::steady_timer timeout_timer_;
  std::shared_ptr<Connection> connection_;
  Convoy convoy_;
  KeyWatches watches_;
  Leases leases_;
  Locks locks_;
};

}  // namespace tenure::backends::etcd
