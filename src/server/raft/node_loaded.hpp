#pragma once

#include <cstdint>
#include <memory>

#include "server/raft/node.hpp"

namespace tenure::server::raft {

/// Whether a folder belongs to a group of one, which stays one.
enum class Company : std::uint8_t { alone, others };

/// What was found on the disk.
struct Node::Loaded {
  Folder folder;
  VoteFile votes;
  std::unique_ptr<SnapshotFile> snapshot_file;
  std::unique_ptr<Journal> journal;
  core::StateMachine machine;
  Recovered recovered;
  bool had_log = false;  ///< Perhaps without entries.
  Company company = Company::alone;
};

}  // namespace tenure::server::raft
