#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "core/state.hpp"

namespace tenure::core {

/// The version that encode() writes. decode() knows this one and no other.
inline constexpr std::uint32_t snapshot_version = 1;

/// The whole state as bytes. Canonical: equal states give equal bytes, so replicas compare their
/// checksums. Layout: the eight bytes "TENURESN", version (4, little-endian), length of the body
/// (8), the body, CRC-32C of everything before it (4).
[[nodiscard]] std::string encode(const State& state);

/// The state that was encoded, with every index rebuilt and every invariant checked. Bytes that
/// were cut, changed or written by another version are `invalid_argument`, and the detail says
/// what is wrong and where.
[[nodiscard]] Result<State> decode(std::string_view bytes);

}  // namespace tenure::core
