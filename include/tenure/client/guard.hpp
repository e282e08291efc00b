#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include <tenure/client/awaitable.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>

namespace tenure {

namespace detail {
class Hold;       // src/client/hold.hpp
struct Factory;   // src/client/factory.hpp
struct LockSpec;  // src/client/lock_spec.hpp
}  // namespace detail

/// State of a hold; the table of LockHandle shows the transitions.
enum class GuardState : std::uint8_t {
  held,      ///< The lease is confirmed and runs.
  at_risk,   ///< A renewal is overdue; the lease still runs by the local clock. May become held.
  lost,      ///< The hold has ended. Final.
  released,  ///< Released by unlock(), or never held.
};

/// Name of the enumerator.
[[nodiscard]] std::string_view to_string(GuardState state) noexcept;

/// How a lock was acquired.
struct AcquisitionReport {
  int attempts = 1;                   ///< Number of requests that were sent.
  std::chrono::nanoseconds waited{};  ///< Time from the call to the grant.
  std::size_t queue_position = 0;     ///< Position on joining the wait queue; 0: granted at once.
};

/// RAII handle of a granted lock: common base of Guard, SharedGuard and Permit.
///
///            | unlock()               | renewal fails | lease ends, or forced     | confirmed
///  ----------+------------------------+---------------+---------------------------+----------
///  held      | released               | at_risk       | lost, lost() fires        | held
///  at_risk   | released               | at_risk       | lost, lost() fires        | held
///  lost      | Errc::lease_lost       | lost          | lost                      | lost
///  released  | Errc::not_held         | released      | released                  | released
///
/// A handle is evidence, not a guarantee: the lease lives in the service, and a process that is
/// paused for longer than its lease notices only when it runs again. Pass token() to the storage
/// where a late write must be impossible (see Fence).
///
/// Thread safety: as std::unique_ptr. lost() may be used from any thread.
class LockHandle {
 public:
  /// Holds nothing.
  LockHandle() noexcept = default;
  /// Moves the hold. Assignment first releases what this handle held.
  LockHandle(LockHandle&& other) noexcept = default;
  LockHandle& operator=(LockHandle&& other) noexcept;
  LockHandle(const LockHandle&) = delete;
  LockHandle& operator=(const LockHandle&) = delete;
  /// Sends the release and does not wait for the reply. Call unlock() to learn the outcome.
  ~LockHandle();

  /// True in the states held and at_risk.
  [[nodiscard]] bool owns_lock() const noexcept;
  explicit operator bool() const noexcept { return owns_lock(); }
  /// Current state, by the local clock.
  [[nodiscard]] GuardState state() const noexcept;

  /// Fencing token: larger than the token of every earlier holder. 0 if the handle never held a
  /// lock, or if the backend has none (a plain key on redlock://; LockOptions::fencing can demand
  /// one).
  [[nodiscard]] FencingToken token() const noexcept;

  /// Stop token that is triggered once, on the client's callback thread, when the hold is lost.
  /// Never after unlock(), and not for a failed renewal that a later one makes good.
  [[nodiscard]] std::stop_token lost() const;

  /// End of the confirmed lease by the local clock: counted from before the last confirmed renewal
  /// was sent, less a margin for clock drift, so it is never later than the end that the service
  /// computes.
  [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const noexcept;

  /// Renews the lease now and waits for the reply; afterwards valid_until() is a full TTL away.
  /// Errc::lease_lost if the lease had ended, Errc::unavailable without a reply in time.
  ///
  /// `ttl` sets the TTL of the lease for this and all later renewals, for everything under the same
  /// Lease. A shorter TTL counts from before the request is sent, even without a reply; a longer
  /// one once it is confirmed. Errc::invalid_argument if the service rejects it, which changes
  /// nothing. Errc::unsupported if the backend cannot change TTLs.
  [[nodiscard]] Result<void> extend(std::optional<std::chrono::milliseconds> ttl = std::nullopt);

  /// Releases and waits for the reply. Errc::lease_lost: the hold had ended, and work done since
  /// may have raced. Errc::not_held: released or moved from before. Errc::unavailable: no reply;
  /// the lock is free at valid_until() at the latest.
  [[nodiscard]] Result<void> unlock();
  /// unlock() for coroutines. Errc::unavailable is returned when the lease ends at the latest.
  [[nodiscard]] Awaitable<void> unlock_async();

  /// How the lock was acquired.
  [[nodiscard]] AcquisitionReport report() const noexcept;
  /// Full name of the lock, with ConnectOptions::key_prefix.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  friend class RwLock;
  friend struct detail::Factory;
  LockHandle(std::shared_ptr<const detail::LockSpec> spec,
             std::shared_ptr<detail::Hold> hold) noexcept;

  std::shared_ptr<const detail::LockSpec> spec_;
  std::shared_ptr<detail::Hold> hold_;
};

/// Exclusive hold of a Mutex or an RwLock.
class [[nodiscard]] Guard : public LockHandle {
 public:
  using LockHandle::LockHandle;
};

/// Shared hold of an RwLock. A type of its own, so that a function can require an exclusive hold by
/// its signature: `void rebuild_index(const Guard& proof);`
class [[nodiscard]] SharedGuard : public LockHandle {
 public:
  using LockHandle::LockHandle;
};

/// Permits of a Semaphore.
class [[nodiscard]] Permit : public LockHandle {
 public:
  using LockHandle::LockHandle;
};

}  // namespace tenure
