#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/limits.hpp"
#include "server/raft/disk.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/proposal_queue.hpp"
#include "server/raft/report.hpp"

namespace tenure::server::raft {

/// Bootstrap of an empty data directory.
enum class BootstrapMode : std::uint8_t {
  found,  ///< Initial member of a new cluster, or a single node.
  join,   ///< Member that waits to be added to an existing cluster.
};

struct NodeOptions {
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
  /// Become part of the state when this member leads and they differ from it.
  core::Limits limits{};
  /// Highest cluster version that this member agrees to. Lower than the newest of the program to
  /// prepare a downgrade.
  core::ClusterVersion version_max = core::newest_version;

  /// Silence of the leader after which an election starts. The timer of each member is random
  /// between one and two timeouts, so the default elects a leader within 600 ms. A shorter one
  /// detects failures sooner, and mistakes pauses of a process or a disk for failures more often.
  std::chrono::milliseconds election_timeout{300};
  /// Heartbeat interval: six heartbeats in one election timeout by default.
  std::chrono::milliseconds heartbeat{50};

  /// Maximum of commands in flight. Further ones are refused with `resource_exhausted`. Costs
  /// memory.
  ProposalQueue::Limits in_flight{};
  /// Limits of one entry, which is one write. Larger entries increase throughput and latency.
  std::size_t batch_commands_max = 4096;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Entries in flight while the next one fills. Always 1 with DiskMode::loop.
  std::size_t entries_in_flight_max = 2;
  /// Disk mode of a single node; a cluster member always uses DiskMode::thread.
  DiskMode disk = DiskMode::loop;

  /// Size of a log file, allocated in full. Larger files need fewer switches and more space.
  std::size_t segment_bytes = std::size_t{16} << 20;
  /// A snapshot is taken when the log behind the last one has more bytes than this and than
  /// `snapshot_factor` times the last snapshot. Bounds the log on disk and in memory, and the time
  /// of a start.
  std::size_t snapshot_log_bytes = std::size_t{64} << 20;
  std::size_t snapshot_factor = 2;
  /// Entries in flight to one peer, and entries kept behind a snapshot for peers that lag slightly.
  /// INVARIANT: trailing_entries > peer_entries_max (R5).
  std::uint32_t peer_entries_max = 256;
  std::uint32_t trailing_entries = 1024;
  /// Interval of checks for space on a full disk.
  std::chrono::milliseconds space_retry{1000};
  /// Delay after a failed snapshot.
  std::chrono::milliseconds snapshot_retry{10'000};

  /// Receives log events. Called from several threads.
  Report report = ignore_event;
};

}  // namespace tenure::server::raft
