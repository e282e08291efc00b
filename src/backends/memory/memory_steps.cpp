// How the memory store runs the state machine, and what it keeps beside it.

#include <cassert>
#include <system_error>
#include <utility>
#include <variant>

#include "backends/memory/core_types.hpp"
#include "backends/memory/memory_store.hpp"

namespace tenure::backends {

core::ClusterTime MemoryStore::cluster_time() const noexcept {
  return std::chrono::duration_cast<core::ClusterTime>(clock_.now() - began_);
}

core::Applied MemoryStore::apply(const core::Command& command) {
  const auto now = cluster_time();
  let_expire(now);
  return apply_at(command, now);
}

core::Applied MemoryStore::apply_at(const core::Command& command, core::ClusterTime now) {
  auto applied = machine_.apply(command, {.time = now, .revision = core::Revision{revision_ + 1}});
  revision_ = applied.revision.get();
  tell(applied);
  const auto next = machine_.next_deadline();
  if (next && (!alarm_set_ || *next < *alarm_set_)) {
    alarm_set_ = next;
    alarm_->ring();
  }
  return applied;
}

void MemoryStore::let_expire(core::ClusterTime now) {
  const auto next = machine_.next_deadline();
  if (!next || *next > now) {
    return;
  }
  const auto expired = machine_.state().leases.expired(now);
  std::set<LeaseId> leases;
  for (const auto id : expired) {
    leases.insert(LeaseId{id.get()});
  }
  thicken_all_of(leases);
  apply_at(core::Tick{}, now);
  for (const auto lease : leases) {
    const auto whose = leases_.find(lease);
    if (whose == leases_.end()) {
      continue;
    }
    if (const auto member = members_.find(whose->second); member != members_.end()) {
      say(whose->second, [listener = member->second, lease] { listener->lease_lost(lease); });
    }
    leases_.erase(whose);
  }
}

void MemoryStore::end_lease(LeaseId lease) {
  if (!leases_.contains(lease)) {
    return;
  }
  thicken_all_of({lease});
  static_cast<void>(apply(core::RevokeLease{.lease = core::LeaseId{lease.get()}}));
  leases_.erase(lease);
}

std::optional<Granted> MemoryStore::grant_thin(const AcquireRequest& request) {
  if (thin_mode_ == ThinHolds::off || !watchers_.empty() || !ThinTable::suits(*request.ask) ||
      !leases_.contains(request.lease)) {
    return std::nullopt;
  }
  const auto& locks = machine_.state().locks.locks();
  if (!locks.empty() && locks.contains(core::PlaceView{.name = request.ask->items.front().name})) {
    return std::nullopt;
  }
  const FencingToken token{revision_ + 1};
  const bool is_free = thin_.add(
      {.lease = request.lease, .request = request.request, .token = token, .ask = request.ask});
  if (!is_free) {
    return std::nullopt;
  }
  ++revision_;
  return Granted{.token = token};
}

void MemoryStore::thicken(std::string_view name) {
  if (auto hold = thin_.take(name)) {
    enter(*std::move(hold));
  }
}

void MemoryStore::thicken_all_of(const std::set<LeaseId>& leases) {
  if (thin_.empty()) {
    return;
  }
  for (auto& hold : thin_.all()) {
    if (leases.contains(hold.lease)) {
      thicken(hold.name());
    }
  }
}

void MemoryStore::thicken_all() {
  for (auto& hold : thin_.all()) {
    thicken(hold.name());
  }
}

void MemoryStore::enter(ThinHold hold) {
  // At the time of the last step: nothing may expire between a hold and its entry.
  const auto applied = apply_at(
      to_core(AcquireRequest{.lease = hold.lease, .request = hold.request, .ask = hold.ask}),
      machine_.state().now);
  const auto* granted = std::get_if<core::Granted>(&applied.outcome);
  assert(granted != nullptr);
  thin_.rename(hold.token, granted->token);
}

std::optional<Result<Granted>> MemoryStore::acquire_in_core(const AcquireRequest& request,
                                                            Backend::Done<Granted>& done) {
  for (const auto& item : request.ask->items) {
    thicken(item.name);
  }
  const auto applied = apply(to_core(request));
  if (const auto* granted = std::get_if<core::Granted>(&applied.outcome)) {
    return Granted{.token = thin_.told(granted->token), .count = granted->count};
  }
  if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
    return std::unexpected(from_core(*refused));
  }
  const auto whose = leases_.find(request.lease);
  if (std::holds_alternative<core::LeaseLost>(applied.outcome) || whose == leases_.end()) {
    return std::unexpected(lease_is_lost(request.lease));
  }
  waiting_.emplace(WaitKey{request.lease, request.request},
                   Waiting{.done = std::move(done),
                           .position = std::get<core::Queued>(applied.outcome).position,
                           .member = whose->second});
  return std::nullopt;
}

