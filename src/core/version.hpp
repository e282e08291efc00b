#pragma once

#include <cstdint>

#include <tenure/strong.hpp>

namespace tenure::core {

struct State;

/// Version of the replicated commands, of the snapshot format and of what commands do. Part of the
/// state: all members of a cluster use the same one, whatever program each of them runs. A new
/// cluster begins with the oldest version. The leader proposes SetClusterVersion when all voters
/// can read a newer one.
using ClusterVersion = Strong<std::uint64_t, struct ClusterVersionTag>;

/// First version. Snapshot formats 1 and 2, batch format 1.
inline constexpr ClusterVersion version_1{1};
/// Adds: users of leases and events, operator and reason of a forced release, times in the
/// duplicate detection, the quota of the state, restored holds that clients confirm.
/// Snapshot format 3, batch format 2.
inline constexpr ClusterVersion version_2{2};

inline constexpr ClusterVersion oldest_version = version_1;
/// The newest version that this program reads and writes. Defined in a translation unit of its own,
/// so that tests can link a program of the version before.
extern const ClusterVersion newest_version;

/// Turns a state of one version into the state of another. Fields that the version does not have
/// get their default values, so that a member that was restored from a snapshot has the same state
/// as one that applied the log. Visits everything once.
/// REQUIRES: oldest_version <= version <= newest_version.
void convert(State& state, ClusterVersion version);

}  // namespace tenure::core
