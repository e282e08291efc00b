#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <tenure/error.hpp>

#include "core/state_machine.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/snapshot_file.hpp"

namespace tenure::server::raft {

/// Applies the commands of one entry; nothing for entries of other types. An error if its payload
/// is not a batch.
[[nodiscard]] Result<void> replay(core::StateMachine& machine, const Entry& entry);

/// How to make the next snapshot out of the last one.
struct CompactionPlan {
  Index previous{};            ///< Of the snapshot on disk; 0: none, begin with an empty state.
  std::vector<Entry> entries;  ///< All that follow it, up to `mark`.
  SnapshotMark mark;
};

/// Makes a snapshot by restoring the last one and applying what came since. Nobody has to stop for
/// it, and every snapshot proves that the one before can be restored. Costs memory for a second
/// state while it lasts.
/// Gives the bytes of the state.
[[nodiscard]] Result<std::size_t> compact(const CompactionPlan& plan, SnapshotFile& file);

/// Runs compactions on a thread of their own, one at a time.
class Compactor {
 public:
  using Finished = std::function<void(Result<std::size_t>)>;

  explicit Compactor(SnapshotFile& file) : file_(file) {}

  /// REQUIRES: the one before has finished. `finished` is called on the other thread.
  void begin(CompactionPlan plan, Finished finished);

 private:
  SnapshotFile& file_;
  std::jthread thread_;
};

}  // namespace tenure::server::raft
