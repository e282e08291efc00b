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

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_manager/options.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

namespace detail {
class LockTable;
struct Txn;
}  // namespace detail

class ScopedLock;

/// Transaction of the LockManager: its locks are released together when it ends (strict two-phase
/// locking).
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
  /// Moves the locks. Assignment first releases what this transaction held.
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  /// Id, and age for the selection of victims: smaller is older.
  [[nodiscard]] TxnId id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t age() const;

  /// Waits until `mode` is granted; upgrades a weaker hold. After Errc::deadlock, call unlock_all()
  /// or restart(): this lock was not acquired, and the earlier ones are still held.
  [[nodiscard]] Result<void> lock(const Target& target, LockMode mode,
                                  const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> lock(ResourceId resource, LockMode mode,
                                  const WaitOptions& wait) const;
  [[nodiscard]] Result<void> lock(ResourceId resource, LockMode mode) const;

  /// Returns Errc::would_block instead of waiting.
  [[nodiscard]] Result<void> try_lock(const Target& target, LockMode mode) const;
  [[nodiscard]] Result<void> try_lock(ResourceId resource, LockMode mode) const;

  /// lock() with a timeout or a deadline. After Errc::timed_out the request has left the queue.
  template <class Rep, class Period>
  [[nodiscard]] Result<void> try_lock_for(const Target& target, LockMode mode,
                                          const std::chrono::duration<Rep, Period>& timeout) const {
    return lock(target, mode, within(timeout));
  }
  template <class Clock, class Duration>
  [[nodiscard]] Result<void> try_lock_until(
      const Target& target, LockMode mode,
      const std::chrono::time_point<Clock, Duration>& deadline) const {
    return lock(target, mode, WaitOptions{.deadline = detail::steady_deadline(deadline)});
  }

  /// lock() whose hold ends with the returned handle instead of the transaction.
  [[nodiscard]] Result<ScopedLock> lock_scoped(const Target& target, LockMode mode,
                                               const WaitOptions& wait = {}) const;

  /// Locks a node of a tree by its path, and its ancestors in the matching intention mode:
  /// lock_path({"db", "users", "42"}, X) takes IX on "db" and "db/users", X on "db/users/42". On
  /// failure the ancestors locked by this call are released. Errc::invalid_argument if the path is
  /// empty or deeper than 64, or a step is empty or contains '/'.
  [[nodiscard]] Result<void> lock_path(std::span<const std::string_view> path, LockMode mode,
                                       const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> lock_path(std::initializer_list<std::string_view> path, LockMode mode,
                                       const WaitOptions& wait = {}) const;
  [[nodiscard]] Result<void> try_lock_path(std::span<const std::string_view> path,
                                           LockMode mode) const;

  /// Releases what one lock_path() acquired, leaf first.
  [[nodiscard]] Result<void> unlock_path(std::span<const std::string_view> path) const;

  /// Releases one acquisition. For keys of a space: of exactly this range, last acquired first.
  [[nodiscard]] Result<void> unlock(const Target& target) const;
  [[nodiscard]] Result<void> unlock(ResourceId resource) const;

  /// Downgrades the hold to `mode` and grants waiters that can now proceed. Errc::invalid_argument
  /// if the hold does not cover `mode`.
  [[nodiscard]] Result<void> downgrade(const Target& target, LockMode mode) const;

  /// Mode of the hold, if there is one. For keys of a space: the join over exactly this range.
  [[nodiscard]] std::optional<LockMode> mode_held(const Target& target) const;

  /// Number of locks held. A lock acquired twice counts once, a range each time.
  [[nodiscard]] std::size_t lock_count() const;

  /// Releases all locks and cancels all waits; returns the number of locks. The transaction may be
  /// used again, with its age; a victim that has received Errc::deadlock is no longer one.
  std::size_t unlock_all() const;  // NOLINT(modernize-use-nodiscard): may be ignored
  std::size_t restart() const { return unlock_all(); }  // NOLINT(modernize-use-nodiscard)

  /// Deadlock whose victim this transaction is, until unlock_all().
  [[nodiscard]] std::optional<Deadlock> deadlock() const;

 private:
  friend class LockManager;
  friend class ScopedLock;
  Transaction(std::shared_ptr<detail::LockTable> table, detail::Txn& txn) noexcept;

  void end() noexcept;

  std::shared_ptr<detail::LockTable> table_;
  detail::Txn* txn_;  ///< Pinned in table_ for the lifetime of this object.
  TxnId id_;
};

/// RAII handle of one acquisition by a transaction. Movable, not copyable.
/// REQUIRES: the transaction lives at least as long, and is not moved.
///
/// Thread safety: as std::unique_ptr.
class [[nodiscard]] ScopedLock {
 public:
  /// Holds nothing.
  ScopedLock() noexcept = default;
  /// Moves the acquisition. Assignment first releases what this handle held.
  ScopedLock(ScopedLock&& other) noexcept;
  ScopedLock& operator=(ScopedLock&& other) noexcept;
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;
  ~ScopedLock();

  /// True until unlock().
  [[nodiscard]] bool owns_lock() const noexcept { return txn_ != nullptr; }
  explicit operator bool() const noexcept { return owns_lock(); }

  /// Releases now. Errc::not_held if the transaction released the lock before.
  [[nodiscard]] Result<void> unlock();

 private:
  friend class Transaction;
  ScopedLock(const Transaction& txn, const Target& target);

  const Transaction* txn_ = nullptr;
  std::variant<ResourceId, std::string, KeysOf, BytesOf> target_;
};

}  // namespace tenure
