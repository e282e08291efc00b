#pragma once

#include <cstdint>
#include <span>

namespace tenure::sys {

/// Unpredictable random number (getrandom(2)), never 0. 64 bits, so a repetition is negligible.
/// Thread safe.
[[nodiscard]] std::uint64_t random_id();

/// Fills `bytes` with unpredictable random bytes, for secrets. REQUIRES: at most 256. Thread safe.
void fill_random(std::span<std::uint8_t> bytes);

}  // namespace tenure::sys
