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

/// Command pipeline to one server over one connection. Sends commands without waiting for the
/// replies to earlier ones, and completes them in the order of run(). After a reconnect all
/// unanswered commands are sent again in that order, so every script tolerates a repeated request.
/// Loads the scripts again when the server has lost them (NOSCRIPT). Runs on the loop's thread.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  /// Events for the owner of the pipeline.
  struct Callbacks {
    /// Connected or reconnected; unanswered commands have been sent again.
    std::function<void()> ready;
    /// Connection lost, or could not be made.
    std::function<void(const Error&)> disconnected;
    /// No command is unanswered.
    std::function<void()> idle;
    /// Warning about the server's configuration.
    std::function<void(std::string)> warning;
    /// The server redirects this command (MOVED, ASK) or cannot execute it at the moment; the text
    /// is its error reply. Not set: an error like any other.
    std::function<void(Command, std::string_view)> redirected{};
  };

  /// `scripts`: those that commands refer to. REQUIRES: they outlive the pipeline.
  Pipeline(boost::asio::io_context& loop, const ServerOptions& server, Callbacks callbacks,
           std::span<const ScriptText> scripts = all_scripts());

  /// Connects in the background; Callbacks report the result.
  void start();
  /// Connected, and the scripts are loaded.
  [[nodiscard]] bool is_ready() const noexcept { return connection_->is_ready(); }
  /// No command is unanswered.
  [[nodiscard]] bool is_idle() const noexcept { return unanswered_.empty() && noscript_.empty(); }
  /// Endpoint for error messages.
  [[nodiscard]] const std::string& where() const noexcept { return connection_->where(); }

  /// Queues a command; it is sent by the next flush(), or after the replies that are being
  /// dispatched.
  void run(Command&& command);
  /// Sends the queued commands.
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
  /// Connected: sends all unanswered commands.
  void ready();
  /// Disconnected: fails the commands that must not be sent again.
  void disconnected(const Error& why);
  /// Starts the time for which commands with Retry::until_timeout are kept without a connection.
  void start_grace_period(const Error& why);
  /// Drops the connection after a transient error reply.
  void reconnect(const Error& why);
  /// Matches a reply to the oldest unanswered command.
  void replied(const Reply& reply);
  /// Completes a command with its reply.
  void answer(Command command, const Reply& reply);
  /// Sends the unanswered commands that have not been sent.
  void send_all();
  /// Marks all commands as not sent, because their replies cannot arrive any more.
  void forget_sent();
  /// Loads all scripts, and sends the commands that failed with NOSCRIPT again.
  void load_scripts();
  /// Fails the selected commands; null: all.
  void fail_all(const Error& why, const std::function<bool(const Command&)>& which = {});
  /// Handshake steps that load the scripts and check the eviction policy.
  [[nodiscard]] std::vector<HandshakeStep> handshake();

  /// Callbacks of the owner.
  Callbacks callbacks_;
  /// Scripts that commands refer to.
  const std::span<const ScriptText> scripts_;
  /// Length of the grace period: the request timeout.
  const std::chrono::milliseconds grace_max_;
  /// Timer of the grace period.
  boost::asio::steady_timer grace_;
  /// The grace period is running.
  bool is_in_grace_ = false;
  /// Disconnected for longer than the grace period.
  bool is_disconnected_for_good_ = true;
  /// Connection to the server.
  std::shared_ptr<Connection> connection_;
  /// Unanswered commands, in order.
  std::deque<Command> unanswered_;
  /// Number of those at the front that have been sent.
  std::size_t sent_ = 0;
  /// Number of replies to SCRIPT LOAD that arrive before the commands' replies.
  std::size_t script_replies_due_ = 0;
  /// Commands that failed with NOSCRIPT, in order.
  std::vector<Command> noscript_;
  /// stop() or retire() was called.
  bool is_stopped_ = false;
  /// Why the server refuses this client; commands fail with it until the server accepts the client.
  std::optional<Error> refusal_;
};

}  // namespace tenure::backends::redis
