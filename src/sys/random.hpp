#pragma once

#include <cstdint>
#include <span>

namespace tenure::sys {

/// A number that nobody can guess and that will not come twice. Never 0. Thread safe.
[[nodiscard]] std::uint64_t random_id();

/// Bytes that nobody can guess. REQUIRES: at most 256. Thread safe.
void fill_random(std::span<std::uint8_t> bytes);

}  // namespace tenure::sys
