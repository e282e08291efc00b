#pragma once

#include <cstddef>
#include <functional>
#include <thread>

#include <tenure/error.hpp>

#include "core/snapshot.hpp"
#include "core/state_machine.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/snapshot_file.hpp"

namespace tenure::server::raft {

/// Applies the commands of one entry; ignores entries of other types. An error if the payload is
/// not a batch.
[[nodiscard]] Result<void> replay(core::StateMachine& machine, const Entry& entry);

/// Input of a snapshot: the position in the log and an immutable image of the state.
struct CompactionPlan {
  SnapshotMark mark;
  core::Image image;  ///< Image of the state with exactly the entries up to `mark`.
};

/// Writes a snapshot and returns its size. The state machine continues in parallel: image and state
/// share their tables copy-on-write.
[[nodiscard]] Result<std::size_t> compact(CompactionPlan plan, SnapshotFile& file);

/// Runs compactions on a thread of its own, one at a time. Not thread safe.
class Compactor {
 public:
  using Finished = std::function<void(Result<std::size_t>)>;

  explicit Compactor(SnapshotFile& file) : file_(file) {}

  /// Starts a compaction; calls `finished` on the compaction thread. REQUIRES: none is running.
  void begin(CompactionPlan plan, Finished finished);

 private:
  /// Destination of the snapshots; it outlives this object.
  SnapshotFile& file_;
  /// Thread of the last compaction, running or finished.
  std::jthread thread_;
};

}  // namespace tenure::server::raft
