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

/// One operation for the server, and whom to tell.
struct PendingCall {
  using Done = std::variant<std::monostate, Backend::Done<void>, Backend::Done<Granted>,
                            Backend::Done<Renewed>>;

  v1::Operation operation{};
  Done done{};
  std::size_t queue_position = 0;
  /// Of an abandon: its caller was told `cancelled` already, so a grant is nobody's.
  bool is_detached = false;
  /// Of an acquire: it is in the queue, so that no answer is due.
  bool is_queued = false;
};
/// Goes through several hands, and is too large to be moved each time.
using PendingCallPtr = std::unique_ptr<PendingCall>;

/// Carries errands to the leader and their outcomes back, over one Session stream. When the
/// connection is lost, or another member leads, what is not answered is sent again on the next
/// one, in its order and with its request ids, so the server answers what it answered before or
/// finds the old place in the queue. All on the loop's thread.
class SessionClient : public std::enable_shared_from_this<SessionClient> {
 public:
  SessionClient(boost::asio::io_context& loop, Servers servers, std::string client);

  /// Dials. `first` is told once: when the first connection stands, or why none does, when all
  /// servers were tried in vain or `timeout` is over.
  void start(std::chrono::milliseconds timeout, std::move_only_function<void(Result<void>)> first);
  /// Who is told of losses from now on.
  void set_listener(Listener& listener);
  /// Takes them on, in their order.
  void submit(std::vector<PendingCallPtr> calls);
  void abandon(LeaseId lease, RequestId request);
  void watch(WatchId id, WatchRequest request, Backend::Sink sink, std::function<void()> begun);
  void unwatch(WatchId id) { watches_.remove(id); }
  void holders(std::string name, Backend::Done<std::vector<Holder>> done) {
    queries_.add(std::move(name), std::move(done));
  }
  /// Waits end with `unavailable` now, the rest when it is answered or `timeout` is over. Then
  /// `done`.
  void stop(std::chrono::milliseconds timeout, std::function<void()> done);
  /// Everything ends with `unavailable` now.
  void cancel();

 private:
  using Id = std::uint64_t;
  class Stream;

  void begin_health_check(const std::shared_ptr<grpc::Channel>& channel);
  void request_health(const std::shared_ptr<grpc::Channel>& channel);
  /// It lives and does not lead.
  void handle_not_leader(const std::shared_ptr<grpc::Channel>& channel, const grpc::Status& status);
  void stream_ended(const grpc::Status& status);
  /// The server at the other end does not answer any more.
  void connection_broken(const Error& why);
  void begin_session(const std::shared_ptr<grpc::Channel>& channel);
  void disconnected(const Error& why);
  /// By a server that answers, so that asking again would not help: all that is open fails.
  void reject_all(const Error& why);
  /// Tells the opener, when no server is left to be tried.
  void connect_failed(const Error& why);
  void schedule_liveness_check();
  /// How long the server may be silent, for what we wait for at the moment.
  [[nodiscard]] grpc::Http2Connection::KeepAlive keep_alive() const;
  void observe_ttl(std::chrono::milliseconds ttl);

  void send_all(const std::vector<Id>& ids);
  void received(const v1::SessionResponse& response);
  void handle_outcome(const v1::Outcome& outcome);
  void complete(PendingCall& call, const v1::Outcome& outcome);
  /// By the answer to a renewal.
  void lease_lost(std::uint64_t lease);
  void renewal_handle_outcome(PendingCall& call, const v1::Renewed& renewed);
  /// The cluster was restored from a backup: tells it what is held under these leases.
  void confirm_holds(const v1::Renewed& renewed);
  static void fail_with(PendingCall& call, const Error& error);
  void abandon_handle_outcome(const PendingCall& abandon, const v1::Outcome& outcome);
  /// Its wait, without an answer; its caller hears `cancelled`.
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
  std::shared_ptr<grpc::Channel> channel_;  ///< Null: not connected.
  std::shared_ptr<Stream> stream_;          ///< On it.
  std::chrono::milliseconds health_check_timeout_;
  boost::asio::steady_timer health_check_timer_;
  std::size_t health_checks_ = 0;  ///< Of this connection.
  boost::asio::steady_timer liveness_timer_;
  grpc::Http2Connection::Clock::time_point last_liveness_check_{};
  boost::asio::steady_timer shutdown_timer_;
  Watches watches_;
  HolderQueries queries_;
  Listener* listener_ = nullptr;
  std::size_t server_count_;  ///< How many we were told of.
  std::move_only_function<void(Result<void>)> on_first_connection_;
  std::size_t first_attempts_left_;
  boost::asio::steady_timer connect_timer_;
  Error last_failure_{.code = Errc::unavailable, .detail = "no server answers"};
  std::function<void()> stopped_;

  bool has_unknown_outcome_ = false;  ///< Something was answered `unavailable`.
  /// Why the last server refused us; what is asked until there is another connection fails by it.
  std::optional<Error> rejection_;

  Id last_id_ = 0;
  absl::btree_map<Id, PendingCallPtr> pending_;  ///< Not answered, in their order.
  absl::flat_hash_map<RequestKey, Id> waits_;
  std::size_t queued_count_ = 0;  ///< Of open_, those that are in a queue.
  KnownHolds holds_;
  absl::flat_hash_set<std::uint64_t> leases_;  ///< Of ours that live, as far as we know.
  std::chrono::milliseconds shortest_ttl_{0};  ///< Of those, or of one that is gone; 0: none.
};

}  // namespace tenure::backends::tenured
