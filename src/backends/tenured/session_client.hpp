#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/rpc/channel_connector.hpp"
#include "backends/tenured/holder_queries.hpp"
#include "backends/tenured/known_holds.hpp"
#include "backends/tenured/watches.hpp"
#include "grpc/channel.hpp"
#include "tenure/v1/session.pb.h"

namespace tenure::backends::tenured {

/// Operation in flight and its completion callback.
struct PendingCall {
  using Done = std::variant<std::monostate, Backend::Done<void>, Backend::Done<Granted>,
                            Backend::Done<Renewed>>;

  v1::Operation operation{};
  Done done{};
  std::size_t queue_position = 0;
  /// For an abandon: the wait was already completed with `cancelled`, so a late grant must be
  /// released.
  bool is_detached = false;
  /// For an acquire: the server has queued it, so no immediate reply is due.
  bool is_queued = false;
};
/// Unique owner; a call is passed on several times and is too large to move each time.
using PendingCallPtr = std::unique_ptr<PendingCall>;

/// Session client: sends calls to the leader over one Session stream and completes them.
///
/// When the connection is lost or another member leads, pending calls are sent again on the next
/// stream, in their order and with their request ids. The server returns the previous outcome or
/// finds the old position in the wait queue, so every call is applied exactly once.
///
/// Not thread safe: all calls run on the event loop's thread.
class SessionClient : public std::enable_shared_from_this<SessionClient> {
 public:
  SessionClient(boost::asio::io_context& loop, Servers servers, std::string client);

  /// Connects. `first` is called once: with success when the first session is established, or with
  /// the last error when every server failed or `timeout` has passed.
  void start(std::chrono::milliseconds timeout, std::move_only_function<void(Result<void>)> first);
  /// Observer of losses and connection changes from now on.
  void set_listener(Listener& listener);
  /// Sends the calls in their order, now or after the next connect.
  void submit(std::vector<PendingCallPtr> calls);
  void abandon(LeaseId lease, RequestId request);
  void watch(WatchId id, WatchRequest request, Backend::Sink sink, std::function<void()> begun);
  void unwatch(WatchId id) { watches_.remove(id); }
  void holders(std::string name, Backend::Done<std::vector<Holder>> done) {
    queries_.add(std::move(name), std::move(done));
  }
  /// Graceful shutdown: waits fail with `unavailable` at once, other calls may complete until
  /// `timeout`. Then calls `done`.
  void stop(std::chrono::milliseconds timeout, std::function<void()> done);
  /// Fails every pending call with `unavailable` at once.
  void cancel();

 private:
  using Id = std::uint64_t;
  class Stream;

  void begin_health_check(const std::shared_ptr<grpc::Channel>& channel);
  void request_health(const std::shared_ptr<grpc::Channel>& channel);
  /// Handles a server that responds but does not lead: follows its redirect or retries.
  void handle_not_leader(const std::shared_ptr<grpc::Channel>& channel, const grpc::Status& status);
  void stream_ended(const grpc::Status& status);
  /// Handles a server that stopped responding.
  void connection_broken(const Error& why);
  void begin_session(const std::shared_ptr<grpc::Channel>& channel);
  void disconnected(const Error& why);
  /// Fails all pending calls: a responding server rejects this client, so a retry would not help.
  void reject_all(const Error& why);
  /// Reports the failure to open() after every server was tried.
  void connect_failed(const Error& why);
  void schedule_liveness_check();
  /// Silence after which the server is pinged, for the calls that are pending.
  [[nodiscard]] grpc::Http2Connection::KeepAlive keep_alive() const;
  void observe_ttl(std::chrono::milliseconds ttl);

  void send_all(const std::vector<Id>& ids);
  void received(const v1::SessionResponse& response);
  void handle_outcome(const v1::Outcome& outcome);
  void complete(PendingCall& call, const v1::Outcome& outcome);
  /// Reports a lease that a renewal found ended.
  void lease_lost(std::uint64_t lease);
  void complete_renewal(PendingCall& call, const v1::Renewed& renewed);
  /// After a restore from a backup: reports the holds of these leases to the cluster.
  void confirm_holds(const v1::Renewed& renewed);
  static void fail_with(PendingCall& call, const Error& error);
  void complete_abandon(const PendingCall& abandon, const v1::Outcome& outcome);
  /// Completes the wait of `abandon` with `cancelled` without waiting for a reply.
  void cancel_wait(PendingCall& abandon);
  void cancel_abandoned_waits();
  [[nodiscard]] PendingCallPtr take(Id id);
  void resubscribe_leases();
  void fail_waits();
  void end_if_idle();
  void end();

  boost::asio::io_context& loop_;
  std::string client_;
  std::shared_ptr<ChannelConnector> connector_;
  std::shared_ptr<grpc::Channel> channel_;  ///< Current channel; null: not connected.
  std::shared_ptr<Stream> stream_;  ///< Session stream on the channel; null: not established.
  std::chrono::milliseconds health_check_timeout_;
  boost::asio::steady_timer health_check_timer_;
  std::size_t health_checks_ = 0;  ///< Health checks sent on this connection.
  boost::asio::steady_timer liveness_timer_;
  grpc::Http2Connection::Clock::time_point last_liveness_check_{};
  boost::asio::steady_timer shutdown_timer_;
  Watches watches_;
  HolderQueries queries_;
  Listener* listener_ = nullptr;
  std::size_t server_count_;  ///< Number of servers in the URL.
  std::move_only_function<void(Result<void>)> on_first_connection_;
  std::size_t first_attempts_left_;
  boost::asio::steady_timer connect_timer_;
  Error last_failure_{.code = Errc::unavailable, .detail = "no server responds"};
  std::function<void()> stopped_;

  bool has_unknown_outcome_ = false;  ///< A reply was `unavailable`: the outcome is unknown.
  /// Error of the last server that rejected this client. Calls fail with it until the next
  /// connection.
  std::optional<Error> rejection_;

  Id last_id_ = 0;
  absl::btree_map<Id, PendingCallPtr> pending_;  ///< Calls without a reply, in request order.
  absl::flat_hash_map<RequestKey, Id> waits_;
  std::size_t queued_count_ = 0;  ///< Pending calls that wait in a queue at the server.
  KnownHolds holds_;
  /// Leases of this client that are alive, as far as it knows.
  absl::flat_hash_set<std::uint64_t> leases_;
  /// Shortest TTL of those and of recent leases; 0: none.
  std::chrono::milliseconds shortest_ttl_{0};
};

}  // namespace tenure::backends::tenured
