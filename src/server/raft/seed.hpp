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

// Seeding: turns a single node into a cluster, and restores a lost cluster from a backup. Not
// online, because a sole voter never grows (R2): one state seeds the data directories of all
// members.

/// Increment of the revision and of generated lease ids. Tokens issued after the backup are
/// unknown, and a token that is issued twice would let a former holder write. 2^40 exceeds the
/// commands between a backup and the end of its store (12 days at 1,000,000/s), and 2^64 / 2^40 =
/// 16 million seeds fit.
inline constexpr std::uint64_t seed_step = std::uint64_t{1} << 40;

/// State of a data directory (snapshot and log), or of a file of `tenure snapshot save`, in the
/// format of a snapshot body. The directory of a single node contains everything that was
/// acknowledged. That of a cluster member may lack the last commands, or contain commands with an
/// unknown outcome: use the directory with the longest log. Truncates a torn log end like a start.
/// Errors: as Node::open().
[[nodiscard]] Result<std::string> read_state(const std::filesystem::path& path);

/// Whether the state may lack acknowledged commands.
enum class SeedSource : std::uint8_t {
  backup,   ///< It may. Grants are delayed until every missing lease has expired.
  current,  ///< Newest state of a single node that was stopped and is never started again.
};

/// Whether the new state contains the leases, holds and waits.
enum class SeedLeases : std::uint8_t { keep, drop };

struct Seed {
  std::filesystem::path folder{};  ///< Data directory of the new member; missing or empty.
  /// Complete identity with an unused cluster id. For a single node: as for a new directory.
  ExpectedIdentity identity{};
  /// Voters of the new cluster, this one included. Empty: a single node.
  std::vector<Member> members{};
  std::string_view body{};  ///< Result of read_state(), the same for each member.
  SeedSource source = SeedSource::backup;
  SeedLeases leases = SeedLeases::keep;
  /// Longest TTL of a lease that a client may still hold. Empty: limits.ttl_max of the state, at
  /// least the longest TTL in it; for a current state, the longest TTL in it.
  std::optional<core::ClusterTime> longest_ttl{};
};

/// Result of write_seed().
struct SeedResult {
  ClusterId cluster{};
  /// Delay of grants after the first start. 0: none.
  core::ClusterTime grants_after{};
};

/// Writes the data directory of one member of a new cluster. Cluster time continues, revisions and
/// tokens jump by `seed_step`, and watches from an earlier revision get an error. Leases and holds
/// of a current state continue; those of a backup need a confirmation (core/restore.hpp). Call it
/// for each member, with the same options, before the first one starts. `invalid_argument`: the
/// members, the body or the directory is invalid; nothing was written.
[[nodiscard]] Result<SeedResult> write_seed(const Seed& seed);

}  // namespace tenure::server::raft
