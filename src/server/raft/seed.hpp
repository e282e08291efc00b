#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"

namespace tenure::server::raft {

// How a member that was alone becomes a cluster, and how a lost one is begun anew out of a backup:
// not live (a sole voter never grows, ENGINE.md R2) but by a planned restart in which one state
// seeds all.

/// What revisions, and the ids of leases that the store chooses, go on by. A backup does not know
/// what was handed out after it, and a token that came twice would let a dead holder write: this is
/// more than any store does between a backup and its end (a million commands a second for twelve
/// days), and can be done sixteen million times.
inline constexpr std::uint64_t seed_step = std::uint64_t{1} << 40;

/// The state that a folder holds, as a snapshot's body: its snapshot and all of its log. Of a
/// member that was alone this is everything that was ever acknowledged. Of one of several it may
/// lack the last commands, or have some whose outcome nobody knows: take the folder with the
/// longest log. Leaves the folder as a start would. Errors as of Node::open(). Or the state that
/// `tenure snapshot save` put into a file, which is that of one moment.
[[nodiscard]] Result<std::string> read_state(const std::filesystem::path& path);

struct Seed {
  std::filesystem::path folder{};  ///< Of one member; does not exist, or is empty.
  /// Both given, and a cluster that was never used before. Of one alone: as of a new folder.
  ExpectedIdentity identity{};
  /// All voters of the new cluster, this one included. Empty: it is alone, and stays so.
  std::vector<Member> members{};
  std::string_view body{};  ///< What read_state() gave, the same for each of them.
};

/// Writes the folder of one member of a new cluster, and says which. Its state is this one: locks,
/// leases and cluster time go on where they were, revisions and so tokens a `seed_step` further,
/// and watches of anything before it are told that it is gone. To be done for each of the members
/// before the first starts. `invalid_argument`: the list, the body or the folder is not usable;
/// nothing was written.
[[nodiscard]] Result<ClusterId> plant(const Seed& seed);

}  // namespace tenure::server::raft
