#include "backends/redis/pipeline.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "backends/redis/faults.hpp"

namespace tenure::backends::redis {
namespace {

std::string load_command(const ScriptText& script) {
  const std::array<std::string_view, 3> words{"SCRIPT", "LOAD", script.text};
  std::string command;
  append_command(command, words);
  return command;
}

/// The value of `key:value` in what INFO says.
std::string_view value_of(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = text.substr(at + key.size());
  return rest.substr(0, rest.find('\r'));
}

/// Whether the server may throw locks away when its memory is full.
std::optional<std::string> eviction_in(std::string_view memory) {
  const auto policy = value_of(memory, "\nmaxmemory_policy:");
  const auto most = value_of(memory, "\nmaxmemory:");
  if (policy.empty() || policy == "noeviction" || most == "0") {
    return std::nullopt;
  }
  return "maxmemory-policy is " + std::string(policy) +
         ": when its memory is full it may evict locks that are held; noeviction does not";
}

}  // namespace

Pipeline::Pipeline(boost::asio::io_context& loop, const Address& address, Calls calls)
    : calls_(std::move(calls)), grace_max_(address.timeout), grace_(loop) {
  line_ = std::make_shared<Line>(loop, address, greeting(),
                                 Line::Calls{.ready = [this] { ready(); },
                                             .replied = [this](const Reply& r) { replied(r); },
                                             .failed = [this](const Error& e) { lost(e); }});
}

std::vector<Step> Pipeline::greeting() {
  std::vector<Step> steps;
  for (const auto& script : all_scripts()) {
    steps.push_back({.command = load_command(script), .check = {}});
  }
  const std::array<std::string_view, 2> words{"INFO", "memory"};
  std::string info;
  append_command(info, words);
  steps.push_back({.command = std::move(info), .check = [this](const Reply& reply) {
                     // Who may not ask is not told.
                     if (const auto doubt = eviction_in(reply.text)) {
                       calls_.doubtful(line_->where() + ": " + *doubt);
                     }
                     return Result<void>();
                   }});
  return steps;
}

void Pipeline::ready() {
  refusal_.reset();
  has_scripts_ = true;
  is_lost_for_good_ = false;
  grace_.cancel();
  send_all();
  calls_.ready();
  line_->flush();
}

void Pipeline::lost(const Error& why) {
  sent_.clear();
  for (auto& [id, errand] : open_) {
    errand.was_sent = true;
  }
  if (why == Errc::unavailable) {
    if (!is_lost_for_good_ && grace_.expiry() < std::chrono::steady_clock::now()) {
      grace_.expires_after(grace_max_);
      grace_.async_wait([this, why](const boost::system::error_code& error) {
        if (!error && !is_ready()) {
          is_lost_for_good_ = true;
          fail_all(why, true);
        }
      });
    }
  } else {
    // By a server that answers: to ask again would not help.
    refusal_ = why;
    fail_all(why, false);
  }
  calls_.lost(why);
}

void Pipeline::fail_all(const Error& why, bool only_those_that_cannot_wait) {
  std::vector<Errand> failed;
  for (auto it = open_.begin(); it != open_.end();) {
    if (only_those_that_cannot_wait && it->second.loss == Errand::Loss::send_again) {
      ++it;
      continue;
    }
    failed.push_back(std::move(it->second));
    it = open_.erase(it);
  }
  for (auto& errand : failed) {
    errand.answered(std::unexpected(why));
  }
}

void Pipeline::stop(const Error& why) {
  is_stopped_ = true;
  grace_.cancel();
  line_->stop();
  fail_all(why, false);
}

void Pipeline::run(Errand errand) {
  if (is_stopped_ || refusal_) {
    errand.answered(std::unexpected(
        refusal_ ? *refusal_ : Error{.code = Errc::unavailable, .detail = "the client ends"}));
    return;
  }
  if (is_lost_for_good_ && errand.loss == Errand::Loss::fail) {
    errand.answered(fail(Errc::unavailable, where() + ": not connected at the moment"));
    return;
  }
  const auto id = ++last_id_;
  auto& kept = open_.emplace(id, std::move(errand)).first->second;
  if (is_ready() && has_scripts_) {
    send(id, kept);
  }
}

void Pipeline::send(Id id, Errand& errand) {
  sent_.push_back(id);
  line_->send(errand.command);
}

void Pipeline::send_all() {
  for (auto& [id, errand] : open_) {
    send(id, errand);
  }
}

void Pipeline::load_scripts() {
  for (const auto& script : all_scripts()) {
    sent_.push_back(0);
    line_->send(load_command(script));
  }
  has_scripts_ = true;
  send_all();
}

void Pipeline::replied(const Reply& reply) {
  if (sent_.empty()) {
    line_->drop({.code = Errc::unavailable, .detail = where() + ": it answers unasked"});
    return;
  }
  const auto id = sent_.front();
  sent_.pop_front();
  const bool is_error = reply.kind == Reply::Kind::error;
  if (is_error && is_passing(reply.text)) {
    line_->drop({.code = Errc::unavailable, .detail = where() + ": " + reply.text});
    return;
  }
  const auto it = open_.find(id);
  if (it == open_.end()) {
    return;
  }
  if (is_error && reply.text.starts_with("NOSCRIPT")) {
    // Somebody flushed them. What is on its way fails likewise; then all of it is sent again.
    has_scripts_ = false;
  } else {
    auto errand = std::move(it->second);
    open_.erase(it);
    if (is_error) {
      errand.answered(std::unexpected(error_from(reply.text, where())));
    } else {
      errand.answered(Errand::Answer{.reply = reply, .is_retry = errand.was_sent});
    }
  }
  if (!has_scripts_ && sent_.empty() && is_ready()) {
    load_scripts();
  }
  if (open_.empty()) {
    calls_.idle();
  }
}

}  // namespace tenure::backends::redis
