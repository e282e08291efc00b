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

/// Applies the commands of one entry; nothing for entries of other types. An error if its payload
/// is not a batch.
[[nodiscard]] Result<void> replay(core::StateMachine& machine, const Entry& entry);

/// The next snapshot, before it is written.
struct CompactionPlan {
  SnapshotMark mark;
  core::Image image;  ///< Of the state when all up to `mark` was applied, and nothing else.
};

/// Writes a snapshot. Nobody has to stop for it: the state goes on, and what it changes meanwhile
/// it no longer shares with the image. Gives the bytes of the state.
[[nodiscard]] Result<std::size_t> compact(CompactionPlan plan, SnapshotFile& file);

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
