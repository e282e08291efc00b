#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenure::server::raft {

enum class Severity : std::uint8_t { note, warning, error };

/// Where the store tells people something. Called from any of its threads.
using Report = std::function<void(Severity, const std::string&)>;

/// Tells, and ends the process at once with ExitCode::disk: what is in memory and what is on disk
/// may differ, and only a new start finds out what is true.
[[noreturn]] void stop_process(const Report& report, const std::string& why);

}  // namespace tenure::server::raft
