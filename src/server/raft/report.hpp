#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sys/log.hpp"

namespace tenure::server::raft {

/// Sink for the log events of the store and of its peers: a stable snake_case name and its fields,
/// which live only as long as the call. docs/reference/log_events.md lists the events. Called from
/// several threads.
using Report = std::function<void(log::Level level, std::string_view event, log::Fields fields)>;

/// Sink that drops all events.
inline void ignore_event(log::Level /*level*/, std::string_view /*event*/, log::Fields /*fields*/) {
}

/// Reports `store_failed` and ends the process at once with ExitCode::disk. Memory and disk may
/// differ after a failed write or fsync, and only a restart finds out what is durable.
[[noreturn]] void stop_process(const Report& report, const std::string& error);

}  // namespace tenure::server::raft
