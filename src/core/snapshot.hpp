#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "core/state.hpp"

namespace tenure::core {

/// Format of the bytes that encode() writes for a state of this version. Formats 1, which had no
/// ended leases, and 2 are those of version 1.
[[nodiscard]] constexpr std::uint32_t snapshot_format(ClusterVersion version) noexcept {
  return static_cast<std::uint32_t>(version.get()) + 1;
}

/// What a snapshot says about a state, at one moment. It costs nothing to take one, however large
/// the state is, and it may go to another thread: what the state changes afterwards it does not
/// share any more.
struct Image {
  ClusterVersion version = oldest_version;
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
  Restoration restoration{};
};
[[nodiscard]] Image image_of(const State& state);

/// The whole state as bytes. Canonical: equal states give equal bytes, so replicas compare their
/// checksums. Layout: the eight bytes "TENURESN", format (4, little-endian), length of the body
/// (8), the body, CRC-32C of everything before it (4).
[[nodiscard]] std::string encode(const Image& image);
[[nodiscard]] inline std::string encode(const State& state) {
  return encode(image_of(state));
}

/// The state that was encoded, with every index rebuilt and every invariant checked. Bytes that
/// were cut or changed are `invalid_argument`, and the detail says what is wrong and where.
/// `unsupported`: a program of a newer version wrote them.
[[nodiscard]] Result<State> decode(std::string_view bytes);

}  // namespace tenure::core
