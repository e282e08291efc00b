#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "server/raft/entry.hpp"
#include "server/raft/time.hpp"
#include "server/store/store.hpp"

namespace tenure::server::raft {

struct ReadIndexOptions {
  MemberId self{};
  std::size_t reads_max = 100'000;  ///< Maximum number of waiting reads.
  /// Time after which a read that no quorum confirms expires.
  std::chrono::milliseconds timeout{300};
  /// Time after which a round that no quorum has acknowledged is repeated.
  std::chrono::milliseconds repeat{50};
};

/// Read index of a leader: linearizable reads without log entries (Ongaro's thesis, 6.4). A read
/// waits until a quorum of voters has acknowledged, in a round that began after the read arrived,
/// that the leader's term is still the newest. All reads that wait share one round; reads that
/// arrive during a round wait for the next one. Sends nothing and calls nothing back: the owner
/// sends the rounds and answers the reads. Not thread safe.
class ReadIndex {
 public:
  explicit ReadIndex(const ReadIndexOptions& options) : options_(options) {}

  [[nodiscard]] bool is_full() const noexcept { return waiting_.size() >= options_.reads_max; }
  /// The read waits for a round that has not begun. REQUIRES: !is_full().
  void add(Store::OnRead on_read, Time now);

  /// Begins a round if one is due, and returns its number, which the voters have to acknowledge.
  /// Due: a read waits for a round, and either none is on its way or the present one is to be
  /// repeated.
  [[nodiscard]] std::optional<std::uint64_t> next_round(Time now);
  void acknowledge(MemberId voter, std::uint64_t round);

  /// Reads that a quorum of the voters among `members` has confirmed, oldest first.
  [[nodiscard]] std::vector<Store::OnRead> take_confirmed(const std::vector<Member>& members);
  [[nodiscard]] std::vector<Store::OnRead> take_expired(Time now);
  /// All waiting reads. Acknowledgements of earlier rounds no longer count.
  [[nodiscard]] std::vector<Store::OnRead> take_all();

  /// Earliest time at which a round is repeated or a read expires.
  [[nodiscard]] std::optional<Time> deadline() const;

 private:
  struct Waiting {
    Store::OnRead on_read;
    std::uint64_t round{};  ///< First round that confirms the read.
    Time until;
  };

  /// Removes the oldest `count` reads.
  [[nodiscard]] std::vector<Store::OnRead> take_front(std::size_t count);

  const ReadIndexOptions options_;
  std::deque<Waiting> waiting_;                     ///< INVARIANT: rounds and times never decrease.
  std::map<MemberId, std::uint64_t> acknowledged_;  ///< Newest round of each voter.
  std::uint64_t round_ = 0;                         ///< Newest round. Numbers are never reused.
  std::uint64_t confirmed_ = 0;                     ///< Newest round that a quorum acknowledged.
  /// Time at which the newest round began.
  Time began_at_;
};

}  // namespace tenure::server::raft
