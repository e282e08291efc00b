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
#include "backends/rpc/message_stream.hpp"
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
  /// For a change of the TTL.
  LeaseTracking tracking = LeaseTracking::kept;
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
  void submit(PendingCallPtr call);
  /// Cancels a pending acquire; see Backend::abandon.
  void abandon(LeaseId lease, RequestId request);
  /// Starts a watch; `begun` runs when the server has registered it or it has failed.
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

  /// Checks whether the server of a new channel leads.
  void begin_health_check(const std::shared_ptr<grpc::Channel>& channel);
  /// Sends one health check.
  void request_health(const std::shared_ptr<grpc::Channel>& channel);
  /// Handles a server that responds but does not lead: follows its redirect or retries.
  void handle_not_leader(const std::shared_ptr<grpc::Channel>& channel, const grpc::Status& status);
  /// Handles the end of the Session stream: follows a redirect, or reconnects.
  void stream_ended(const grpc::Status& status);
  /// Handles a server that stopped responding.
  void connection_broken(const Error& why);
  /// Opens the Session stream, resends pending calls and resubscribes leases.
  void begin_session(const std::shared_ptr<grpc::Channel>& channel);
  /// Drops the connection and starts the next attempt.
  void disconnected(const Error& why);
  /// Fails all pending calls: a responding server rejects this client, so a retry would not help.
  void reject_all(const Error& why);
  /// Reports the failure to open() after every server was tried.
  void connect_failed(const Error& why);
  /// Starts the timer of the next liveness check.
  void schedule_liveness_check();
  /// Silence after which the server is pinged, for the calls that are pending.
  [[nodiscard]] grpc::Http2Connection::KeepAlive keep_alive() const;
  /// Tracks the shortest TTL, which determines the ping interval.
  void observe_ttl(std::chrono::milliseconds ttl);

  /// Sends pending calls in batches below the message limit.
  void send_all(const std::vector<Id>& ids);
  /// Handles one message of the server.
  void received(const v1::SessionResponse& response);
  /// Matches an outcome to its call.
  void handle_outcome(const v1::Outcome& outcome);
  /// Calls the callback of a call.
  void complete(PendingCall& call, const v1::Outcome& outcome);
  /// Reports a lease that a renewal found ended.
  void lease_lost(std::uint64_t lease);
  /// Neither renews the lease on the next stream nor confirms its holds.
  void untrack(std::uint64_t lease);
  /// Reports which leases are alive; starts confirmation after a restore.
  void complete_renewal(PendingCall& call, const v1::Renewed& renewed);
  /// After a restore from a backup: reports the holds of these leases to the cluster.
  void confirm_holds(const v1::Renewed& renewed);
  /// Calls the callback of a call with an error.
  static void fail_with(PendingCall& call, const Error& error);
  /// Completes the wait of an abandon, or releases a late grant.
  void complete_abandon(const PendingCall& abandon, const v1::Outcome& outcome);
  /// Completes the wait of `abandon` with `cancelled` without waiting for a reply.
  void cancel_wait(PendingCall& abandon);
  /// Without a connection: completes all waits whose abandon is pending.
  void cancel_abandoned_waits();
  /// Removes a call from the tables. REQUIRES: it is pending.
  [[nodiscard]] PendingCallPtr take(Id id);
  /// Renews all leases on a new stream, because losses are reported per stream.
  void resubscribe_leases();
  /// Fails waits, watches and queries at shutdown.
  void fail_waits();
  /// Ends the shutdown once no call is pending.
  void end_if_idle();
  /// Closes the connection and completes the shutdown.
  void end();

  /// Event loop on which all calls run.
  boost::asio::io_context& loop_;
  /// Name of this client, sent at the begin of each session.
  std::string client_;
  std::shared_ptr<ChannelConnector> connector_;
  /// Current channel; null: not connected.
  std::shared_ptr<grpc::Channel> channel_;
  /// Session stream on the channel; null: not established.
  std::shared_ptr<MessageStream<v1::SessionResponse>> stream_;
  /// Time for one health check; shorter with several servers.
  std::chrono::milliseconds health_check_timeout_;
  boost::asio::steady_timer health_check_timer_;
  /// Health checks sent on this connection.
  std::size_t health_checks_ = 0;
  boost::asio::steady_timer liveness_timer_;
  grpc::Http2Connection::Clock::time_point last_liveness_check_{};
  boost::asio::steady_timer shutdown_timer_;
  Watches watches_;
  HolderQueries queries_;
  /// Observer of losses; null before start() and after the shutdown.
  Listener* listener_ = nullptr;
  /// Number of servers in the URL.
  std::size_t server_count_;
  /// Callback of start(); empty once it was called.
  std::move_only_function<void(Result<void>)> on_first_connection_;
  /// Attempts to connect after which start() fails.
  std::size_t first_attempts_left_;
  boost::asio::steady_timer connect_timer_;
  /// Error of the last attempt, which start() reports after its timeout.
  Error last_failure_{.code = Errc::unavailable, .detail = "no server responds"};
  /// Callback of stop(); set from then on.
  std::function<void()> stopped_;

  /// A reply was `unavailable`: the outcome is unknown.
  bool has_unknown_outcome_ = false;
  /// Error of the last server that rejected this client. Calls fail with it until the next
  /// connection.
  std::optional<Error> rejection_;

  /// Id of the newest call. Ids ascend, so `pending_` is in request order.
  Id last_id_ = 0;
  /// Calls without a reply, in request order.
  absl::btree_map<Id, PendingCallPtr> pending_;
  /// Acquires without an outcome, by request.
  absl::flat_hash_map<RequestKey, Id> waits_;
  /// Pending calls that wait in a queue at the server.
  std::size_t queued_count_ = 0;
  /// Holds to be confirmed after a restore.
  KnownHolds holds_;
  /// Leases of this client that are alive, as far as it knows.
  absl::flat_hash_set<std::uint64_t> leases_;
  /// Shortest TTL of those and of recent leases; 0: none.
  std::chrono::milliseconds shortest_ttl_{0};
};

}  // namespace tenure::backends::tenured
