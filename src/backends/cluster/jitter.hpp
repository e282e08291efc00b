#pragma once

#include <chrono>
#include <cstdint>

#include "sys/chance.hpp"

namespace tenure::backends::cluster {

/// From half of the pause to one and a half: clients that lost the same leader do not ask in step.
/// REQUIRES: pause > 0
[[nodiscard]] inline std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  return pause / 2 +
         std::chrono::milliseconds(sys::random_id() % static_cast<std::uint64_t>(pause.count()));
}

}  // namespace tenure::backends::cluster
