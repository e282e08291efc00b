#pragma once

#include <chrono>
#include <cstdint>

#include "sys/random.hpp"

namespace tenure::sys {

/// Source of uniformly distributed 64-bit numbers. Tests inject one of their own.
using RandomSource = std::uint64_t (*)();

/// Distribution of a delay with jitter.
enum class Jitter : std::uint8_t {
  full,   ///< Uniform in [0, delay].
  equal,  ///< Uniform in [delay / 2, delay]: guarantees a minimum delay.
};

/// Random delay in the range of `jitter`, so that clients that failed together do not retry
/// together. Never longer than `delay`. REQUIRES: delay >= 0.
[[nodiscard]] inline std::chrono::microseconds with_jitter(std::chrono::microseconds delay,
                                                           Jitter jitter = Jitter::equal,
                                                           RandomSource random = random_id) {
  const auto spread = jitter == Jitter::full ? delay : delay - delay / 2;
  const auto width = static_cast<std::uint64_t>(spread.count()) + 1;
  return delay - spread + std::chrono::microseconds(random() % width);
}

}  // namespace tenure::sys
