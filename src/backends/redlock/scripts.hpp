#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/redis/scripts.hpp"

namespace tenure::backends::redlock {

/// Lua scripts that run on each server; each file in scripts/ documents its arguments and results.
enum class Script : std::uint8_t {
  vote,
  write_back,
  withdraw_vote,
  extend,
  holder,
  force_release,
  vote_plain,
  /// The script release_barging.lua of redis://.
  withdraw_vote_plain,
  extend_plain,
};

/// All scripts in the order of `Script`.
[[nodiscard]] std::span<const redis::ScriptText> all_scripts();
/// Source and digest of one script.
[[nodiscard]] inline const redis::ScriptText& text_of(Script script) {
  return all_scripts()[static_cast<std::size_t>(script)];
}

}  // namespace tenure::backends::redlock
