#include "server/http/deadlock_log.hpp"

#include <algorithm>
#include <variant>

namespace tenure::server::http {

void DeadlockLog::applied(const core::Applied& what, const core::State& /*state*/) {
  // The victim is either the request that closes the cycle, which is refused at once, or a request
  // that waits already, which gets a notice.
  if (const auto* refused = std::get_if<core::Refused>(&what.outcome)) {
    note(what, *refused);
  }
  for (const auto& notice : what.notices) {
    if (const auto* refused = std::get_if<core::Refused>(&notice.end)) {
      note(what, *refused);
    }
  }
}

void DeadlockLog::note(const core::Applied& what, const core::Refused& refused) {
  if (refused.cycle.empty()) {
    return;
  }
  if (found_.size() == deadlocks_max) {
    found_.pop_front();
  }
  auto cycle = refused.cycle;
  cycle.resize(std::min(cycle.size(), steps_max));
  found_.push_back({.revision = what.revision, .time = what.time, .cycle = std::move(cycle)});
}

std::vector<DeadlockRecord> DeadlockLog::latest(const auth::Access& access) const {
  std::vector<DeadlockRecord> latest(found_.rbegin(), found_.rend());
  std::erase_if(latest, [&](DeadlockRecord& record) {
    return auth::redact_unreadable(access, record.cycle) == record.cycle.size();
  });
  return latest;
}

}  // namespace tenure::server::http
