#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/deadlock.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>
#include <tenure/lock_options.hpp>
#include <tenure/snapshot.hpp>
#include <tenure/target.hpp>
#include <tenure/transaction.hpp>

namespace tenure {

/// What became of LockManager::request().
class [[nodiscard]] Acquisition {
 public:
  /// By request().
  [[nodiscard]] static Acquisition granted() { return Acquisition(State::granted); }
  [[nodiscard]] static Acquisition waiting() { return Acquisition(State::waiting); }
  explicit Acquisition(Deadlock deadlock)
      : state_(State::refused), why_(std::make_shared<const Why>(std::move(deadlock))) {}
  explicit Acquisition(Error error)
      : state_(State::refused), why_(std::make_shared<const Why>(std::move(error))) {}

  /// The lock is held: go on.
  [[nodiscard]] bool is_granted() const noexcept { return state_ == State::granted; }
  /// The request stands in the queue: do something else, and ask again or cancel_wait().
  [[nodiscard]] bool is_waiting() const noexcept { return state_ == State::waiting; }
  /// The request closed a cycle. If the victim is the caller it gives way by release_all();
  /// if it is another, that one is told, and the request stands in the queue.
  [[nodiscard]] const Deadlock* deadlock() const noexcept {
    return std::get_if<Deadlock>(why_.get());
  }
  /// A limit or a bad argument: nothing was changed.
  [[nodiscard]] const Error* error() const noexcept { return std::get_if<Error>(why_.get()); }

  friend bool operator==(const Acquisition& a, const Acquisition& b) {
    return a.state_ == b.state_ && (a.why_ == b.why_ || *a.why_ == *b.why_);
  }

 private:
  enum class State : std::uint8_t { granted, waiting, refused };
  using Why = std::variant<Deadlock, Error>;
  explicit Acquisition(State state) noexcept : state_(state) {}

  State state_;
  /// INVARIANT: there iff refused; so the usual answers cost next to nothing to make and to drop.
  std::shared_ptr<const Why> why_ = nullptr;
};

/// The lock table of a database or a storage engine, inside one process: rows, pages, tables and
/// key ranges with intention modes, fair queues and exact deadlock detection. It persists nothing
/// and runs no transaction life cycle.
///
/// Two ways to use it, which may be mixed: begin() gives a Transaction that waits and cleans up
/// after itself; the calls with a TxnId serve an engine that has transactions of its own. A TxnId
/// needs no announcement; it exists while it holds a lock or waits for one.
///
/// Order: requests for one lock are served in arrival order. Nobody overtakes a waiter he
/// conflicts with, also not by a try_ form; neighbours that are compatible go in together; who
/// holds the lock already and wants more goes before those who hold nothing.
///
/// Thread safety: all members may be called from any thread. Copies share one table.
class LockManager {
 public:
  /// An empty table.
  LockManager();
  explicit LockManager(const LockManagerOptions& options);

  /// A manager with `shards` parts, rounded up to a power of two; 0 counts as 1.
  [[nodiscard]] static LockManager with_shards(std::size_t shards);

  /// A transaction that holds nothing yet.
  [[nodiscard]] Transaction begin(const TransactionOptions& options = {}) const;

  /// Takes or upgrades a lock, or answers Errc::would_block and changes nothing.
  [[nodiscard]] Result<void> try_acquire(TxnId txn, const Target& target, LockMode mode) const;
  [[nodiscard]] Result<void> try_acquire(TxnId txn, ResourceId resource, LockMode mode) const;
  [[nodiscard]] Result<void> try_acquire_range(TxnId txn, ResourceId space, const KeyRange& range,
                                               LockMode mode) const;

  /// As try_acquire, but waits in the queue.
  [[nodiscard]] Result<void> acquire(TxnId txn, const Target& target, LockMode mode,
                                     const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> acquire(TxnId txn, ResourceId resource, LockMode mode,
                                     const WaitOptions& wait) const;
  [[nodiscard]] Result<void> acquire(TxnId txn, ResourceId resource, LockMode mode) const;

  /// As acquire, but the caller does the waiting: the request keeps its place in the queue, is
  /// granted there when its turn comes, and the next request() for it says so. A transaction may
  /// have several such waits at once.
  [[nodiscard]] Acquisition request(TxnId txn, const Target& target, LockMode mode) const;
  [[nodiscard]] Acquisition request(TxnId txn, ResourceId resource, LockMode mode) const;

  /// Calls off the transaction's waits: its pending requests, also those granted but not yet asked
  /// about, and its blocked threads, which answer Errc::cancelled.
  void cancel_wait(TxnId txn) const;

  /// Gives back one acquisition, or answers Errc::not_held.
  [[nodiscard]] Result<void> release(TxnId txn, const Target& target) const;
  [[nodiscard]] Result<void> release(TxnId txn, ResourceId resource) const;
  [[nodiscard]] Result<void> release_range(TxnId txn, ResourceId space,
                                           const KeyRange& range) const;

  /// Gives back everything and calls off every wait; returns how many locks there were. A
  /// deadlock's victim stays one until it was told, or until this finds nothing to give back.
  std::size_t release_all(TxnId txn) const;  // NOLINT(modernize-use-nodiscard): may be ignored

  /// Weakens what `txn` holds to `mode`. See Transaction::downgrade().
  [[nodiscard]] Result<void> downgrade(TxnId txn, const Target& target, LockMode mode) const;

  /// Looks through all waits for a deadlock and resolves it: the victim is told, and no other
  /// call finds the same one again. Needed only with Detection::on_demand.
  [[nodiscard]] std::optional<Deadlock> find_deadlock() const;

  /// The deadlocks resolved last, oldest first.
  [[nodiscard]] std::vector<DeadlockReport> recent_deadlocks() const;

  /// How many transactions hold `target` now; for keys of a space, that exact range.
  [[nodiscard]] std::size_t holder_count(const Target& target) const;
  /// What `txn` holds of it, if anything.
  [[nodiscard]] std::optional<LockMode> mode_held(TxnId txn, const Target& target) const;

  /// How many ranges are held in a space, of both kinds of keys.
  [[nodiscard]] std::size_t range_count(ResourceId space) const;

  /// How many transactions wait for a lock.
  [[nodiscard]] std::size_t waiting_count() const;

  /// How many parts the table has: a power of two.
  [[nodiscard]] std::size_t shards() const noexcept;

  /// Who holds, who waits, for how long.
  [[nodiscard]] LockSnapshot snapshot() const;

 private:
  std::shared_ptr<detail::LockTable> table_;
};

}  // namespace tenure
