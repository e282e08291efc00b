#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_manager/options.hpp>
#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_manager/transaction.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

/// Outcome of LockManager::request().
class [[nodiscard]] RequestResult {
 public:
  /// Called by request().
  [[nodiscard]] static RequestResult granted() { return RequestResult(State::granted); }
  [[nodiscard]] static RequestResult waiting() { return RequestResult(State::waiting); }
  explicit RequestResult(Deadlock deadlock)
      : state_(State::refused), why_(std::make_shared<const Why>(std::move(deadlock))) {}
  explicit RequestResult(Error error)
      : state_(State::refused), why_(std::make_shared<const Why>(std::move(error))) {}

  /// The lock is held.
  [[nodiscard]] bool is_granted() const noexcept { return state_ == State::granted; }
  /// The request is in the wait queue: call request() again later, or cancel_wait().
  [[nodiscard]] bool is_waiting() const noexcept { return state_ == State::waiting; }
  /// The request closed a cycle. If the caller is the victim, it must call release_all(). If
  /// another transaction is, that one receives Errc::deadlock, and this request is in the wait
  /// queue.
  [[nodiscard]] const Deadlock* deadlock() const noexcept {
    return std::get_if<Deadlock>(why_.get());
  }
  /// Limit or invalid argument: nothing changed.
  [[nodiscard]] const Error* error() const noexcept { return std::get_if<Error>(why_.get()); }

  friend bool operator==(const RequestResult& a, const RequestResult& b) {
    return a.state_ == b.state_ && (a.why_ == b.why_ || *a.why_ == *b.why_);
  }

 private:
  enum class State : std::uint8_t { granted, waiting, refused };
  using Why = std::variant<Deadlock, Error>;
  explicit RequestResult(State state) noexcept : state_(state) {}

  State state_;
  /// INVARIANT: set iff refused. A pointer, because the frequent outcomes must be cheap to copy.
  std::shared_ptr<const Why> why_ = nullptr;
};

/// In-process lock manager of a database or a storage engine: rows, pages, tables and key ranges
/// with intention modes, fair wait queues and exact deadlock detection. It persists nothing and
/// manages no transaction life cycle.
///
/// Two interfaces, which may be mixed: begin() returns a Transaction that releases its locks at the
/// end of its scope; the calls with a TxnId serve engines with transactions of their own. A TxnId
/// needs no registration; it exists while it holds or awaits a lock.
///
/// Order: requests for one lock are granted in arrival order. No request overtakes a waiter that it
/// conflicts with, not even a try_ form. Compatible neighbours are granted together. Upgrades go
/// before requests of transactions that hold nothing.
///
/// Thread safety: all members may be called from any thread. Copies share one table.
class LockManager {
 public:
  /// An empty table.
  LockManager();
  explicit LockManager(const LockManagerOptions& options);

  /// A manager with this number of shards, rounded up to a power of two; 0 counts as 1.
  [[nodiscard]] static LockManager with_shards(std::size_t shards);

  /// Begins a transaction without locks.
  [[nodiscard]] Transaction begin(const TransactionOptions& options = {}) const;

  /// Acquires or upgrades a lock, or returns Errc::would_block and changes nothing.
  [[nodiscard]] Result<void> try_acquire(TxnId txn, const Target& target, LockMode mode) const;
  [[nodiscard]] Result<void> try_acquire(TxnId txn, ResourceId resource, LockMode mode) const;
  [[nodiscard]] Result<void> try_acquire_range(TxnId txn, ResourceId space, const KeyRange& range,
                                               LockMode mode) const;

  /// As try_acquire, but waits in the wait queue.
  [[nodiscard]] Result<void> acquire(TxnId txn, const Target& target, LockMode mode,
                                     const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> acquire(TxnId txn, ResourceId resource, LockMode mode,
                                     const WaitOptions& wait) const;
  [[nodiscard]] Result<void> acquire(TxnId txn, ResourceId resource, LockMode mode) const;

  /// Non-blocking form of acquire: the request keeps its position in the wait queue and is granted
  /// there; the next request() for it reports the grant. A transaction may have several pending
  /// requests.
  [[nodiscard]] RequestResult request(TxnId txn, const Target& target, LockMode mode) const;
  [[nodiscard]] RequestResult request(TxnId txn, ResourceId resource, LockMode mode) const;

  /// Cancels the waits of the transaction: its pending requests, including granted ones that no
  /// request() has reported yet, and its blocked threads, which return Errc::cancelled.
  void cancel_wait(TxnId txn) const;

  /// Releases one acquisition. Errc::not_held if there is none.
  [[nodiscard]] Result<void> release(TxnId txn, const Target& target) const;
  [[nodiscard]] Result<void> release(TxnId txn, ResourceId resource) const;
  [[nodiscard]] Result<void> release_range(TxnId txn, ResourceId space,
                                           const KeyRange& range) const;

  /// Releases all locks and cancels all waits; returns the number of locks. The victim of a
  /// deadlock remains one until it has received the error, or until this call finds nothing to
  /// release.
  std::size_t release_all(TxnId txn) const;  // NOLINT(modernize-use-nodiscard): may be ignored

  /// Downgrades the hold of `txn` to `mode`. See Transaction::downgrade().
  [[nodiscard]] Result<void> downgrade(TxnId txn, const Target& target, LockMode mode) const;

  /// Searches all waits for a deadlock and resolves it: the victim receives Errc::deadlock, and no
  /// later call reports the same one. Needed only with Detection::on_demand.
  [[nodiscard]] std::optional<Deadlock> find_deadlock() const;

  /// The most recent resolved deadlocks, oldest first.
  [[nodiscard]] std::vector<DeadlockReport> recent_deadlocks() const;

  /// Number of transactions that hold `target`; for keys of a space, exactly this range.
  [[nodiscard]] std::size_t holder_count(const Target& target) const;
  /// Mode in which `txn` holds it, if it does.
  [[nodiscard]] std::optional<LockMode> mode_held(TxnId txn, const Target& target) const;

  /// Number of ranges that are held in a space, of both kinds of keys.
  [[nodiscard]] std::size_t range_count(ResourceId space) const;

  /// Number of transactions that wait for a lock.
  [[nodiscard]] std::size_t waiting_count() const;

  /// Number of shards: a power of two.
  [[nodiscard]] std::size_t shards() const noexcept;

  /// Holders and waiters of all locks, with durations.
  [[nodiscard]] LockSnapshot snapshot() const;

 private:
  std::shared_ptr<detail::LockTable> table_;
};

}  // namespace tenure
