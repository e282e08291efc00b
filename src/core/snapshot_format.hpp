#pragma once

#include <cstddef>
#include <string_view>

namespace tenure::core {

/// What the writer and the reader of snapshots must agree on.
inline constexpr std::string_view snapshot_magic = "TENURESN";
/// Magic, version and length before the body; the checksum behind it.
inline constexpr std::size_t snapshot_head_bytes = 8 + 4 + 8;
inline constexpr std::size_t snapshot_tail_bytes = 4;

}  // namespace tenure::core
