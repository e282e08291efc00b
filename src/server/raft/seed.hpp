#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"

namespace tenure::server::raft {

// How a member that was alone becomes a cluster, and how a lost cluster is begun anew: not live (a
// sole voter never grows, ENGINE.md R2) but by a planned restart in which one state seeds all.

/// The state that a folder holds, as a snapshot's body: its snapshot and all of its log. Of a
/// member that was alone this is everything that was ever acknowledged. Of one of several it may
/// lack the last commands, or have some whose outcome nobody knows: take the folder with the
/// longest log. Leaves the folder as a start would. Errors as of Node::open().
[[nodiscard]] Result<std::string> read_state(const std::filesystem::path& folder);

struct Seed {
  std::filesystem::path folder{};  ///< Of one member; does not exist, or is empty.
  ExpectedIdentity identity{};     ///< Both given. A cluster that was never used before.
  std::vector<Member> members{};   ///< All voters of the new cluster, this one included.
  std::string_view body{};         ///< What read_state() gave, the same for each of them.
};

/// Writes the folder of one member of a new cluster whose state is this one: revision, tokens and
/// cluster time go on where they were. To be done for each of the members before the first starts.
/// `invalid_argument`: the list, the body or the folder is not usable; nothing was written.
[[nodiscard]] Result<void> plant(const Seed& seed);

}  // namespace tenure::server::raft
