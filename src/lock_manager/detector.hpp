#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_manager/options.hpp>

#include "lock_manager/transactions.hpp"
#include "lock_manager/waiter.hpp"
#include "sys/thread_safety.hpp"

namespace tenure::detail {

/// Deadlock detector: finds cycles in the wait-for graph and resolves them.
///
/// A search visits only transactions that are reachable from one, and latches one at a time, so
/// lock operations continue. Its edges may never have existed together; so a cycle that it finds is
/// searched again with all transactions stopped, before one becomes a victim (no false positives).
///
/// A cycle that exists only by queue order is resolved without a victim, by a grant out of turn.
///
/// Thread safe. One search runs at a time, because searches mark the transactions.
class Detector {
 public:
  Detector(Transactions& txns, const LockManagerOptions& options);

  /// Effect of a check.
  struct Resolution {
    std::optional<Deadlock> deadlock =
        std::nullopt;  ///< Deadlock through the start; if it is the victim, that one.
    std::optional<Deadlock> elsewhere =
        std::nullopt;       ///< Deadlock that a grant out of turn led to.
    bool admitted = false;  ///< A waiter was granted out of turn.
  };

  /// Resolves every cycle through `start`. REQUIRES: the caller holds no latch.
  Resolution check(TxnId start, std::optional<VictimPolicy> policy);

  /// Resolves one cycle among all waits. Returns nothing if there is none.
  std::optional<Deadlock> check_all();

  /// Reports of the last deadlocks, oldest first.
  [[nodiscard]] std::vector<DeadlockReport> recent() const;

 private:
  /// Whether operations continue during a search, or a Freeze has stopped them.
  enum class Mode : bool { running, frozen };
  using Cycle = std::vector<TxnId>;

  /// State of one call of check().
  struct CheckState {
    TxnId start;
    std::optional<VictimPolicy> policy;
    std::deque<TxnId> suspects;  ///< Transactions to search cycles through; the first is next.
    TxnId proposed = {};         ///< Victim that the custom policy chose.
    Cycle proposed_for = {};     ///< Cycle for which it chose.
    int proposals = 0;           ///< Number of calls of the custom policy.
  };

  /// Returns the last member of a cycle through `start`, if there is one. In mode `running`, it
  /// finds every existing cycle, but may report one that does not exist.
  [[nodiscard]] std::optional<TxnId> find_closing_member(TxnId start, Mode mode);
  /// A cycle through `start`; empty if there is none. REQUIRES: all transactions are stopped.
  [[nodiscard]] Cycle find_cycle_frozen(TxnId start);
  /// Calls use(txn) if there is such a transaction.
  void visit(TxnId txn, Mode mode, const auto& use);

  /// Wait of `txn` that is an edge to `next`.
  [[nodiscard]] Waiter* edge_of(Txn& txn, TxnId next);
  /// Grants one waiter of the cycle out of turn, if one is blocked by queue order only.
  [[nodiscard]] std::optional<TxnId> admit_one(const Cycle& cycle, Wakes& wakes);
  [[nodiscard]] std::vector<DeadlockMember> members_of(const Cycle& cycle);
  /// Returns the victim; nothing if the custom policy has to choose first.
  [[nodiscard]] std::optional<TxnId> decide(const std::vector<DeadlockMember>& members,
                                            const CheckState& state) const;
  /// Resolves a cycle through the first suspect with all transactions stopped; false if there is
  /// none. If the custom policy has to choose first, `undecided` gets the members.
  [[nodiscard]] bool resolve_frozen(CheckState& state, Resolution& resolution,
                                    std::vector<DeadlockMember>& undecided);
  /// Makes the victim fail: ends its waits, and its next call, with the deadlock.
  void abort_victim(const Deadlock& deadlock, Wakes& wakes);
  /// Adds a report for recent().
  void remember(Deadlock deadlock, std::vector<DeadlockMember> members);

  /// Transactions and their waits; they outlive the detector.
  Transactions& txns_;
  /// Policy of checks that name none.
  VictimPolicy policy_;
  /// Custom policy; empty: none.
  ChooseVictim choose_;
  /// Maximum number of reports.
  std::size_t kept_max_;

  /// Precedes all latches in the lock order. Held during a search, but not while the custom policy
  /// runs.
  std::mutex search_mutex_;
  std::uint64_t searches_ = 0;  // guarded by search_mutex_

  mutable std::mutex recent_mutex_;
  std::deque<DeadlockReport> recent_;  // guarded by recent_mutex_
};

}  // namespace tenure::detail
