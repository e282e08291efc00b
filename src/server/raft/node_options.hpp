#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "server/raft/disk.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/raft_store_options.hpp"
#include "server/raft/report.hpp"

namespace tenure::server::raft {

/// Bootstrap of an empty data directory.
enum class BootstrapMode : std::uint8_t {
  found,  ///< Initial member of a new cluster, or a single node.
  join,   ///< Member that waits to be added to an existing cluster.
};

/// The node sets `id`, `seed`, `versions` and `disk_name` itself. `election_timeout`: the timer of
/// each member is random between one and two timeouts, so the default elects a leader within 600
/// ms; a shorter one detects failures sooner, and mistakes pauses of a process or a disk for
/// failures more often. `entries_in_flight_max` is 1 with DiskMode::loop, and nothing trails the
/// snapshot of a single node.
struct NodeOptions : RaftStoreOptions {
  /// Data directory. Created if it does not exist.
  std::filesystem::path folder;
  /// Required identity; 0 accepts that of the directory. A new directory gets a random cluster id,
  /// and member id 1, in place of 0.
  ExpectedIdentity identity{};
  /// Used for an empty directory only.
  BootstrapMode bootstrap_mode = BootstrapMode::found;
  /// Initial members of a new cluster, this one included; the same list on each. Empty: a single
  /// node. REQUIRES: with a list, `identity` is complete, and the cluster id is the same on each.
  std::vector<Member> initial_members{};
  /// Highest cluster version that this member agrees to. Lower than the newest of the program to
  /// prepare a downgrade.
  core::ClusterVersion version_max = core::newest_version;
  /// Disk mode of a single node; a cluster member always uses DiskMode::thread.
  DiskMode disk = DiskMode::loop;
  /// Size of a log file, allocated in full. Larger files need fewer switches and more space.
  std::size_t segment_bytes = std::size_t{16} << 20;
  /// Receives log events. Called from several threads.
  Report report = ignore_event;
};

}  // namespace tenure::server::raft
