#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenure/strong.hpp>

namespace tenure::server::raft {

/// Index of a log entry. The first entry has index 1; 0 means before the first.
using Index = Strong<std::uint64_t, struct IndexTag>;
/// Raft term. At most one member leads in a term.
using Term = Strong<std::uint64_t, struct TermTag>;
/// Id of a member; 0: none.
using MemberId = Strong<std::uint64_t, struct MemberIdTag>;
using ClusterId = Strong<std::uint64_t, struct ClusterIdTag>;

[[nodiscard]] constexpr Index next(Index index, std::uint64_t steps = 1) noexcept {
  return Index{index.get() + steps};
}

/// Type of an entry. Disk format: values are never reused.
enum class EntryType : std::uint8_t {
  command = 1,  ///< Batch of commands for the state machine.
  barrier = 2,  ///< No-op entry of a new leader.
  change = 3,   ///< Configuration: the members from this entry on.
};

/// Immutable bytes shared by the log in memory, the disk and the peers.
using Bytes = std::shared_ptr<const std::string>;

struct Entry {
  Term term{};
  EntryType type = EntryType::command;
  Bytes payload;  ///< INVARIANT: not null.
};

/// Position of a snapshot: it replaces all entries up to `index`.
struct SnapshotMark {
  Index index{};
  Term term{};  ///< Term of the entry at `index`.
  Index configuration_index{};
  std::string configuration{};

  friend bool operator==(const SnapshotMark&, const SnapshotMark&) = default;
};

struct Snapshot {
  SnapshotMark mark{};
  Bytes body;
};

/// Role of a member in the configuration. Disk format: values are never reused.
enum class MemberRole : std::uint8_t {
  learner = 0,  ///< Receives the log; does not vote or count for a quorum.
  voter = 1,
};

/// Maximum length of both addresses of a member together.
inline constexpr std::size_t member_addresses_bytes_max = 600;

struct Member {
  MemberId id{};
  MemberRole role = MemberRole::voter;
  std::string peer{};    ///< Advertised host:port for the other members.
  std::string client{};  ///< Advertised host:port for clients.

  friend bool operator==(const Member&, const Member&) = default;
};

/// Encodes a configuration; empty if it is invalid: a repeated id or address, or addresses longer
/// than member_addresses_bytes_max.
[[nodiscard]] std::string encode_members(const std::vector<Member>& members);
/// Decodes a configuration; empty if the bytes are invalid.
[[nodiscard]] std::vector<Member> decode_members(const std::string& bytes);

}  // namespace tenure::server::raft
