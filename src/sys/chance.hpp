#pragma once

#include <cstdint>

namespace tenure::sys {

/// A number that nobody can guess and that will not come twice. Never 0. Thread safe.
[[nodiscard]] std::uint64_t random_id();

}  // namespace tenure::sys