Result<void> MemoryStore::release_in_core(const ReleaseRequest& request) {
  return apply_for(request.lease, core::Release{.lease = core::LeaseId{request.lease.get()},
                                                .request = core::RequestId{request.request.get()},
                                                .what = thin_.there(request.token)});
}

Result<void> MemoryStore::apply_for(LeaseId lease, const core::Command& command) {
  const auto applied = apply(command);
  if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
    return std::unexpected(from_core(*refused));
  }
  if (std::holds_alternative<core::LeaseLost>(applied.outcome)) {
    return std::unexpected(lease_is_lost(lease));
  }
  return {};
}

void MemoryStore::tell(const core::Applied& applied) {
  for (const auto& event : applied.events) {
    tell_watchers(event);
    const bool is_held_on =
        event.type == core::EventType::granted || event.type == core::EventType::downgraded;
    if (!is_held_on && event.token != core::FencingToken{}) {
      thin_.forget(event.token);
    }
  }
  for (const auto& notice : applied.notices) {
    end_wait(notice);
  }
  for (const auto& loss : applied.losses) {
    const auto whose = leases_.find(LeaseId{loss.lease.get()});
    if (loss.why != core::EventType::forced || whose == leases_.end()) {
      continue;  // the loss of the lease is told, not of every hold
    }
    if (const auto member = members_.find(whose->second); member != members_.end()) {
      say(whose->second,
          [listener = member->second, lease = whose->first,
           request = RequestId{loss.request.get()}] { listener->hold_taken(lease, request); });
    }
  }
}

void MemoryStore::tell_watchers(const core::Event& event) {
  if (watchers_.empty()) {
    return;
  }
  auto happened = from_core(event);
  happened.token = event.token == core::FencingToken{} ? FencingToken{} : thin_.told(event.token);
  for (const auto& [id, watcher] : watchers_) {
    const auto& wanted = watcher.request;
    const bool concerns = wanted.scope == WatchScope::prefix
                              ? std::string_view(happened.name).starts_with(wanted.name)
                              : happened.name == wanted.name;
    if (concerns) {
      say(watcher.member, [sink = watcher.sink, happened] { (*sink)(happened); });
    }
  }
}

void MemoryStore::end_wait(const core::Notice& notice) {
  const LeaseId lease{notice.lease.get()};
  auto found = waiting_.extract(WaitKey{lease, RequestId{notice.request.get()}});
  if (found.empty()) {
    return;
  }
  Result<Granted> end;
  if (const auto* granted = std::get_if<core::Granted>(&notice.end)) {
    end = Granted{.token = FencingToken{granted->token.get()},
                  .count = granted->count,
                  .queue_position = found.mapped().position};
  } else if (const auto* refused = std::get_if<core::Refused>(&notice.end)) {
    end = std::unexpected(from_core(*refused));
  } else {
    end = std::unexpected(lease_is_lost(lease));
  }
  say(found.mapped().member, [done = std::move(found.mapped().done),
                              end = std::move(end)]() mutable { done(std::move(end)); });
}

void MemoryStore::say(MemberId to, std::move_only_function<void()> what) {
  sayings_.push_back({.to = to, .say = std::move(what)});
}

void MemoryStore::speak() {
  mutex_.lock();
  while (!is_speaking_ && !sayings_.empty()) {
    auto saying = std::move(sayings_.front());
    sayings_.pop_front();
    is_speaking_ = true;
    spoken_to_ = saying.to;
    mutex_.unlock();
    saying.say();
    saying.say = nullptr;
    mutex_.lock();
    is_speaking_ = false;
    spoken_to_.reset();
    spoken_.notify_all();
  }
  mutex_.unlock();
}

void MemoryStore::start_ticking() {
  if (ticker_.joinable()) {
    return;
  }
  try {
    ticker_ = std::jthread([this](std::stop_token stop) { tick(std::move(stop)); });
  } catch (const std::system_error&) {
    // No thread can be had now: leases end late, and the next one that is granted tries again.
  }
}

void MemoryStore::tick(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::optional<sys::BootTime> next;
    {
      const sys::MutexGuard lock(mutex_);
      let_expire(cluster_time());
      alarm_set_ = machine_.next_deadline();
      if (alarm_set_) {
        next = began_ + *alarm_set_;
      }
    }
    speak();
    alarm_->wait_until(next);
  }
}

}  // namespace tenure::backends
