#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "core/state.hpp"

namespace tenure::core {

/// The version that encode() writes. decode() knows version 1, too, which had no ended leases.
inline constexpr std::uint32_t snapshot_version = 2;

/// What a snapshot says about a state, at one moment. It costs nothing to take one, however large
/// the state is, and it may go to another thread: what the state changes afterwards it does not
/// share any more.
struct Image {
  Limits limits{};
  Revision revision{};
  ClusterTime now{};
  LeaseId last_lease{};  ///< That the store chose itself.
  Revision compacted{};
  LeaseTable::Leases leases{};
  LockTable::Holds holds{};
  LockTable::Waits waits{};
  LockTable::Locks locks{};
  Events events{};
  std::deque<LeaseOrigin> ended{};  ///< Leases, the oldest first.
};
[[nodiscard]] Image image_of(const State& state);

/// The whole state as bytes. Canonical: equal states give equal bytes, so replicas compare their
/// checksums. Layout: the eight bytes "TENURESN", version (4, little-endian), length of the body
/// (8), the body, CRC-32C of everything before it (4).
[[nodiscard]] std::string encode(const Image& image);
[[nodiscard]] inline std::string encode(const State& state) {
  return encode(image_of(state));
}

/// The state that was encoded, with every index rebuilt and every invariant checked. Bytes that
/// were cut, changed or written by another version are `invalid_argument`, and the detail says
/// what is wrong and where.
[[nodiscard]] Result<State> decode(std::string_view bytes);

}  // namespace tenure::core
