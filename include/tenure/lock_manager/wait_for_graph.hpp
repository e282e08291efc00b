#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>

namespace tenure {

/// Wait-for graph for callers with wait queues of their own. An edge a -> b means that transaction
/// a waits for a lock of transaction b. The LockManager needs none: it searches its own queues.
///
/// Thread safety: as a std::map.
class WaitForGraph {
 public:
  /// Records that `waiter` waits for `holder`. A transaction never waits for itself: ignored.
  void add_wait(TxnId waiter, TxnId holder);
  void add_waits(TxnId waiter, std::span<const TxnId> holders);

  /// Removes every edge that leaves `waiter`.
  void clear_waiter(TxnId waiter);

  /// Removes `txn` as waiter and as holder.
  void remove_txn(TxnId txn);

  /// Any cycle: each member waits for the next, the last for the first.
  [[nodiscard]] std::optional<std::vector<TxnId>> detect_cycle() const;

  /// A cycle through `start`, beginning with it. Cycles that are only reachable from `start` are
  /// left to detect_cycle().
  [[nodiscard]] std::optional<std::vector<TxnId>> cycle_from(TxnId start) const;

  /// Chooses by id alone: the largest id for youngest, the smallest for oldest. The policies that
  /// look at more than the id choose the youngest. Nothing for an empty cycle.
  [[nodiscard]] static std::optional<TxnId> pick_victim(
      std::span<const TxnId> cycle, VictimPolicy policy = VictimPolicy::youngest);

  /// Whether there are no edges.
  [[nodiscard]] bool is_empty() const noexcept { return edges_.empty(); }

  /// Number of transactions that wait.
  [[nodiscard]] std::size_t waiter_count() const noexcept { return edges_.size(); }

 private:
  /// INVARIANT: no set is empty, so a waiter is in the map iff it waits.
  std::map<TxnId, std::set<TxnId>> edges_;
};

}  // namespace tenure
