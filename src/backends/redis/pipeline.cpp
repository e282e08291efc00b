#include "backends/redis/pipeline.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <absl/container/inlined_vector.h>

#include "backends/redis/faults.hpp"
#include "backends/redis/slots.hpp"

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

/// The name of the lock that a key is about: "a" in "{tenure:a}", and "a".
[[nodiscard]] std::string_view name_in(std::string_view key) {
  const auto colon = key.find(':');
  return key.starts_with('{') && key.ends_with('}') && colon != std::string_view::npos
             ? key.substr(colon + 1, key.size() - colon - 2)
             : key;
}

/// So many at least are worth a burst: one of it that is not that easy is asked twice.
constexpr std::size_t burst_min = 4;
/// So many at most: others of this server wait meanwhile.
constexpr std::size_t burst_max = 20;
/// So many are out at a time, and so many have to wait before there is a second one: the fewer in
/// each, the more of the work is that of the network.
constexpr std::size_t bursts_max = 2;
constexpr std::size_t second_burst_min = 16;

[[nodiscard]] bool may_burst(const Errand& errand) {
  return errand.brief != nullptr && !errand.is_alone;
}

/// The hash of the name of the lock.
[[nodiscard]] std::size_t about_of(const Errand& errand) {
  return std::hash<std::string_view>{}(
      errand.brief ? errand.brief->about() : name_in(first_key_of(errand.command).value_or("")));
}

}  // namespace

Pipeline::Pipeline(boost::asio::io_context& loop, const Address& address, Calls calls,
                   std::span<const ScriptText> scripts)
    : calls_(std::move(calls)), scripts_(scripts), grace_max_(address.timeout), grace_(loop) {
  line_ = std::make_shared<Line>(loop, address, greeting(),
                                 Line::Calls{.ready = [this] { ready(); },
                                             .replied = [this](const Reply& r) { replied(r); },
                                             .failed = [this](const Error& e) { lost(e); },
                                             .caught_up = [this] { caught_up(); }});
}

