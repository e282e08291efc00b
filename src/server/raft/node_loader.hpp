#pragma once

#include <cstdint>
#include <memory>

#include <tenure/error.hpp>

#include "core/state_machine.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/journal.hpp"
#include "server/raft/node_options.hpp"
#include "server/raft/replica.hpp"
#include "server/raft/snapshot_file.hpp"
#include "server/raft/vote_file.hpp"

namespace tenure::server::raft {

/// Kind of a group. A single node stays one (R2); it becomes a cluster by `tenured seed` only.
enum class GroupKind : std::uint8_t { single, cluster };

/// Contents of the folder of a node, ready to start from.
struct LoadedNode {
  Folder folder;
  VoteFile votes;
  std::unique_ptr<SnapshotFile> snapshot_file;
  std::unique_ptr<Journal> journal;
  core::StateMachine machine;
  Recovered recovered;
  bool had_log = false;  ///< Whether log files exist, even without entries.
  GroupKind group_kind = GroupKind::single;
};

/// Reads and checks the folder of a node, and initialises an empty one. Errors: as Node::open().
[[nodiscard]] Result<LoadedNode> load_node(const NodeOptions& options);

}  // namespace tenure::server::raft
