#include "backends/redis/pipeline.hpp"

#include <iterator>
#include <string_view>
#include <utility>

#include "backends/redis/faults.hpp"

namespace tenure::backends::redis {
namespace {

std::string load_command(const ScriptText& script) {
  return command_of({"SCRIPT", "LOAD", script.text});
}

/// Whether the server may throw locks away when its memory is full.
std::optional<std::string> eviction_in(std::string_view memory) {
  const auto policy = info_field(memory, "maxmemory_policy");
  const auto most = info_field(memory, "maxmemory");
  if (policy.empty() || policy == "noeviction" || most == "0") {
    return std::nullopt;
  }
  return "maxmemory-policy is " + std::string(policy) +
         ": when its memory is full it may evict locks that are held; noeviction does not";
}

}  // namespace

Pipeline::Pipeline(boost::asio::io_context& loop, const Address& address, Calls calls,
                   std::span<const ScriptText> scripts)
    : calls_(std::move(calls)), scripts_(scripts), grace_max_(address.timeout), grace_(loop) {
  line_ = std::make_shared<Line>(loop, address, handshake(),
                                 Line::Calls{.ready = [this] { ready(); },
                                             .replied = [this](const Reply& r) { replied(r); },
                                             .failed = [this](const Error& e) { lost(e); }});
}

std::vector<Step> Pipeline::handshake() {
  std::vector<Step> steps;
  for (const auto& script : scripts_) {
    steps.push_back({.command = load_command(script), .check = {}});
  }
  steps.push_back({.command = command_of({"INFO", "memory"}), .check = [this](const Reply& reply) {
                     // Without the right to INFO there is no warning.
                     if (const auto doubt = eviction_in(reply.text)) {
                       calls_.doubtful(line_->where() + ": " + *doubt);
                     }
                     return Result<void>();
                   }});
  return steps;
}

void Pipeline::start() {
  is_lost_for_good_ = false;
  begin_grace({.code = Errc::unavailable, .detail = where() + ": not connected yet"});
  line_->dial();
}

/// Commands with Loss::fail are kept for this long.
void Pipeline::begin_grace(const Error& why) {
  if (std::exchange(is_in_grace_, true)) {
    return;
  }
  grace_.expires_after(grace_max_);
  grace_.async_wait([this, why](const boost::system::error_code& error) {
    if (!error && !is_ready()) {
      is_in_grace_ = false;
      is_lost_for_good_ = true;
      fail_all(why, [](const Errand& errand) { return errand.loss == Errand::Loss::fail; });
    }
  });
}

void Pipeline::ready() {
  refusal_.reset();
  is_lost_for_good_ = false;
  is_in_grace_ = false;
  grace_.cancel();
  send_all();
  calls_.ready();
  flush();
}

void Pipeline::lost(const Error& why) {
  forget_sent();
  const auto now = std::chrono::steady_clock::now();
  for (auto& errand : open_) {
    errand.failing_since = errand.failing_since.value_or(now);
  }
  fail_all(why, [](const Errand& errand) { return errand.loss == Errand::Loss::once; });
  if (why == Errc::unavailable) {
    if (!is_lost_for_good_) {
      begin_grace(why);
    }
  } else {
    // The server answers and refuses this client, so a retry would not help.
    refusal_ = why;
    fail_all(why);
  }
  calls_.lost(why);
}

/// The server answers, but cannot execute commands at the moment. Another connection may lead to a
/// server that can. Commands with Loss::fail are retried for the request timeout only.
void Pipeline::reconnect(const Error& why) {
  line_->drop(why);
  const auto limit = std::chrono::steady_clock::now() - grace_max_;
  fail_all(why, [limit](const Errand& errand) {
    return errand.loss == Errand::Loss::fail && errand.failing_since <= limit;
  });
}

/// REQUIRES: not connected, so that no reply to a removed command can arrive.
void Pipeline::fail_all(const Error& why, const std::function<bool(const Errand&)>& which) {
  std::vector<Errand> failed;
  std::deque<Errand> kept;
  for (auto& errand : open_) {
    if (!which || which(errand)) {
      failed.push_back(std::move(errand));
    } else {
      kept.push_back(std::move(errand));
    }
  }
  open_ = std::move(kept);
  for (auto& errand : failed) {
    errand.tell(std::unexpected(why));
  }
}

void Pipeline::ping_if_idle() {
  if (is_ready() && is_idle()) {
    run({.command = command_of({"PING"}),
         .answered = [](const auto&) {},
         .loss = Errand::Loss::once});
    flush();
  }
}

void Pipeline::stop(const Error& why) {
  for (auto& errand : retire()) {
    errand.tell(std::unexpected(why));
  }
}

std::vector<Errand> Pipeline::retire() {
  is_stopped_ = true;
  grace_.cancel();
  line_->stop();
  forget_sent();
  std::vector<Errand> rest(std::move_iterator(open_.begin()), std::move_iterator(open_.end()));
  open_.clear();
  return rest;
}

void Pipeline::run(Errand&& errand) {
  if (is_stopped_ || refusal_) {
    errand.tell(std::unexpected(
        refusal_ ? *refusal_ : Error{.code = Errc::unavailable, .detail = "the client ends"}));
    return;
  }
  if (is_lost_for_good_ && errand.loss != Errand::Loss::send_again) {
    errand.tell(fail(Errc::unavailable, where() + ": not connected at the moment"));
    return;
  }
  open_.push_back(std::move(errand));
  if (is_ready() && noscript_.empty()) {
    send_all();
  }
}

void Pipeline::send_all() {
  for (; sent_ < open_.size(); ++sent_) {
    line_->send(open_[sent_].command);
  }
}

/// No reply to what was sent arrives any more.
void Pipeline::forget_sent() {
  for (std::size_t at = 0; at < sent_; ++at) {
    open_[at].was_sent = true;
  }
  sent_ = 0;
  script_replies_due_ = 0;
  open_.insert(open_.begin(), std::move_iterator(noscript_.begin()),
               std::move_iterator(noscript_.end()));
  noscript_.clear();
}

void Pipeline::load_scripts() {
  forget_sent();
  for (const auto& script : scripts_) {
    ++script_replies_due_;
    line_->send(load_command(script));
  }
  send_all();
}

void Pipeline::replied(const Reply& reply) {
  const bool is_error = reply.kind == Reply::Kind::error;
  const bool is_astray = is_error && calls_.astray && redis::is_astray(reply.text);
  if (is_error && !is_astray && is_passing(reply.text)) {
    reconnect({.code = Errc::unavailable, .detail = where() + ": " + reply.text});
    return;
  }
  if (script_replies_due_ > 0) {
    --script_replies_due_;
    return;
  }
  if (sent_ == 0) {
    line_->drop({.code = Errc::unavailable, .detail = where() + ": it answers unasked"});
    return;
  }
  --sent_;
  auto errand = std::move(open_.front());
  open_.pop_front();
  if (is_error && reply.text.starts_with("NOSCRIPT")) {
    // The scripts were flushed. The commands in flight are likely to fail the same way; then all of
    // them are sent again, in order.
    noscript_.push_back(std::move(errand));
  } else {
    answer(std::move(errand), reply);
  }
  if (!noscript_.empty() && sent_ == 0 && is_ready()) {
    load_scripts();
  }
  if (is_idle()) {
    calls_.idle();
  }
}

void Pipeline::answer(Errand errand, const Reply& reply) {
  if (reply.kind != Reply::Kind::error) {
    errand.tell(Errand::Answer{.reply = reply, .is_retry = errand.was_sent});
  } else if (calls_.astray && redis::is_astray(reply.text)) {
    calls_.astray(std::move(errand), reply.text);
  } else {
    errand.tell(std::unexpected(error_from(reply.text, where())));
  }
}

}  // namespace tenure::backends::redis
