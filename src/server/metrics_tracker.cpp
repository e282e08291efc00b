#include "server/metrics_tracker.hpp"

#include <algorithm>

namespace tenure::server {

void Metrics::Tracker::rebuild(const core::State& state) {
  *this = {};
  leases_ = state.leases.all().size();
  next_deadline_ = state.leases.next_deadline();
  for (const auto& [ticket, wait] : state.locks.waits()) {
    waits_.emplace(Request{wait.lease.get(), wait.request.get()}, wait.since);
  }
  for (const auto& [token, hold] : state.locks.holds()) {
    Held held{.since = hold.acquired, .token = token.get()};
    for (const auto& item : hold.items) {
      held.mode = static_cast<std::uint8_t>(mode_index(item.claim));
      ++held.items;
      ++held_[held.mode];
    }
    const auto first = hold.create_revision.get();
    holds_.emplace(first, held);
    if (first != token.get()) {
      renamed_.emplace(token.get(), first);
    }
  }
}

void Metrics::Tracker::queued(const core::Event& event) {
  waits_.emplace(Request{event.lease.get(), event.request.get()}, event.time);
}

void Metrics::Tracker::left_queue(const core::Event& event) {
  waits_.erase(Request{event.lease.get(), event.request.get()});
}

std::optional<core::ClusterTime> Metrics::Tracker::granted(const core::Event& event,
                                                           const core::State& state) {
  const auto token = event.token.get();
  const auto mode = static_cast<std::uint8_t>(mode_index(event.item.claim));
  const auto* hold = state.locks.find(event.token);
  const auto first = hold == nullptr ? token : hold->create_revision.get();
  auto& held = holds_[first];
  if (first != token) {
    strengthen(held, first, event);
  } else {
    held.since = event.time;
    held.token = token;
    held.mode = mode;
    ++held.items;
    ++held_[mode];
  }

  const Request request{event.lease.get(), event.request.get()};
  if (last_granted_ == request && last_granted_at_ == event.revision) {
    return std::nullopt;
  }
  last_granted_ = request;
  last_granted_at_ = event.revision;
  const auto wait = waits_.find(request);
  if (wait == waits_.end()) {
    return core::ClusterTime{};
  }
  const auto waited = event.time - wait->second;
  waits_.erase(wait);
  return waited;
}

void Metrics::Tracker::strengthen(Held& held, std::uint64_t first, const core::Event& event) {
  if (held.items == 0) {
    return;  // Not known from the beginning: a release within the same command took it away.
  }
  renamed_.erase(held.token);
  held.token = event.token.get();
  renamed_.emplace(held.token, first);
  set_mode(held, event.item.claim);
}

void Metrics::Tracker::downgraded(const core::Event& event) {
  if (const auto it = find(event.token); it != holds_.end()) {
    set_mode(it->second, event.item.claim);
  }
}

void Metrics::Tracker::set_mode(Held& held, const core::Claim& claim) {
  --held_[held.mode];
  held.mode = static_cast<std::uint8_t>(mode_index(claim));
  ++held_[held.mode];
}

Metrics::Tracker::Holds::iterator Metrics::Tracker::find(core::FencingToken token) {
  const auto renamed = renamed_.find(token.get());
  return holds_.find(renamed == renamed_.end() ? token.get() : renamed->second);
}

std::optional<core::ClusterTime> Metrics::Tracker::ended(const core::Event& event) {
  const auto it = find(event.token);
  if (it == holds_.end()) {
    return std::nullopt;
  }
  --held_[mode_index(event.item.claim)];
  const auto held_for = event.time - it->second.since;
  if (--it->second.items == 0) {
    renamed_.erase(it->second.token);
    holds_.erase(it);
  }
  return held_for;
}

std::size_t Metrics::Tracker::leases_expired(const core::Applied& what, const core::State& state) {
  const auto* granted = std::get_if<core::LeaseGranted>(&what.outcome);
  const auto* fresh = granted == nullptr ? nullptr : state.leases.find(granted->id);
  // A retry of a grant is answered in the same way; the lease is older then.
  const bool is_new = fresh != nullptr && fresh->create_revision == what.revision;
  const auto ended = leases_ + (is_new ? 1 : 0) - state.leases.all().size();
  const bool has_expired = next_deadline_ && *next_deadline_ <= what.time;
  leases_ = state.leases.all().size();
  next_deadline_ = state.leases.next_deadline();
  if (ended == 0 || !has_expired) {
    return 0;
  }
  const bool has_revoked = std::ranges::any_of(
      what.events, [](const core::Event& event) { return event.type == core::EventType::revoked; });
  return ended - (has_revoked ? 1 : 0);
}

}  // namespace tenure::server
