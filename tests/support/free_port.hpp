#pragma once

#include <cstdint>

namespace tenure::test {

/// A port of the loopback that nobody uses.
[[nodiscard]] std::uint16_t free_port();

}  // namespace tenure::test
