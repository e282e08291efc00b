#include "server/metrics/metrics_tracker.hpp"

#include <algorithm>

namespace tenure::server {

void Metrics::Tracker::rebuild(const core::State& state) {
  // Upgraded holds cannot be recovered: the state does not contain the time of their first grant.
  *this = {};
  leases_ = state.leases.all().size();
  next_deadline_ = state.leases.next_deadline();
  for (const auto& [ticket, wait] : state.locks.waits()) {
    waits_.emplace(RequestKey{.lease = wait->lease, .request = wait->request}, wait->since);
  }
}

void Metrics::Tracker::queued(const core::Event& event) {
  // emplace keeps the first entry: a request for several items has an event for each.
  waits_.emplace(RequestKey{.lease = event.lease, .request = event.request}, event.time);
}

void Metrics::Tracker::left_queue(const core::Event& event) {
  waits_.erase(RequestKey{.lease = event.lease, .request = event.request});
}

std::optional<core::ClusterTime> Metrics::Tracker::granted(const core::Event& event) {
  const RequestKey request{.lease = event.lease, .request = event.request};
  if (last_granted_ == request && last_granted_at_ == event.revision) {
    return std::nullopt;
  }
  last_granted_ = request;
  last_granted_at_ = event.revision;
  const auto wait = waits_.find(request);
  // Granted without a wait.
  if (wait == waits_.end()) {
    return core::ClusterTime{};
  }
  const auto waited = event.time - wait->second;
  waits_.erase(wait);
  return waited;
}

void Metrics::Tracker::upgraded(const core::PreviousHold& hold) {
  // emplace keeps the first entry: a hold may be upgraded several times.
  strengthened_.emplace(hold.create_revision.get(), hold.acquired);
}

core::ClusterTime Metrics::Tracker::held_since(const core::PreviousHold& hold) {
  // Only holds of one item can be strengthened, so the end of the item is the end of the hold.
  const auto it = strengthened_.find(hold.create_revision.get());
  if (it == strengthened_.end()) {
    return hold.acquired;
  }
  const auto since = it->second;
  strengthened_.erase(it);
  return since;
}

std::size_t Metrics::Tracker::leases_expired(const core::Applied& what, const core::State& state) {
  const auto* granted = std::get_if<core::LeaseGranted>(&what.outcome);
  const auto* fresh = granted == nullptr ? nullptr : state.leases.find(granted->id);
  // A repeated grant returns the same reply, but its lease is older.
  const bool is_new = fresh != nullptr && fresh->create_revision == what.revision;
  // Leases have no end event of their own, so the number is derived from the sizes.
  const auto ended = leases_ + (is_new ? 1 : 0) - state.leases.all().size();
  // Separates expiries from revocations: before the first deadline no lease can expire.
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
