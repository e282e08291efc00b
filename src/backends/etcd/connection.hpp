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

/// The way to one member of the cluster that answers, whichever it is: any of them takes all
/// requests, unless it has no leader. Finds out who we are to it and whether it will do, notices
/// that it is gone, and goes to the next one. Knows nothing of locks. All on the loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Callbacks {
    std::function<void()> connected;  ///< Calls may begin. What was under way before has ended.
    std::function<void(const Error& why)> disconnected;  ///< No more, until up() again.
    /// By a member that answers: to ask again would not help. It is tried again all the same.
    std::function<void(const Error& why)> rejected;
    std::function<void()> idle;  ///< No question is without an answer.
    /// Whether anything but calls depends on it, such as waits and leases, and the shortest of
    /// those; 0: none.
    std::function<std::chrono::milliseconds()> shortest_ttl;
  };
  using FirstConnection = std::move_only_function<void(Result<void>)>;

  Connection(boost::asio::io_context& loop, Address address, Callbacks calls);

  /// `first` is told once: when it is up for the first time, or why it is not, when all members
  /// were tried in vain or `timeout` is over.
  void start(std::chrono::milliseconds timeout, FirstConnection first);
  void stop();

  [[nodiscard]] bool is_up() const { return is_up_ && !channel_->is_closed(); }
  /// Of the member, for people. REQUIRES: it was up before.
  [[nodiscard]] const std::string& server() const { return server_; }

  /// One question, one answer. REQUIRES: is_up().
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
  /// A stream. REQUIRES: is_up().
  void begin(const std::string& path, const std::shared_ptr<grpc::ClientCall>& stream) {
    channel_->begin(path, stream);
  }
  /// What a verdict wants: goes to the next member, or says anew who we are. Nothing on give_up.
  void recover(const Failure& failure);

  /// Questions so far.
  [[nodiscard]] std::uint64_t calls_sent() const noexcept { return calls_sent_; }

 private:
  void begin_handshake(const std::shared_ptr<grpc::Channel>& channel);
  void authenticate();
  void check_status();
  void check_store();
  /// Tells whether the answer is one of the channel that is inspected, and good.
  [[nodiscard]] bool is_current_success(const std::shared_ptr<grpc::Channel>& channel,
                                        const grpc::Status& status);
  void complete_handshake();
  /// This member is no use, or gone.
  void disconnect(const Error& why);
  void connect_failed(const Error& why);
  void schedule_liveness_check();
  [[nodiscard]] grpc::Http2Connection::KeepAlive keep_alive() const;

  Address address_;
  Callbacks callbacks_;
  std::shared_ptr<ChannelConnector> connector_;
  std::shared_ptr<grpc::Channel> channel_;  ///< Null: none stands.
  std::string server_;
  std::string token_;  ///< What etcd calls us, if it asks for a password.
  grpc::Http2Connection::Clock::time_point authenticated_at_{};
  bool is_up_ = false;
  bool is_stopped_ = false;
  std::optional<std::uint64_t> cluster_;  ///< Which one it is.
  boost::asio::steady_timer handshake_timer_;
  boost::asio::steady_timer liveness_timer_;
  grpc::Http2Connection::Clock::time_point last_liveness_check_{};
  std::size_t pending_calls_ = 0;  ///< Questions without an answer.
  std::uint64_t calls_sent_ = 0;

  FirstConnection on_first_connection_;
  std::size_t first_attempts_left_;
  boost::asio::steady_timer connect_timer_;
  Error last_failure_{.code = Errc::unavailable, .detail = "no server responds"};
};

}  // namespace tenure::backends::etcd
