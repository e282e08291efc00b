#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"

namespace tenure::server::raft {

// How a member that was alone becomes a cluster, and how a lost one is begun anew out of a backup:
// not live (a sole voter never grows, rule R2) but by a planned restart in which one state
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

/// Whether the state may lack commands that the cluster it is from has acknowledged.
enum class SeedSource : std::uint8_t {
  backup,   ///< It may. Nothing is granted until clients cannot rely on what is missing.
  current,  ///< It is the last state: that of a single node that was stopped and is not used again.
};

/// What becomes of the leases of the state, with their holds and waits.
enum class SeedLeases : std::uint8_t { keep, drop };

struct Seed {
  std::filesystem::path folder{};  ///< Of one member; does not exist, or is empty.
  /// Both given, and a cluster that was never used before. Of one alone: as of a new folder.
  ExpectedIdentity identity{};
  /// All voters of the new cluster, this one included. Empty: it is alone, and stays so.
  std::vector<Member> members{};
  std::string_view body{};  ///< What read_state() gave, the same for each of them.
  SeedSource source = SeedSource::backup;
  SeedLeases leases = SeedLeases::keep;
  /// The longest ttl of any lease that a client may still rely on. Nothing: limits.ttl_max of the
  /// state, and no less than any ttl in it; of a current state the longest in it.
  std::optional<core::ClusterTime> longest_ttl{};
};

/// What write_seed() has written.
struct SeedResult {
  ClusterId cluster{};
  /// Nothing is granted for this long after the first start. 0: at once.
  core::ClusterTime grants_after{};
};

/// Writes the folder of one member of a new cluster. Its state is this one: cluster time goes on
/// where it was, revisions and so tokens a `seed_step` further, and watches of anything before get
/// an error. Leases and holds of a current state go on, those of a backup have to be confirmed
/// (core/restore.hpp). To be done for each of the members, with the same options, before the first
/// starts. `invalid_argument`: the list, the body or the folder is not usable; nothing was written.
[[nodiscard]] Result<SeedResult> write_seed(const Seed& seed);

}  // namespace tenure::server::raft
