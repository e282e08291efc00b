#pragma once

#include <memory>

#include "server/raft/node.hpp"

namespace tenure::server::raft {

/// What was found on the disk.
struct Node::Loaded {
  Folder folder;
  VoteFile votes;
  std::unique_ptr<SnapshotFile> snapshot_file;
  std::unique_ptr<Journal> journal;
  core::StateMachine machine;
  Recovered recovered;
};

}  // namespace tenure::server::raft
