#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/redis/scripts.hpp"

namespace tenure::backends::redlock {

/// What runs on each server: one file each in scripts/, which says what it takes and returns.
enum class Script : std::uint8_t {
  vote,
  write_back,
  withdraw_vote,
  extend,
  holder,
  force_release,
  vote_plain,
  withdraw_vote_plain,  ///< Of redis://, where it is called release_barging.
  extend_plain,
};

[[nodiscard]] std::span<const redis::ScriptText> all_scripts();
[[nodiscard]] inline const redis::ScriptText& text_of(Script script) {
  return all_scripts()[static_cast<std::size_t>(script)];
}

}  // namespace tenure::backends::redlock
