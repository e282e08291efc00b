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

/// What an empty folder becomes.
enum class BootstrapMode : std::uint8_t {
  found,  ///< A member of a new cluster.
  join,   ///< A member that waits to be added to one that is there.
};

struct NodeOptions {
  /// Where everything is kept. Made if it is not there.
  std::filesystem::path folder;
  /// What the configuration says; 0 accepts what the folder says. A new folder gets a random
  /// cluster and member 1 for what is 0.
  ExpectedIdentity identity{};
  /// Counts for an empty folder only.
  BootstrapMode bootstrap_mode = BootstrapMode::found;
  /// Of a new cluster: the same list on each of them, this one included. Empty: it is alone, and
  /// stays so. REQUIRES: with others `identity` is given in full, and the same cluster everywhere.
  std::vector<Member> initial_members{};
  /// Become part of the state when this member leads and they differ from it.
  core::Limits limits{};
  /// Highest cluster version that this member agrees to. Lower than the newest of the program to
  /// prepare a downgrade.
  core::ClusterVersion version_max = core::newest_version;

  /// Silence of a leader after which another is elected. A timer of a member runs out between once
  /// and twice this time, and the first elects: so the default finds a new leader within 600 ms.
  /// Shorter finds it sooner, and takes a pause of a process or a disk for its death sooner.
  std::chrono::milliseconds election_timeout{300};
  /// A leader is never silent for longer: six chances to be heard before anybody doubts.
  std::chrono::milliseconds heartbeat{50};

  /// How much may wait for an answer. More is refused with `resource_exhausted`. Costs memory.
  ProposalQueue::Limits in_flight{};
  /// How much goes into one entry, which is one write. More makes a burst quicker and everybody's
  /// answer later.
  std::size_t batch_commands_max = 4096;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Entries that may be on their way while the next fills. With DiskPlace::loop always one.
  std::size_t entries_in_flight_max = 2;
  /// Of a member that is alone; with others it is always a thread.
  DiskMode disk = DiskMode::loop;

  /// Of one file of the log, reserved in full. Larger ones are rarer to change and cost space.
  std::size_t segment_bytes = std::size_t{16} << 20;
  /// A snapshot is taken when the log behind the last one has more bytes than this and than
  /// `snapshot_factor` times the last snapshot. Bounds the log on disk and in memory, and the time
  /// of a start.
  std::size_t snapshot_log_bytes = std::size_t{64} << 20;
  std::size_t snapshot_factor = 2;
  /// With others: entries that may be on their way to one of them, and those kept behind a snapshot
  /// for one that is a little behind. INVARIANT: more of these (R5).
  std::uint32_t peer_entries_max = 256;
  std::uint32_t trailing_entries = 1024;
  /// How often to look for space on a full disk.
  std::chrono::milliseconds space_retry{1000};
  /// How long to wait after a snapshot that failed.
  std::chrono::milliseconds snapshot_retry{10'000};

  /// Receives log events. Called from several threads.
  Report report = ignore_event;
};

}  // namespace tenure::server::raft
