#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "core/state.hpp"

namespace tenure::core {

/// Snapshot format of a state of this version. Version 1 reads format 1 (without ended leases) and
/// writes format 2.
[[nodiscard]] constexpr std::uint32_t snapshot_format(ClusterVersion version) noexcept {
  return static_cast<std::uint32_t>(version.get()) + 1;
}

/// Point-in-time image of a state for a snapshot: copy-on-write copies of its tables, taken in
/// (nearly) O(1) on the state machine's thread. Another thread may encode it; later changes of the
/// state do not affect it.
struct Image {
  ClusterVersion version = oldest_version;
  Limits limits{};
  Revision revision{};
  ClusterTime now{};
  LeaseId last_lease{};  ///< Last lease id that the store chose.
  Revision compacted{};
  LeaseTable::Leases leases{};
  LockTable::Holds holds{};
  LockTable::Waits waits{};
  LockTable::Locks locks{};
  Events events{};
  std::deque<LeaseOrigin> ended{};  ///< Origins of ended leases, oldest first.
  Restoration restoration{};
};
[[nodiscard]] Image image_of(const State& state);

/// Encodes the whole state. Canonical: equal states give equal bytes, so replicas can compare
/// checksums. Layout: the eight bytes "TENURESN", format (4, little-endian), length of the body
/// (8), the body, CRC-32C of everything before it (4).
[[nodiscard]] std::string encode(const Image& image);
[[nodiscard]] inline std::string encode(const State& state) {
  return encode(image_of(state));
}

/// Decodes a state, rebuilds its indexes and checks its invariants, so that damage cannot enter the
/// state machine. Damaged bytes are `invalid_argument` with the cause and the offset.
/// `unsupported`: a newer program wrote the snapshot.
[[nodiscard]] Result<State> decode(std::string_view bytes);

}  // namespace tenure::core
