#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/deadlock.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>
#include <tenure/lock_options.hpp>
#include <tenure/target.hpp>

namespace tenure {

namespace detail {
class LockTable;
struct Txn;
}  // namespace detail

class ScopedLock;

/// One owner's locks, released together when it ends (strict two-phase locking).
///
///                   | lock(m)                         | try_lock(m)     | unlock
///  -----------------+---------------------------------+-----------------+---------------
///  not held by us   | waits in arrival order          | or would_block  | not_held
///  held, covers m   | granted at once, counted        | same            | count - 1
///  held, weaker     | waits before all others, join   | or would_block  | count - 1
///  chosen as victim | deadlock, until unlock_all()    | same            | count - 1
///
/// A lock that was acquired n times is released by the n-th unlock; its mode never falls before
/// that, except by downgrade().
///
/// Thread safety: all members may be called from any thread, except moving and destroying.
class [[nodiscard]] Transaction {
 public:
  /// The other is none afterwards; what this one held is released.
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  /// Its number; and its age, by which the victim of a deadlock is chosen: smaller is older.
  [[nodiscard]] TxnId id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t age() const;

  /// Waits for `mode`, upgrading what we already hold. Errc::deadlock means: give way, that is
  /// unlock_all() or restart(); the lock was not taken and the earlier ones are still held.
  [[nodiscard]] Result<void> lock(const Target& target, LockMode mode,
                                  const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> lock(ResourceId resource, LockMode mode,
                                  const WaitOptions& wait) const;
  [[nodiscard]] Result<void> lock(ResourceId resource, LockMode mode) const;

  /// Errc::would_block instead of waiting.
  [[nodiscard]] Result<void> try_lock(const Target& target, LockMode mode) const;
  [[nodiscard]] Result<void> try_lock(ResourceId resource, LockMode mode) const;

  /// lock() with a deadline: Errc::timed_out leaves no trace in the queue.
  [[nodiscard]] Result<void> try_lock_for(const Target& target, LockMode mode,
                                          std::chrono::nanoseconds patience) const;
  [[nodiscard]] Result<void> try_lock_until(const Target& target, LockMode mode,
                                            std::chrono::steady_clock::time_point deadline) const;

  /// lock() that ends with the returned handle instead of the transaction.
  [[nodiscard]] Result<ScopedLock> lock_scoped(const Target& target, LockMode mode,
                                               const WaitOptions& wait = {}) const;

  /// Locks a node of a tree by its path, and its ancestors in the intention mode that goes with
  /// it: lock_path({"db", "users", "42"}, X) takes IX on "db" and "db/users", X on "db/users/42".
  /// On failure the ancestors taken by this call are given back. Errc::invalid_argument if the
  /// path is empty or deeper than 64, or a step is empty or contains '/'.
  [[nodiscard]] Result<void> lock_path(std::span<const std::string_view> path, LockMode mode,
                                       const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> lock_path(std::initializer_list<std::string_view> path, LockMode mode,
                                       const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> try_lock_path(std::span<const std::string_view> path,
                                           LockMode mode) const;

  /// Gives back what one lock_path() took, leaf first.
  [[nodiscard]] Result<void> unlock_path(std::span<const std::string_view> path) const;

  /// Gives back one acquisition. For keys of a space the exact range, last acquired first.
  [[nodiscard]] Result<void> unlock(const Target& target) const;
  [[nodiscard]] Result<void> unlock(ResourceId resource) const;

  /// Weakens what we hold to `mode` and lets in who can now proceed. Errc::invalid_argument if
  /// what we hold does not cover `mode`.
  [[nodiscard]] Result<void> downgrade(const Target& target, LockMode mode) const;

  /// What we hold, if anything. For keys of a space: the join over that exact range.
  [[nodiscard]] std::optional<LockMode> mode_held(const Target& target) const;

  /// How many locks we hold; a lock acquired twice counts once, a range each time.
  [[nodiscard]] std::size_t lock_count() const;

  /// Releases everything and calls off our waits; returns how many locks there were. Afterwards
  /// the transaction may be used again, with its old age; a victim that was told is one no more.
  std::size_t unlock_all() const;  // NOLINT(modernize-use-nodiscard): may be ignored
  std::size_t restart() const { return unlock_all(); }  // NOLINT(modernize-use-nodiscard)

  /// Why we are to give way, from the moment we are chosen until unlock_all().
  [[nodiscard]] std::optional<Deadlock> deadlock() const;

 private:
  friend class LockManager;
  friend class ScopedLock;
  Transaction(std::shared_ptr<detail::LockTable> table, detail::Txn& txn) noexcept;

  void end() noexcept;

  std::shared_ptr<detail::LockTable> table_;
  detail::Txn* txn_;  ///< Pinned in table_ while we live.
  TxnId id_;
};

/// One acquisition of a lock by a transaction, released on destruction. Movable, not copyable.
/// REQUIRES: the transaction lives at least as long, and is not moved.
///
/// Thread safety: as a std::unique_ptr.
class [[nodiscard]] ScopedLock {
 public:
  /// Holds nothing.
  ScopedLock() noexcept = default;
  /// The other holds nothing afterwards; what this one held is released.
  ScopedLock(ScopedLock&& other) noexcept;
  ScopedLock& operator=(ScopedLock&& other) noexcept;
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;
  ~ScopedLock();

  /// True until unlock().
  [[nodiscard]] bool owns_lock() const noexcept { return txn_ != nullptr; }
  explicit operator bool() const noexcept { return owns_lock(); }

  /// Releases now and tells how it went; Errc::not_held if the transaction let go of it before.
  [[nodiscard]] Result<void> unlock();

 private:
  friend class Transaction;
  ScopedLock(const Transaction& txn, const Target& target);

  const Transaction* txn_ = nullptr;
  std::variant<ResourceId, std::string, KeysOf, BytesOf> target_;
};

}  // namespace tenure
