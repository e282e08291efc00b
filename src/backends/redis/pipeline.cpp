#include "backends/redis/pipeline.hpp"

#include <iterator>
#include <string_view>
#include <utility>

#include "backends/redis/errors.hpp"

namespace tenure::backends::redis {
namespace {

/// Encoded SCRIPT LOAD.
std::string load_command(const ScriptText& script) {
  return encode_command({"SCRIPT", "LOAD", script.text});
}

/// Warning if the server may evict locks when its memory is full.
std::optional<std::string> eviction_in(std::string_view memory) {
  const auto policy = info_field(memory, "maxmemory_policy");
  const auto most = info_field(memory, "maxmemory");
  if (policy.empty() || policy == "noeviction" || most == "0") {
    return std::nullopt;
  }
  return "maxmemory-policy is " + std::string(policy) +
         ": the server may evict held locks when its memory is full; use noeviction";
}

}  // namespace

Pipeline::Pipeline(boost::asio::io_context& loop, const ServerOptions& server, Callbacks callbacks,
                   std::span<const ScriptText> scripts)
    : callbacks_(std::move(callbacks)),
      scripts_(scripts),
      grace_max_(server.timeout),
      grace_(loop) {
  connection_ = std::make_shared<Connection>(
      loop, server, handshake(),
      Connection::Callbacks{.ready = [this] { ready(); },
                            .replied = [this](const Reply& r) { replied(r); },
                            .failed = [this](const Error& e) { disconnected(e); }});
}

std::vector<HandshakeStep> Pipeline::handshake() {
  std::vector<HandshakeStep> steps;
  for (const auto& script : scripts_) {
    steps.push_back({.command = load_command(script), .check = {}});
  }
  steps.push_back(
      {.command = encode_command({"INFO", "memory"}), .check = [this](const Reply& reply) {
         // Without the permission for INFO there is no warning.
         if (const auto warning = eviction_in(reply.text)) {
           callbacks_.warning(connection_->where() + ": " + *warning);
         }
         return Result<void>();
       }});
  return steps;
}

void Pipeline::start() {
  is_disconnected_for_good_ = false;
  start_grace_period({.code = Errc::unavailable, .detail = where() + ": not connected yet"});
  connection_->connect();
}

void Pipeline::start_grace_period(const Error& why) {
  if (std::exchange(is_in_grace_, true)) {
    return;
  }
  grace_.expires_after(grace_max_);
  grace_.async_wait([this, why](const boost::system::error_code& error) {
    if (!error && !is_ready()) {
      is_in_grace_ = false;
      is_disconnected_for_good_ = true;
      fail_all(why, [](const Command& command) {
        return command.retry == Command::Retry::until_timeout;
      });
    }
  });
}

void Pipeline::ready() {
  refusal_.reset();
  is_disconnected_for_good_ = false;
  is_in_grace_ = false;
  grace_.cancel();
  send_all();
  callbacks_.ready();
  flush();
}

void Pipeline::disconnected(const Error& why) {
  forget_sent();
  const auto now = std::chrono::steady_clock::now();
  for (auto& command : unanswered_) {
    command.failing_since = command.failing_since.value_or(now);
  }
  fail_all(why, [](const Command& command) { return command.retry == Command::Retry::never; });
  if (why == Errc::unavailable) {
    if (!is_disconnected_for_good_) {
      start_grace_period(why);
    }
  } else {
    // The server is reachable and refuses this client, so a retry would not help.
    refusal_ = why;
    fail_all(why);
  }
  callbacks_.disconnected(why);
}

/// The server replies, but cannot execute commands at the moment. Another connection may lead to a
/// server that can. Commands with Retry::until_timeout are retried for the request timeout only.
void Pipeline::reconnect(const Error& why) {
  connection_->drop(why);
  const auto limit = std::chrono::steady_clock::now() - grace_max_;
  fail_all(why, [limit](const Command& command) {
    return command.retry == Command::Retry::until_timeout && command.failing_since <= limit;
  });
}

/// REQUIRES: not connected, so that no reply to a removed command can arrive.
void Pipeline::fail_all(const Error& why, const std::function<bool(const Command&)>& which) {
  std::vector<Command> failed;
  std::deque<Command> kept;
  for (auto& command : unanswered_) {
    if (!which || which(command)) {
      failed.push_back(std::move(command));
    } else {
      kept.push_back(std::move(command));
    }
  }
  unanswered_ = std::move(kept);
  for (auto& command : failed) {
    command.complete(std::unexpected(why));
  }
}

void Pipeline::ping_if_idle() {
  if (is_ready() && is_idle()) {
    run({.encoded = encode_command({"PING"}),
         .on_reply = [](const auto&) {},
         .retry = Command::Retry::never});
    flush();
  }
}

void Pipeline::stop(const Error& why) {
  for (auto& command : retire()) {
    command.complete(std::unexpected(why));
  }
}

std::vector<Command> Pipeline::retire() {
  is_stopped_ = true;
  grace_.cancel();
  connection_->stop();
  forget_sent();
  std::vector<Command> rest(std::move_iterator(unanswered_.begin()),
                            std::move_iterator(unanswered_.end()));
  unanswered_.clear();
  return rest;
}

void Pipeline::run(Command&& command) {
  if (is_stopped_ || refusal_) {
    command.complete(std::unexpected(
        refusal_ ? *refusal_
                 : Error{.code = Errc::unavailable, .detail = "the client is closing"}));
    return;
  }
  if (is_disconnected_for_good_ && command.retry != Command::Retry::always) {
    command.complete(fail(Errc::unavailable, where() + ": not connected at the moment"));
    return;
  }
  unanswered_.push_back(std::move(command));
  if (is_ready() && noscript_.empty()) {
    send_all();
  }
}

void Pipeline::send_all() {
  for (; sent_ < unanswered_.size(); ++sent_) {
    connection_->send(unanswered_[sent_].encoded);
  }
}

void Pipeline::forget_sent() {
  for (std::size_t at = 0; at < sent_; ++at) {
    unanswered_[at].was_sent = true;
  }
  sent_ = 0;
  script_replies_due_ = 0;
  unanswered_.insert(unanswered_.begin(), std::move_iterator(noscript_.begin()),
                     std::move_iterator(noscript_.end()));
  noscript_.clear();
}

void Pipeline::load_scripts() {
  forget_sent();
  for (const auto& script : scripts_) {
    ++script_replies_due_;
    connection_->send(load_command(script));
  }
  send_all();
}

void Pipeline::replied(const Reply& reply) {
  const bool is_error = reply.kind == Reply::Kind::error;
  const bool is_redirect = is_error && callbacks_.redirected && redis::is_redirect(reply.text);
  if (is_error && !is_redirect && is_transient(reply.text)) {
    reconnect({.code = Errc::unavailable, .detail = where() + ": " + reply.text});
    return;
  }
  if (script_replies_due_ > 0) {
    --script_replies_due_;
    return;
  }
  if (sent_ == 0) {
    connection_->drop({.code = Errc::unavailable, .detail = where() + ": reply without a command"});
    return;
  }
  --sent_;
  auto command = std::move(unanswered_.front());
  unanswered_.pop_front();
  if (is_error && reply.text.starts_with("NOSCRIPT")) {
    // The scripts were flushed. The commands in flight are likely to fail the same way; then all of
    // them are sent again, in order.
    noscript_.push_back(std::move(command));
  } else {
    answer(std::move(command), reply);
  }
  if (!noscript_.empty() && sent_ == 0 && is_ready()) {
    load_scripts();
  }
  if (is_idle()) {
    callbacks_.idle();
  }
}

void Pipeline::answer(Command command, const Reply& reply) {
  if (reply.kind != Reply::Kind::error) {
    command.complete(Command::Response{.reply = reply, .is_retry = command.was_sent});
  } else if (callbacks_.redirected && redis::is_redirect(reply.text)) {
    callbacks_.redirected(std::move(command), reply.text);
  } else {
    command.complete(std::unexpected(error_from(reply.text, where())));
  }
}

}  // namespace tenure::backends::redis
