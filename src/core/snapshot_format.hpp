#pragma once

#include <cstddef>
#include <string_view>

namespace tenure::core {

/// First eight bytes of a snapshot. The layout is documented at encode() (core/snapshot.hpp).
inline constexpr std::string_view snapshot_magic = "TENURESN";
/// Magic (8), format (4) and length (8) before the body; checksum (4) behind it.
inline constexpr std::size_t snapshot_head_bytes = 8 + 4 + 8;
inline constexpr std::size_t snapshot_tail_bytes = 4;

}  // namespace tenure::core
