#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_manager/lock_manager.hpp>
#include <tenure/lock_manager/options.hpp>
#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_mode.hpp>

#include "lock_manager/detector.hpp"
#include "lock_manager/names.hpp"
#include "lock_manager/point_table.hpp"
#include "lock_manager/range_table.hpp"
#include "lock_manager/transactions.hpp"
#include "lock_manager/waiter.hpp"

namespace tenure::detail {

/// Reference to the calling transaction: its id, and its record if a handle has pinned that, which
/// saves the lookup.
struct TxnRef {
  TxnId id;
  Txn* pinned = nullptr;
};

/// Engine behind LockManager and Transaction: one table per kind of target, the transactions, and
/// the deadlock detector. LockManager documents the contract of each call.
///
/// Latch order: the stripe of a transaction, a shard of a table, a shard of the names; never two of
/// one kind, except in Transactions::Freeze. No user code runs while a latch is held.
///
/// Thread safe.
class LockTable {
 public:
  explicit LockTable(const LockManagerOptions& options);

  /// Creates or finds the record of a transaction for a handle. It stays until unpin(), which also
  /// ends the transaction.
  [[nodiscard]] Txn& pin(const TransactionOptions& options);
  void unpin(Txn& txn);

  // Overloads for numbered resources avoid the variant on the hot path.
  [[nodiscard]] Result<void> try_acquire(TxnRef caller, ResourceId resource, LockMode mode);
  [[nodiscard]] Result<void> acquire(TxnRef caller, ResourceId resource, LockMode mode);
  [[nodiscard]] Result<void> acquire(TxnRef caller, ResourceId resource, LockMode mode,
                                     const WaitOptions& wait);
  [[nodiscard]] RequestResult request(TxnRef caller, ResourceId resource, LockMode mode);
  [[nodiscard]] Result<void> release(TxnRef caller, ResourceId resource);

  [[nodiscard]] Result<void> try_acquire(TxnRef caller, const Target& target, LockMode mode);
  [[nodiscard]] Result<void> acquire(TxnRef caller, const Target& target, LockMode mode,
                                     const WaitOptions& wait);
  [[nodiscard]] RequestResult request(TxnRef caller, const Target& target, LockMode mode);
  void cancel_wait(TxnRef caller);

  [[nodiscard]] Result<void> release(TxnRef caller, const Target& target);
  std::size_t release_all(TxnRef caller);
  [[nodiscard]] Result<void> downgrade(TxnRef caller, const Target& target, LockMode mode);

  [[nodiscard]] std::optional<LockMode> mode_held(TxnId txn, const Target& target);
  [[nodiscard]] std::size_t lock_count(TxnRef caller);
  [[nodiscard]] std::uint64_t age(TxnRef caller);
  [[nodiscard]] std::optional<Deadlock> verdict(TxnRef caller);

  [[nodiscard]] std::optional<Deadlock> find_deadlock() { return detector_.check_all(); }
  [[nodiscard]] std::vector<DeadlockReport> recent_deadlocks() const { return detector_.recent(); }
  [[nodiscard]] std::size_t holder_count(const Target& target);
  [[nodiscard]] std::size_t range_count(ResourceId space);
  [[nodiscard]] std::size_t waiting_count();
  [[nodiscard]] std::size_t shards() const noexcept { return numbers_.shards(); }
  [[nodiscard]] LockSnapshot snapshot();

 private:
  /// Calls use(table, key) with the table for the kind of the target.
  template <class Use>
  auto with_table(const Target& target, Use&& use);

  /// One attempt without waiting.
  template <class Table, class Key>
  Attempt attempt(Table& table, const Key& key, TxnRef caller, LockMode mode);
  /// Arguments of a blocking acquire.
  struct Wait {
    TxnRef caller;
    LockMode mode{};
    const WaitOptions& options;
  };
  /// Queues a waiter and blocks the thread until it is completed.
  template <class Table, class Key>
  Result<void> wait(Table& table, const Key& key, const Wait& asked);
  /// Result of one step of a polled request.
  struct RequestStep {
    RequestResult answer;
    bool may_close_a_cycle = false;
  };
  /// One step of a polled request, without a deadlock search.
  template <class Table, class Key>
  RequestStep request_once(Table& table, const Key& key, TxnRef caller, LockMode mode);
  /// A polled request with the deadlock search that it may need.
  template <class Table, class Key>
  RequestResult request_and_check(Table& table, const Key& key, TxnRef caller, LockMode mode);

  [[nodiscard]] Transactions::Entered enter(TxnRef caller) {
    return caller.pinned != nullptr ? txns_.enter(*caller.pinned) : txns_.enter(caller.id);
  }
  [[nodiscard]] Transactions::Entered enter_existing(TxnRef caller) {
    return caller.pinned != nullptr ? txns_.enter(*caller.pinned) : txns_.enter_existing(caller.id);
  }
  /// Result of a wait whose thread has returned; removes the waiter.
  [[nodiscard]] Result<void> finish_wait(Waiter& waiter, TxnRef caller, const WaitOptions& options);
  /// Cancels all waits of a transaction.
  [[nodiscard]] std::size_t end_waits(Txn& txn, Wakes& wakes);
  /// Releases at most `at_most` locks of a transaction.
  [[nodiscard]] std::size_t release_some(Txn& txn, std::size_t at_most, Wakes& wakes);
  /// Releases the rest in portions, and yields the stripe between them.
  [[nodiscard]] std::size_t finish_release(Txn& txn, std::size_t count);
  /// Whether a new wait of `txn` may close a cycle; conservative.
  [[nodiscard]] bool may_close_a_cycle(Txn& txn);
  /// Result of an attempt for the caller. A victim gets the deadlock error, and is then notified.
  [[nodiscard]] Result<void> result_of(Attempt attempt, TxnRef caller);
  /// Records that the victim has got the deadlock error.
  void mark_notified(TxnRef caller);

  /// Options as given to the constructor.
  LockManagerOptions options_;
  /// Numbers of the named resources that are in use.
  NameTable known_names_;
  /// Records of all transactions.
  Transactions txns_;
  /// Locks on numbered resources.
  PointTable<PointKind::number> numbers_;
  /// Locks on named resources, by the numbers of their names.
  PointTable<PointKind::name> names_;
  /// Locks on ranges of integer keys.
  RangeTable<KeysOf> keys_;
  /// Locks on ranges of byte strings.
  RangeTable<BytesOf> bytes_;
  /// Deadlock detector. Declared after the tables and transactions that it searches.
  Detector detector_;
  /// Id of the next transaction that gets none from its engine.
  std::atomic<std::uint64_t> next_txn_;
};

}  // namespace tenure::detail
