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

#include "backends/redis/errand.hpp"
#include "backends/redis/line.hpp"
#include "backends/redis/scripts.hpp"

namespace tenure::backends::redis {

/// Command pipeline to one server over one connection. Commands are sent and answered in the order
/// of run(). After a reconnect all unanswered commands are sent again in that order, so every
/// script tolerates a repeated request. Loads the scripts again when the server has lost them
/// (NOSCRIPT). Runs on the loop's thread.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  struct Calls {
    /// Connected or reconnected; unanswered commands have been sent again.
    std::function<void()> ready;
    std::function<void(const Error&)> lost;     ///< Connection lost, or could not be made.
    std::function<void()> idle;                 ///< No command is unanswered.
    std::function<void(std::string)> doubtful;  ///< Warning about the server's configuration.
    /// The server redirects this command (MOVED, ASK) or cannot execute it at the moment; the text
    /// is its error reply. Not set: an error like any other.
    std::function<void(Errand, std::string_view)> astray{};
  };

  /// `scripts`: those that commands refer to. REQUIRES: they outlive the pipeline.
  Pipeline(boost::asio::io_context& loop, const Address& address, Calls calls,
           std::span<const ScriptText> scripts = all_scripts());

  void start();
  [[nodiscard]] bool is_ready() const noexcept { return line_->is_ready(); }
  [[nodiscard]] bool is_idle() const noexcept { return open_.empty() && noscript_.empty(); }
  [[nodiscard]] const std::string& where() const noexcept { return line_->where(); }

  /// Queues a command; it is sent by the next flush(), or after the replies that are being
  /// dispatched.
  void run(Errand&& errand);
  void flush() { line_->flush(); }
  /// Sends PING if the connection is idle, because only an unanswered command reveals a dead
  /// connection.
  void ping_if_idle();
  /// Reconnects, unless the connection is already to this endpoint.
  void move_to(const Endpoint& endpoint) { line_->move_to(endpoint); }
  /// Closes the connection; returns the unanswered commands in order.
  [[nodiscard]] std::vector<Errand> retire();
  /// Closes the connection; all unanswered commands fail with this error.
  void stop(const Error& why);

 private:
  void ready();
  void lost(const Error& why);
  void begin_grace(const Error& why);
  void reconnect(const Error& why);
  void replied(const Reply& reply);
  void answer(Errand errand, const Reply& reply);
  void send_all();
  void forget_sent();
  void load_scripts();
  void fail_all(const Error& why, const std::function<bool(const Errand&)>& which = {});
  [[nodiscard]] std::vector<Step> handshake();

  Calls calls_;
  const std::span<const ScriptText> scripts_;
  const std::chrono::milliseconds grace_max_;
  boost::asio::steady_timer grace_;
  bool is_in_grace_ = false;
  bool is_lost_for_good_ = true;  ///< Disconnected for longer than the grace period.
  std::shared_ptr<Line> line_;
  std::deque<Errand> open_;             ///< Unanswered commands, in order.
  std::size_t sent_ = 0;                ///< Number of those at the front that have been sent.
  std::size_t script_replies_due_ = 0;  ///< Replies to SCRIPT LOAD, which arrive before theirs.
  std::vector<Errand> noscript_;        ///< Commands answered by NOSCRIPT, in order.
  bool is_stopped_ = false;
  /// Why the server refuses this client; commands fail by it until the server accepts it.
  std::optional<Error> refusal_;
};

}  // namespace tenure::backends::redis
