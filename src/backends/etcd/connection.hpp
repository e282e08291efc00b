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

#include "backends/etcd/address.hpp"
#include "backends/etcd/etcd.pb.h"
#include "backends/etcd/faults.hpp"
#include "backends/rpc/dialer.hpp"
#include "grpc/channel.hpp"

namespace tenure::backends::etcd {

/// The way to one member of the cluster that answers, whichever it is: any of them takes all
/// requests, unless it has no leader. Finds out who we are to it and whether it will do, notices
/// that it is gone, and goes to the next one. Knows nothing of locks. All on the loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Calls {
    std::function<void()> up;  ///< Calls may begin. What was under way before has ended.
    std::function<void(const Error& why)> down;  ///< No more, until up() again.
    /// By a member that answers: to ask again would not help. It is tried again all the same.
    std::function<void(const Error& why)> refused;
    std::function<void()> idle;  ///< No question is without an answer.
    /// Whether anything but calls depends on it, such as waits and leases, and the shortest of
    /// those; 0: none.
    std::function<std::chrono::milliseconds()> shortest_ttl;
  };
  using First = std::move_only_function<void(Result<void>)>;

  Connection(boost::asio::io_context& loop, Address address, Calls calls);

  /// `first` is told once: when it is up for the first time, or why it is not, when all members
  /// were tried in vain or `timeout` is over.
  void start(std::chrono::milliseconds timeout, First first);
  void stop();

  [[nodiscard]] bool is_up() const { return is_up_ && !channel_->is_gone(); }
  /// Of the member, for people. REQUIRES: it was up before.
  [[nodiscard]] const std::string& server() const { return server_; }

  /// One question, one answer. REQUIRES: is_up().
  template <class Response>
  void ask(const std::string& path, const google::protobuf::MessageLite& request,
           typename grpc::Question<Response>::Done done) {
    ++open_;
    ++asked_;
    grpc::Question<Response>::ask(*channel_, path, request,
                                  [self = shared_from_this(), done = std::move(done)](
                                      const grpc::Status& status, Response response) mutable {
                                    --self->open_;
                                    if (status.ok()) {
                                      self->dialer_->praise();
                                    }
                                    done(status, std::move(response));
                                    if (self->open_ == 0) {
                                      self->calls_.idle();
                                    }
                                  });
  }
  /// A stream. REQUIRES: is_up().
  void begin(const std::string& path, const std::shared_ptr<grpc::Exchange>& stream) {
    channel_->begin(path, stream);
  }
  /// What a verdict wants: goes to the next member, or says anew who we are. Nothing on give_up.
  void obey(const Verdict& verdict);

  /// Questions so far.
  [[nodiscard]] std::uint64_t asked() const noexcept { return asked_; }

 private:
  void inspect(const std::shared_ptr<grpc::Channel>& channel);
  void log_in();
  void look_at_status();
  void look_at_store();
  /// Tells whether the answer is one of the channel that is inspected, and good.
  [[nodiscard]] bool is_good(const std::shared_ptr<grpc::Channel>& channel,
                             const grpc::Status& status);
  void come_up();
  /// This member is no use, or gone.
  void leave(const Error& why);
  void first_failed(const Error& why);
  void check_soon();
  [[nodiscard]] grpc::Link::KeepAlive keep_alive() const;

  Address address_;
  Calls calls_;
  std::shared_ptr<Dialer> dialer_;
  std::shared_ptr<grpc::Channel> channel_;  ///< Null: none stands.
  std::string server_;
  std::string token_;  ///< What etcd calls us, if it asks for a password.
  grpc::Link::Clock::time_point logged_in_{};
  bool is_up_ = false;
  bool is_stopped_ = false;
  std::optional<std::uint64_t> cluster_;  ///< Which one it is.
  boost::asio::steady_timer inspection_;
  boost::asio::steady_timer check_;
  grpc::Link::Clock::time_point checked_{};
  std::size_t open_ = 0;  ///< Questions without an answer.
  std::uint64_t asked_ = 0;

  First first_;
  std::size_t first_tries_left_;
  boost::asio::steady_timer connect_timer_;
  Error last_failure_{.code = Errc::unavailable, .detail = "no server answers"};
};

}  // namespace tenure::backends::etcd
