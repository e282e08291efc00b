#pragma once

#include <optional>
#include <span>

#include "core/version.hpp"
#include "server/raft/entry.hpp"

namespace tenure::server::raft {

/// Cluster versions of one member. Members announce them to each other when they connect.
struct Versions {
  core::ClusterVersion newest{};  ///< Newest version that the member's program reads.
  /// Newest version that the member agrees to use: `newest`, or less to prepare a downgrade.
  /// INVARIANT: at most `newest`.
  core::ClusterVersion wanted{};

  friend bool operator==(const Versions&, const Versions&) = default;
};

/// Versions of this program without a downgrade in preparation.
[[nodiscard]] inline Versions newest_versions() {
  return {.newest = core::newest_version, .wanted = core::newest_version};
}

struct MemberVersions {
  MemberRole role = MemberRole::voter;
  std::optional<Versions> announced{};  ///< Empty: the member is not connected.
};

/// The version that a leader proposes when the cluster uses `present`; empty: none. `members` are
/// all members, the leader included.
///
/// It is raised when all members are connected and want a newer version, to the lowest that one of
/// them wants. It is lowered when a voter wants an older one; a voter that cannot read the present
/// version is ignored, because it cannot read the command either.
[[nodiscard]] std::optional<core::ClusterVersion> next_version(
    core::ClusterVersion present, std::span<const MemberVersions> members);

}  // namespace tenure::server::raft
