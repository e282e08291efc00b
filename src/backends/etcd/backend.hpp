#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/etcd/connection.hpp"
#include "backends/etcd/key_watches.hpp"
#include "backends/etcd/leases.hpp"
#include "backends/etcd/locks.hpp"
#include "backends/etcd/txn_batcher.hpp"
#include "backends/etcd/url.hpp"
#include "backends/locks_backend.hpp"
#include "backends/net/loop_backend.hpp"

namespace tenure::backends::etcd {

/// Backend for etcd:// and etcds://: one connection to one member carries all requests, whatever
/// the number of waits.
///
/// Thread safe, as Backend requires: calls are posted to the event loop, which owns everything
/// below.
class EtcdBackend final : public LocksBackend<Locks, LoopBackend> {
 public:
  /// Connects. Returns when a member responds; otherwise the reason why none did within `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<EtcdBackend>> open(const Address& address,
                                                                 std::chrono::milliseconds timeout);
  explicit EtcdBackend(const Address& address);
  EtcdBackend(const EtcdBackend&) = delete;
  EtcdBackend& operator=(const EtcdBackend&) = delete;
  ~EtcdBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  void start(Listener& listener) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  /// Restarts leases, watches and transactions on a new connection.
  void connected();
  /// Stops them until the next connection.
  void disconnected(const Error& why);
  /// Fails what waits for a connection, because the servers reject this client.
  void rejected(const Error& why);
  /// Starts the shutdown: fails waits, revokes leases, starts the timeout.
  void begin_shutdown();
  /// Ends the shutdown once nothing is in flight.
  void shut_down_if_idle();

  const std::chrono::milliseconds shutdown_timeout_;
  Listener* listener_ = nullptr;
  /// Result of the first attempt to connect.
  Result<void> first_attempt_;
  sys::WaitSlot first_attempt_done_;
  sys::WaitSlot shutdown_done_;
  bool is_shutting_down_ = false;

  // Used on the event loop only:
  boost::asio::steady_timer shutdown_timer_;
  std::shared_ptr<Connection> connection_;
  TxnBatcher batcher_;
  KeyWatches watches_;
  Leases leases_;
  Locks locks_;
};

}  // namespace tenure::backends::etcd
