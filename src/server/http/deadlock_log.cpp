#include "server/http/deadlock_log.hpp"

#include <algorithm>
#include <variant>

namespace tenure::server::http {
namespace {

bool is_held_by(const core::LockTable& locks, const core::Resource& resource, core::LeaseId lease) {
  const auto* lock = locks.find(resource);
  if (lock == nullptr) {
    return false;
  }
  const auto holds = lock->holds().first(std::min(lock->holds().size(), DeadlockLog::holders_max));
  return std::ranges::any_of(
      holds, [&](core::FencingToken token) { return locks.find(token)->lease == lease; });
}

}  // namespace

void DeadlockLog::applied(const core::Applied& what, const core::State& state) {
  // The victim is either the request that closes the cycle, which is refused at once, or a request
  // that waits already, which gets a notice.
  if (const auto* refused = std::get_if<core::Refused>(&what.outcome)) {
    note(what, *refused, state.locks);
  }
  for (const auto& notice : what.notices) {
    if (const auto* refused = std::get_if<core::Refused>(&notice.end)) {
      note(what, *refused, state.locks);
    }
  }
}

void DeadlockLog::note(const core::Applied& what, const core::Refused& refused,
                       const core::LockTable& locks) {
  if (refused.cycle.empty()) {
    return;
  }
  if (found_.size() == deadlocks_max) {
    found_.pop_front();
  }
  auto cycle = refused.cycle;
  // The victim stands after the last step, which a truncated cycle lacks.
  const bool is_truncated = cycle.size() > steps_max;
  cycle.resize(std::min(cycle.size(), steps_max));
  std::vector<bool> holds_previous(cycle.size());
  for (std::size_t i = is_truncated ? 1 : 0; i < cycle.size(); ++i) {
    // The refused request held nothing, but the other holds of its lease are still in the table.
    const auto& previous = cycle[(i + cycle.size() - 1) % cycle.size()];
    holds_previous[i] = is_held_by(locks, previous.resource, cycle[i].lease);
  }
  found_.push_back({.revision = what.revision,
                    .time = what.time,
                    .cycle = std::move(cycle),
                    .holds_previous = std::move(holds_previous)});
}

std::vector<DeadlockRecord> DeadlockLog::latest(const auth::Access& access) const {
  std::vector<DeadlockRecord> latest(found_.rbegin(), found_.rend());
  std::erase_if(latest, [&](DeadlockRecord& record) {
    return auth::redact_unreadable(access, record.cycle) == record.cycle.size();
  });
  return latest;
}

}  // namespace tenure::server::http
