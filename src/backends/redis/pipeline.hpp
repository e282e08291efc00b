#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/redis/command.hpp"
#include "backends/redis/connection.hpp"
#include "backends/redis/scripts.hpp"

namespace tenure::backends::redis {

/// Command pipeline to one server over one connection. CommandEncoder are sent and answered in the
/// order of run(). After a reconnect all unanswered commands are sent again in that order, so every
/// script tolerates a repeated request. Loads the scripts again when the server has disconnected
/// them (NOSCRIPT). Runs on the loop's thread.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  struct Callbacks {
    /// Connected or reconnected; unanswered commands have been sent again.
    std::function<void()> ready;
    std::function<void(const Error&)>
        disconnected;                          ///< Connection disconnected, or could not be made.
    std::function<void()> idle;                ///< No command is unanswered.
    std::function<void(std::string)> warning;  ///< Warning about the server's configuration.
    /// The server redirects this command (MOVED, ASK) or cannot execute it at the moment; the text
    /// is its error reply. Not set: an error like any other.
    std::function<void(Command, std::string_view)> redirected{};
  };

  /// `scripts`: those that commands refer to. REQUIRES: they outlive the pipeline.
  Pipeline(boost::asio::io_context& loop, const ServerOptions& server, Callbacks callbacks,
           std::span<const ScriptText> scripts = all_scripts());

  void start();
  [[nodiscard]] bool is_ready() const noexcept { return connection_->is_ready(); }
  [[nodiscard]] bool is_idle() const noexcept { return unanswered_.empty() && noscript_.empty(); }
  [[nodiscard]] const std::string& where() const noexcept { return connection_->where(); }

  /// Queues a command; it is sent by the next flush(), or after the replies that are being
  /// dispatched.
  void run(Command&& command);
  void flush() { connection_->flush(); }
  /// Sends PING if the connection is idle, because only an unanswered command reveals a dead
  /// connection.
  void ping_if_idle();
  /// Reconnects, unless the connection is already to this endpoint.
  void move_to(const Endpoint& endpoint) { connection_->move_to(endpoint); }
  /// Closes the connection; returns the unanswered commands in order.
  [[nodiscard]] std::vector<Command> retire();
  /// Closes the connection; all unanswered commands fail with this error.
  void stop(const Error& why);

 private:
  void ready();
  void disconnected(const Error& why);
  void start_grace_period(const Error& why);
  void reconnect(const Error& why);
  void replied(const Reply& reply);
  void answer(Command command, const Reply& reply);
  void send_all();
  void forget_sent();
  void load_scripts();
  void fail_all(const Error& why, const std::function<bool(const Command&)>& which = {});
  [[nodiscard]] std::vector<HandshakeStep> handshake();

  Callbacks callbacks_;
  const std::span<const ScriptText> scripts_;
  const std::chrono::milliseconds grace_max_;
  boost::asio::steady_timer grace_;
  bool is_in_grace_ = false;
  bool is_disconnected_for_good_ = true;  ///< Disconnected for longer than the grace period.
  std::shared_ptr<Connection> connection_;
  std::deque<Command> unanswered_;      ///< Unanswered commands, in order.
  std::size_t sent_ = 0;                ///< Number of those at the front that have been sent.
  std::size_t script_replies_due_ = 0;  ///< Replies to SCRIPT LOAD, which arrive before theirs.
  std::vector<Command> noscript_;       ///< CommandEncoder answered by NOSCRIPT, in order.
  bool is_stopped_ = false;
  /// Why the server refuses this client; commands fail by it until the server accepts it.
  std::optional<Error> refusal_;
};

}  // namespace tenure::backends::redis
