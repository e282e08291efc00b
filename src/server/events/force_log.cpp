#include "server/events/force_log.hpp"

#include <variant>

#include "core/ids.hpp"
#include "sys/log.hpp"

namespace tenure::server {

void ForceLog::applied(const core::Applied& what, const core::State& /*state*/) {
  const auto* forced = std::get_if<core::Forced>(&what.outcome);
  if (!is_leader_ || forced == nullptr) {
    return;
  }
  std::size_t lines = 0;
  core::FencingToken last{};
  for (const auto& event : what.events) {
    // A hold of several ranges has several consecutive events, which are logged as one line.
    if (event.type != core::EventType::forced || event.token == last || lines == lines_max) {
      continue;
    }
    last = event.token;
    ++lines;
    log::warning("lock_forced", {{"lock", event.item.name.view()},
                                 {"lease", event.lease},
                                 {"owner", event.owner.view()},
                                 {"user", event.user.view()},
                                 {"token", event.token},
                                 {"operator", event.operator_name.view()},
                                 {"reason", event.reason.view()},
                                 {"revision", event.revision},
                                 {"holds", forced->holds}});
  }
}

}  // namespace tenure::server
