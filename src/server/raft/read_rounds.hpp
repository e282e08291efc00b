#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "server/raft/entry.hpp"
#include "server/store.hpp"

namespace tenure::server::raft {

/// Reads that wait until a quorum of voters has confirmed, after the read came, that the leader's
/// term is still the newest. Many reads share one round of questions; while one is on its way,
/// those that come gather for the next. Knows no clock, nobody to ask and nobody to answer: all
/// that is its owner's.
class ReadRounds {
 public:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] bool is_idle() const noexcept { return waiting_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }

  /// Waits for a round that has not begun.
  void add(Store::Look look, Time until) {
    waiting_.push_back({.look = std::move(look), .round = round_ + 1, .until = until});
  }
  /// Whether somebody waits for a round, and none is on its way.
  [[nodiscard]] bool wants_round() const noexcept {
    return !waiting_.empty() && (waiting_.back().round > round_) && confirmed_ >= round_;
  }
  /// The number of the next round, which from now on is on its way. Covers all who wait.
  [[nodiscard]] std::uint64_t begin_round(Time now) {
    began_at_ = now;
    return ++round_;
  }
  [[nodiscard]] Time began_at() const noexcept { return began_at_; }
  /// When a round that was not confirmed is to be repeated, or a read has waited too long.
  [[nodiscard]] std::optional<Time> deadline(std::chrono::milliseconds repeat) const {
    if (waiting_.empty()) {
      return std::nullopt;
    }
    return std::min(waiting_.front().until, began_at_ + repeat);
  }

  void answered(MemberId voter, std::uint64_t round) {
    auto& newest = answers_[voter];
    newest = std::max(newest, round);
  }
  /// Those whose round a quorum of the voters among these has answered, oldest first; `self` is one
  /// of them and need not be asked.
  [[nodiscard]] std::vector<Store::Look> take_confirmed(const std::vector<Member>& members,
                                                        MemberId self);
  [[nodiscard]] std::vector<Store::Look> take_expired(Time now);
  /// Everybody who waits. What was answered to former rounds is forgotten.
  [[nodiscard]] std::vector<Store::Look> take_all();

 private:
  struct Waiting {
    Store::Look look;
    std::uint64_t round{};
    Time until;
  };

  std::deque<Waiting> waiting_;  ///< INVARIANT: rounds and times never decrease.
  std::map<MemberId, std::uint64_t> answers_;
  std::uint64_t round_ = 0;  ///< The last that was begun. Never the same twice.
  std::uint64_t confirmed_ = 0;
  Time began_at_;
};

}  // namespace tenure::server::raft
