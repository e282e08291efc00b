#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/limits.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/proposal_queue.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::raft {

struct RaftStoreOptions {
  MemberId id{};
  std::uint32_t seed = 1;  ///< Seed of the random part of election timeouts.
  /// Silence of a leader after which another one is elected. Also the time after which a read that
  /// cannot be confirmed is refused and a leadership transfer is given up.
  std::chrono::milliseconds election_timeout{300};
  /// Maximum silence of a leader. At most half of the election timeout.
  std::chrono::milliseconds heartbeat{50};
  /// Become part of the state when this member leads and they differ from it.
  core::Limits limits{};
  /// Cluster versions of this member. When it leads, it proposes the version that next_version()
  /// chooses.
  Versions versions = newest_versions();

  /// Maximum of undecided commands. More are refused with `resource_exhausted`. Costs memory.
  ProposalQueue::Limits in_flight{};
  /// Maximum number of reads that wait to be confirmed.
  std::size_t reads_max = 100'000;
  /// Limits of one entry, which is one write. Larger ones make a burst faster and each answer
  /// later.
  std::size_t batch_commands_max = 4096;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Maximum number of entries in flight while the next one fills.
  std::size_t entries_in_flight_max = 2;
  /// Maximum number of entries in flight to one peer, and number of entries kept behind a snapshot
  /// for peers that are a little behind. INVARIANT: more of the latter (R5).
  std::uint32_t peer_entries_max = 256;
  std::uint32_t trailing_entries = 1024;

  /// A snapshot is taken when the log behind the last one has more bytes than this and than
  /// `snapshot_factor` times the last snapshot. Bounds the log on disk and in memory, and the time
  /// of a start.
  std::size_t snapshot_log_bytes = std::size_t{64} << 20;
  std::size_t snapshot_factor = 2;
  std::string disk_name = "this member";  ///< Name of the disk in the error of a full one.
  /// Interval of checks for space on a full disk.
  std::chrono::milliseconds space_retry{1000};
  /// Pause after a snapshot that failed.
  std::chrono::milliseconds snapshot_retry{10'000};
};

}  // namespace tenure::server::raft
