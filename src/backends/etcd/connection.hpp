#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/etcd/errors.hpp"
#include "backends/etcd/etcd.pb.h"
#include "backends/etcd/url.hpp"
#include "backends/rpc/channel_connector.hpp"
#include "grpc/channel.hpp"

namespace tenure::backends::etcd {

/// Connection to one member of an etcd cluster. Any member serves all requests unless it has no
/// leader, so one is enough.
///
/// A handshake authenticates, checks version and cluster id, and reads a key to verify that a
/// majority responds. When the member fails, the connection moves to the next one. It knows nothing
/// about locks.
///
/// Not thread safe: all calls run on the event loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Events for the owner. They run on the event loop.
  struct Callbacks {
    /// Calls may begin; all earlier calls have ended.
    std::function<void()> connected;
    /// No calls until `connected` runs again.
    std::function<void(const Error& why)> disconnected;
    /// A responding member rejects this client, so a retry would not help; the connection retries
    /// nevertheless.
    std::function<void(const Error& why)> rejected;
    /// Every call has its reply.
    std::function<void()> idle;
    /// Shortest TTL of the leases that depend on this connection; 0: none.
    std::function<std::chrono::milliseconds()> shortest_ttl;
  };
  using FirstConnection = std::move_only_function<void(Result<void>)>;

  Connection(boost::asio::io_context& loop, Address address, Callbacks calls);

  /// Connects. `first` is called once: with success after the first handshake, or with the last
  /// error when every member failed or `timeout` has passed.
  void start(std::chrono::milliseconds timeout, FirstConnection first);
  /// Closes the connection; no callback runs afterwards.
  void stop();

  [[nodiscard]] bool is_up() const { return is_up_ && !channel_->is_closed(); }
  /// Address of the member, for errors. REQUIRES: it was connected before.
  [[nodiscard]] const std::string& server() const { return server_; }

  /// Unary call. REQUIRES: is_up().
  template <class Response>
  void call(const std::string& path, const google::protobuf::MessageLite& request,
            typename grpc::UnaryClientCall<Response>::Done done) {
    ++pending_calls_;
    ++calls_sent_;
    grpc::UnaryClientCall<Response>::start(
        *channel_, path, request,
        [self = shared_from_this(), done = std::move(done)](const grpc::Status& status,
                                                            Response response) mutable {
          --self->pending_calls_;
          if (status.ok()) {
            self->connector_->mark_healthy();
          }
          done(status, std::move(response));
          if (self->pending_calls_ == 0) {
            self->callbacks_.idle();
          }
        });
  }
  /// Opens a stream. REQUIRES: is_up().
  void begin(const std::string& path, const std::shared_ptr<grpc::ClientCall>& stream) {
    channel_->begin(path, stream);
  }
  /// Applies the recovery of a failure: moves to the next member, or authenticates again. No effect
  /// for Recovery::none.
  void recover(const Failure& failure);

  /// Number of calls so far.
  [[nodiscard]] std::uint64_t calls_sent() const noexcept { return calls_sent_; }

 private:
  /// Starts the handshake on a new channel: authenticate, check status, check store.
  void begin_handshake(const std::shared_ptr<grpc::Channel>& channel);
  /// Requests an authentication token for user and password.
  void authenticate();
  /// Checks version, cluster id and role of the member.
  void check_status();
  /// Checks that the member serves linearizable reads.
  void check_store();
  /// Returns whether the reply belongs to the current channel and is a success; disconnects on
  /// failure.
  [[nodiscard]] bool is_current_success(const std::shared_ptr<grpc::Channel>& channel,
                                        const grpc::Status& status);
  /// Reports the connection as usable.
  void complete_handshake();
  /// Closes the connection to this member and connects to the next one.
  void disconnect(const Error& why);
  /// Counts a failed attempt of the first round.
  void connect_failed(const Error& why);
  /// Starts the timer of the next liveness check.
  void schedule_liveness_check();
  /// Ping interval and pong timeout for the current load.
  [[nodiscard]] grpc::Http2Connection::KeepAlive keep_alive() const;

  Address address_;
  Callbacks callbacks_;
  std::shared_ptr<ChannelConnector> connector_;
  /// Current channel; null: not connected.
  std::shared_ptr<grpc::Channel> channel_;
  std::string server_;
  /// Authentication token of etcd; empty without a user.
  std::string token_;
  grpc::Http2Connection::Clock::time_point authenticated_at_{};
  bool is_up_ = false;
  bool is_stopped_ = false;
  /// Id of the cluster, from the first handshake.
  std::optional<std::uint64_t> cluster_;
  boost::asio::steady_timer handshake_timer_;
  boost::asio::steady_timer liveness_timer_;
  grpc::Http2Connection::Clock::time_point last_liveness_check_{};
  /// Calls without a reply.
  std::size_t pending_calls_ = 0;
  std::uint64_t calls_sent_ = 0;

  FirstConnection on_first_connection_;
  std::size_t first_attempts_left_;
  boost::asio::steady_timer connect_timer_;
  Error last_failure_{.code = Errc::unavailable, .detail = "no server responds"};
};

}  // namespace tenure::backends::etcd