std::vector<Step> Pipeline::greeting() {
  std::vector<Step> steps;
  for (const auto& script : scripts_) {
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

void Pipeline::start() {
  is_lost_for_good_ = false;
  begin_grace({.code = Errc::unavailable, .detail = where() + ": not connected yet"});
  line_->dial();
}

/// Those that cannot wait do so for a while.
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
  has_scripts_ = true;
  is_lost_for_good_ = false;
  is_in_grace_ = false;
  grace_.cancel();
  send_all();
  calls_.ready();
  line_->flush();
}

void Pipeline::lost(const Error& why) {
  forget_sent();
  const auto now = std::chrono::steady_clock::now();
  for (const auto id : open_.ids()) {
    auto& errand = *open_.find(id);
    errand.was_sent = true;
    errand.is_alone = true;
    errand.failing_since = errand.failing_since.value_or(now);
  }
  fail_all(why, [](const Errand& errand) { return errand.loss == Errand::Loss::once; });
  if (why == Errc::unavailable) {
    if (!is_lost_for_good_) {
      begin_grace(why);
    }
  } else {
    // By a server that answers: to ask again would not help.
    refusal_ = why;
    fail_all(why);
  }
  calls_.lost(why);
}

/// The server answers, and does not do what it is asked. Another connection may lead to one that
/// does; but what cannot wait is not asked for ever.
void Pipeline::put_off(const Error& why) {
  line_->drop(why);
  const auto limit = std::chrono::steady_clock::now() - grace_max_;
  fail_all(why, [limit](const Errand& errand) {
    return errand.loss == Errand::Loss::fail && errand.failing_since <= limit;
  });
}

void Pipeline::fail_all(const Error& why, const std::function<bool(const Errand&)>& which) {
  std::vector<Errand> failed;
  for (const auto id : open_.ids()) {
    if (!which || which(*open_.find(id))) {
      failed.push_back(open_.take(id));
    }
  }
  for (auto& errand : failed) {
    errand.tell(std::unexpected(why));
  }
}

void Pipeline::stop(const Error& why) {
  is_stopped_ = true;
  grace_.cancel();
  line_->stop();
  fail_all(why);
}

std::vector<Errand> Pipeline::retire() {
  is_stopped_ = true;
  grace_.cancel();
  line_->stop();
  std::vector<Errand> rest;
  for (const auto id : open_.ids()) {
    rest.push_back(open_.take(id));
    rest.back().was_sent = true;
  }
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
  const auto id = open_.add(std::move(errand));
  if (!is_ready() || !has_scripts_) {
    return;
  }
  auto& kept = *open_.find(id);
  if (may_burst(kept) || !waiting_.empty() || has_to_wait(kept)) {
    waiting_.push_back(id);
  } else {
    send(id, kept);
  }
}

void Pipeline::send(Id id, Errand& errand) {
  if (errand.command.empty()) {
    errand.command = errand.brief->spell();
  }
  sent_.push_back(id);
  line_->send(errand.command);
}

void Pipeline::send_all() {
  for (const auto id : open_.ids()) {
    send(id, *open_.find(id));
  }
}

void Pipeline::forget_sent() {
  waiting_.clear();
  sent_.clear();
  bursts_.clear();
  bursting_.clear();
}

void Pipeline::caught_up() {
  calls_.caught_up ? calls_.caught_up() : flush();
}

void Pipeline::flush() {
  send_waiting();
  line_->flush();
}

// Bursts.

bool Pipeline::may_burst_leave() const noexcept {
  return bursts_.empty() || (bursts_.size() < bursts_max && waiting_.size() >= second_burst_min);
}

std::size_t Pipeline::room_after() const noexcept {
  if (bursts_.empty()) {
    return 1;
  }
  if (bursts_.size() >= bursts_max) {
    return std::numeric_limits<std::uint32_t>::max();
  }
  return waiting_.size() < second_burst_min ? second_burst_min - waiting_.size() : 1;
}

bool Pipeline::has_to_wait(const Errand& errand) const {
  return !bursting_.empty() && bursting_.contains(about_of(errand));
}

/// In order, but for those that have to wait for the answer to something about the same lock, or
/// for the next burst; what comes after one of these about the same lock waits with it. While a
/// burst is out, what comes makes the next one larger, and those whose answers came run; only when
/// many wait, another one leaves before, so that the server need not wait for us.
void Pipeline::send_waiting() {
  if (waiting_.empty() || !is_ready() || !has_scripts_) {
    return;
  }
  const bool may_leave = may_burst_leave();
  Burst burst;
  burst.reserve(may_leave ? std::min(waiting_.size(), burst_max) : 0);
  std::size_t kept = 0;
  held_back_.clear();
  const bool is_crowd = waiting_.size() >= burst_min;
  for (const auto id : waiting_) {
    auto* const errand = open_.find(id);
    if (errand == nullptr) {
      continue;  // it failed meanwhile
    }
    const bool is_brief = may_burst(*errand);
    const auto about = about_of(*errand);
    const bool is_behind = !held_back_.empty() && held_back_.contains(about);
    if (!is_behind && is_brief && join_release(burst, id, *errand)) {
      continue;
    }
    const bool is_for_next = is_brief && (!may_leave || burst.size() >= burst_max);
    if (is_behind || is_for_next || bursting_.contains(about)) {
      waiting_[kept++] = id;
      held_back_.insert(about);
    } else if (!is_crowd || !is_brief) {
      send(id, *errand);
    } else {
      bursting_.emplace(about, burst.size());
      burst.push_back({.id = id, .about = about, .kind = errand->brief->kind()});
    }
  }
  waiting_.resize(kept);
  if (!burst.empty()) {
    send_burst(std::move(burst));
  }
}

/// What is given back and asked for again at once is one step, if both are in this burst. False: it
/// is not like that.
bool Pipeline::join_release(Burst& burst, Id id, const Errand& errand) {
  const auto& brief = *errand.brief;
  if (burst.empty() || brief.kind() != Brief::Kind::acquire) {
    return false;
  }
  const auto it = bursting_.find(about_of(errand));
  if (it == bursting_.end()) {
    return false;
  }
  if (it->second >= burst.size() || burst[it->second].about != it->first) {
    return false;  // in another burst
  }
  auto& part = burst[it->second];
  const auto& other = *open_.find(part.id)->brief;
  // The number is a hash: it is the same lock only if its name is.
  if (part.kind != Brief::Kind::release || other.about() != brief.about()) {
    return false;
  }
  part.release = std::exchange(part.id, id);
  part.kind = brief.kind();
  return true;
}

void Pipeline::send_burst(Burst burst) {
  auto& text = text_;
  text.clear();
  for (const auto& part : burst) {
    const auto* const release = open_.find(part.release);
    open_.find(part.id)->brief->say(text, release == nullptr ? nullptr : release->brief.get());
  }
  auto& command = burst_command_;
  command.clear();
  const auto keys_count = text.heads_count + text.plain_keys_count + 1;
  append_count(command, 7 + keys_count);
  append_word(command, "EVALSHA");
  append_word(command, text_of(Script::burst).sha);
  append_word(command, std::to_string(keys_count));
  command.append(text.heads).append(text.plain_keys);
  append_word(command, text.last_token);
  append_word(command, text.letters);
  append_word(command, text.lengths);
  append_word(command, text.words);
  append_word(command, std::to_string(text.heads_count));
  sent_.push_back(of_burst);
  bursts_.push_back(std::move(burst));
  line_->send(command);
}

/// Those that were not that easy are asked by their own scripts, before anything that is told later
/// about the same keys.
void Pipeline::burst_replied(const Reply& reply) {
  const auto burst = std::move(bursts_.front());
  bursts_.pop_front();
  for (const auto& part : burst) {
    bursting_.erase(part.about);
  }
  // What is done before they are told may be the end of the reply.
  absl::InlinedVector<std::int64_t, burst_max> answers;
  const bool is_all_done = reply.kind == Reply::Kind::integer;
  const auto token = is_all_done ? reply.number : reply.number_at(0);
  for (std::size_t at = 0; at < burst.size(); ++at) {
    const auto told = is_all_done ? 1 : reply.number_at(at + 1);
    const bool is_granted = told == 1 && burst[at].kind == Brief::Kind::acquire;
    answers.push_back(is_granted ? token : told);
    if (answers.back() != 0) {
      continue;
    }
    for (const auto id : {burst[at].release, burst[at].id}) {
      if (auto* const errand = open_.find(id)) {
        errand->is_alone = true;
        // A script that failed may have done it before: then this is a retry.
        errand->was_sent = errand->was_sent || reply.kind == Reply::Kind::error;
        send(id, *errand);
      }
    }
  }
  // So that the server has something to do while these are told.
  caught_up();
  const Reply given_back{.kind = Reply::Kind::integer, .number = 1};
  Reply answer_of_one{.kind = Reply::Kind::integer};
  for (std::size_t at = 0; at < burst.size(); ++at) {
    answer_of_one.number = answers[at];
    if (answers[at] != 0) {
      answer(burst[at].release, given_back);
      answer(burst[at].id, answer_of_one);
    }
  }
}

void Pipeline::load_scripts() {
  forget_sent();
  for (const auto& script : scripts_) {
    sent_.push_back(of_script);
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
  const bool is_astray = is_error && calls_.astray && redis::is_astray(reply.text);
  if (is_error && !is_astray && is_passing(reply.text)) {
    put_off({.code = Errc::unavailable, .detail = where() + ": " + reply.text});
    return;
  }
  if (is_error && reply.text.starts_with("NOSCRIPT")) {
    // Somebody flushed them. What is on its way fails likewise; then all of it is sent again.
    has_scripts_ = false;
    if (id == of_burst) {
      bursts_.pop_front();
    }
  } else if (id == of_burst) {
    burst_replied(reply);
  } else {
    answer(id, reply);
  }
  if (!has_scripts_ && sent_.empty() && is_ready()) {
    load_scripts();
  }
  if (open_.empty()) {
    calls_.idle();
  }
}

void Pipeline::answer(Id id, const Reply& reply) {
  auto* const open = open_.find(id);
  if (open == nullptr) {
    return;
  }
  if (reply.kind != Reply::Kind::error && open->brief) {
    // Most are like this; the errand around it need not be moved for it.
    const auto brief = std::move(open->brief);
    const bool was_sent = open->was_sent;
    open_.remove(id);
    brief->answered(Answer{.reply = reply, .is_retry = was_sent});
    return;
  }
  auto errand = open_.take(id);
  if (reply.kind != Reply::Kind::error) {
    errand.tell(Answer{.reply = reply, .is_retry = errand.was_sent});
  } else if (calls_.astray && redis::is_astray(reply.text)) {
    calls_.astray(std::move(errand), reply.text);
  } else {
    errand.tell(std::unexpected(error_from(reply.text, where())));
  }
}

}  // namespace tenure::backends::redis
