#pragma once

#include <cstdint>

#include <tenure/strong.hpp>

namespace tenure::core {

struct State;

/// Cluster version: version of the commands, of their behaviour and of the snapshot format. Part of
/// the state, so all members behave alike during a rolling upgrade, whatever program each of them
/// runs. A new cluster begins with the oldest version. The leader proposes SetClusterVersion when
/// all voters support a newer one.
using ClusterVersion = Strong<std::uint64_t, struct ClusterVersionTag>;

/// First version. Snapshot formats 1 and 2, batch format 1.
inline constexpr ClusterVersion version_1{1};
/// Adds: users of leases and events, operator and reason of a forced release, times in the
/// duplicate detection, the quota of the state, restored holds that clients confirm.
/// Snapshot format 3, batch format 2.
inline constexpr ClusterVersion version_2{2};

inline constexpr ClusterVersion oldest_version = version_1;
/// Newest version that this program supports. Defined in its own translation unit, so that tests
/// can link a program of the previous version.
extern const ClusterVersion newest_version;

/// Converts a state to another version. Fields that the version lacks get their default values, so
/// that a member restored from a snapshot has the same state as one that applied the log. Visits
/// the whole state once. REQUIRES: oldest_version <= version <= newest_version.
void convert(State& state, ClusterVersion version);

}  // namespace tenure::core
