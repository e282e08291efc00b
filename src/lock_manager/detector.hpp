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

/// Finds cycles of waits and ends them. A search follows only what can be reached from one
/// transaction and latches one transaction at a time, so what it finds may be a cycle of edges
/// that never were there together; therefore a cycle that was found is looked for again with all
/// transactions stopped before anybody has to give way.
class Detector {
 public:
  Detector(Transactions& txns, const LockManagerOptions& options);

  /// What a check did.
  struct Resolution {
    std::optional<Deadlock> deadlock = std::nullopt;   ///< Through the start; its own if a victim.
    std::optional<Deadlock> elsewhere = std::nullopt;  ///< Through somebody let in out of turn.
    bool admitted = false;                             ///< Somebody was let in out of turn.
  };

  /// Ends every cycle through `start`. REQUIRES: nothing is latched.
  Resolution check(TxnId start, std::optional<VictimPolicy> policy);

  /// Ends one cycle among all waits, if there is one.
  std::optional<Deadlock> check_all();

  [[nodiscard]] std::vector<DeadlockReport> recent() const;

 private:
  enum class Mode : bool { running, frozen };
  using Cycle = std::vector<TxnId>;

  /// One call of check(), as it goes on.
  struct CheckState {
    TxnId start;
    std::optional<VictimPolicy> policy;
    std::deque<TxnId> suspects;  ///< Through whom there may be a cycle; the first one is next.
    TxnId proposed = {};         ///< What the user's own policy said,
    Cycle proposed_for = {};     ///< of which cycle,
    int proposals = 0;           ///< and how often it was asked.
  };

  /// The last member of a cycle through `start`, if there is one. While the world runs, a cycle
  /// that is there is found, but one that is found may not be there.
  [[nodiscard]] std::optional<TxnId> find_closing_member(TxnId start, Mode mode);
  [[nodiscard]] Cycle find_cycle_frozen(TxnId start);
  /// Calls look(txn) if there is such a transaction.
  void visit(TxnId txn, Mode mode, const auto& use);

  [[nodiscard]] Waiter* edge_of(Txn& txn, TxnId next);
  [[nodiscard]] std::optional<TxnId> admit_one(const Cycle& cycle, Wakes& wakes);
  [[nodiscard]] std::vector<DeadlockMember> members_of(const Cycle& cycle);
  /// The victim; nothing if the user's own policy has yet to be asked.
  [[nodiscard]] std::optional<TxnId> decide(const std::vector<DeadlockMember>& members,
                                            const CheckState& state) const;
  /// Ends a cycle through the first suspect with all transactions stopped; false if there is none.
  /// If the user's own policy has yet to be asked, `undecided` gets the members.
  [[nodiscard]] bool resolve_frozen(CheckState& state, Resolution& resolution,
                                    std::vector<DeadlockMember>& undecided);
  void condemn(const Deadlock& deadlock, Wakes& wakes);
  void remember(Deadlock deadlock, std::vector<DeadlockMember> members);

  Transactions& txns_;
  VictimPolicy policy_;
  ChooseVictim choose_;
  std::size_t kept_max_;

  /// Before all latches. Held while searching, not while the user's own policy decides.
  std::mutex search_mutex_;
  std::uint64_t searches_ = 0;  // guarded by search_mutex_

  mutable std::mutex recent_mutex_;
  std::deque<DeadlockReport> recent_;  // guarded by recent_mutex_
};

}  // namespace tenure::detail
