#pragma once

#include <cstdint>

namespace tenure::test {

/// An unused TCP port on loopback.
[[nodiscard]] std::uint16_t free_port();

}  // namespace tenure::test
