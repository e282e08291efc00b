#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenure/strong.hpp>

namespace tenure::server::raft {

/// A place in the log. The first entry has 1; 0 is before everything.
using Index = Strong<std::uint64_t, struct IndexTag>;
/// A leadership. At most one member leads in each.
using Term = Strong<std::uint64_t, struct TermTag>;
/// 0 is nobody.
using MemberId = Strong<std::uint64_t, struct MemberIdTag>;
using ClusterId = Strong<std::uint64_t, struct ClusterIdTag>;

[[nodiscard]] constexpr Index next(Index index, std::uint64_t steps = 1) noexcept {
  return Index{index.get() + steps};
}

/// Numbers are those of the log on disk.
enum class EntryType : std::uint8_t {
  command = 1,  ///< For the state machine.
  barrier = 2,  ///< A new leader's first entry; says nothing.
  change = 3,   ///< The members from here on.
};

/// Bytes that several owners read: the log in memory, the disk, the peers.
using Bytes = std::shared_ptr<const std::string>;

struct Entry {
  Term term{};
  EntryType type = EntryType::command;
  Bytes payload;  ///< INVARIANT: not null.
};

/// What a snapshot stands for: all entries up to `index`.
struct SnapshotMark {
  Index index{};
  Term term{};  ///< Of the entry at `index`.
  Index configuration_index{};
  std::string configuration{};

  friend bool operator==(const SnapshotMark&, const SnapshotMark&) = default;
};

struct Snapshot {
  SnapshotMark mark{};
  Bytes body;
};

/// Who takes part, as a `change` entry carries it.
enum class MemberRole : std::uint8_t {
  standby = 0,  ///< Gets the log, does not count.
  voter = 1,
};

/// Both addresses of one together.
inline constexpr std::size_t member_addresses_bytes_max = 600;

struct Member {
  MemberId id{};
  MemberRole role = MemberRole::voter;
  std::string peer{};    ///< host:port where the other members reach it.
  std::string client{};  ///< host:port where clients reach it.

  friend bool operator==(const Member&, const Member&) = default;
};

/// Empty if that cannot be done: two members with one id or with the same addresses, or one whose
/// addresses are longer than member_addresses_bytes_max.
[[nodiscard]] std::string encode_members(const std::vector<Member>& members);
/// Empty if these bytes are no configuration.
[[nodiscard]] std::vector<Member> decode_members(const std::string& bytes);

}  // namespace tenure::server::raft
