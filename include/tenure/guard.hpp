#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include <tenure/acquiring.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>

namespace tenure {

namespace detail {
class Hold;       // src/client/hold.hpp
struct LockSpec;  // src/client/lock_spec.hpp
}  // namespace detail

/// Where a possession stands: see the table of Possession.
enum class GuardState : std::uint8_t {
  held,      ///< Confirmed, and running.
  at_risk,   ///< Not confirmed lately, but still running by our own clock. May become held again.
  lost,      ///< No longer ours. For ever.
  released,  ///< Given back by unlock(), or never held.
};

/// The name of a state, as it stands in the enumeration.
[[nodiscard]] std::string_view to_string(GuardState state) noexcept;

/// How a lock was acquired.
struct AcquisitionReport {
  int attempts = 1;                   ///< How often the service was asked.
  std::chrono::nanoseconds waited{};  ///< From the call to the grant.
  std::size_t queue_position = 0;     ///< When it joined the queue; 0: it did not have to.
};

/// Possession of something for as long as its lease lasts: what Guard, SharedGuard and Permit have
/// in common.
///
///            | unlock()               | renewal fails | lease over, or taken away | confirmed
///  ----------+------------------------+---------------+---------------------------+----------
///  held      | released               | at_risk       | lost, lost() fires        | held
///  at_risk   | released               | at_risk       | lost, lost() fires        | held
///  lost      | Errc::lease_lost       | lost          | lost                      | lost
///  released  | Errc::not_held         | released      | released                  | released
///
/// It is evidence, not a guarantee: the lease lives elsewhere, and a long enough pause ends it
/// without our knowing until we run again. Code that must not be wrong passes token() to its
/// storage.
///
/// Thread safety: as a std::unique_ptr. lost() may be watched from any thread.
class Possession {
 public:
  /// Holds nothing.
  Possession() noexcept = default;
  /// By the library.
  Possession(std::shared_ptr<const detail::LockSpec> spec,
             std::shared_ptr<detail::Hold> hold) noexcept;
  /// The other holds nothing afterwards; what this one held is given back.
  Possession(Possession&& other) noexcept = default;
  Possession& operator=(Possession&& other) noexcept;
  Possession(const Possession&) = delete;
  Possession& operator=(const Possession&) = delete;
  /// Gives back, without waiting for the answer. Who cares how it went calls unlock().
  ~Possession();

  /// True until unlock(), or until it is lost by all we know, our own clock included.
  [[nodiscard]] bool owns_lock() const noexcept;
  explicit operator bool() const noexcept { return owns_lock(); }
  /// More exactly: held, at risk, lost, or given back.
  [[nodiscard]] GuardState state() const noexcept;

  /// Larger than the token of every earlier holder. 0 if it never was held, or has none: a plain
  /// key on redlock://; LockOptions::fencing refuses such a lock.
  [[nodiscard]] FencingToken token() const noexcept;

  /// Fires once, on the client's notifier thread, when it is lost; never after unlock(). Not for a
  /// renewal that fails and is made up for in time.
  [[nodiscard]] std::stop_token lost() const;

  /// Until then nobody else holds it, counted by our own clock from before the last confirmed
  /// renewal was sent, less a margin for drift: never later than what the service believes.
  [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const noexcept;

  /// Renews now and waits for the answer; valid_until() is a full ttl later then. Errc::lease_lost
  /// if it was no longer ours, Errc::unavailable if nobody answers in time.
  ///
  /// With a ttl, that is the ttl of its lease from now on, for this renewal and all later ones, and
  /// for everything else under the same Lease. A shorter one counts from before it is sent, also if
  /// no answer comes; a longer one when it is confirmed. Errc::invalid_argument if the service does
  /// not take it: nothing has changed then. Errc::unsupported if the backend cannot.
  [[nodiscard]] Result<void> extend(std::optional<std::chrono::milliseconds> ttl = std::nullopt);

  /// Gives back and tells how it went. Errc::lease_lost: it was no longer ours, and the work since
  /// may have raced. Errc::not_held: unlocked or moved away before. Errc::unavailable: nobody
  /// answered; it is free at valid_until() at the latest.
  [[nodiscard]] Result<void> unlock();
  /// The same, for a coroutine. Errc::unavailable comes when the lease is over at the latest.
  [[nodiscard]] Acquiring<void> unlock_async();

  /// How it was acquired.
  [[nodiscard]] AcquisitionReport report() const noexcept;
  /// Of the lock, as the service knows it, prefix included.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  friend class RwLock;
  std::shared_ptr<const detail::LockSpec> spec_;
  std::shared_ptr<detail::Hold> hold_;
};

/// Exclusive possession of a Mutex or an RwLock.
class [[nodiscard]] Guard : public Possession {
 public:
  using Possession::Possession;
};

/// A share of an RwLock. A type of its own, so that a function which needs exclusive possession can
/// ask for it: `void rebuild_index(const Guard& proof);`
class [[nodiscard]] SharedGuard : public Possession {
 public:
  using Possession::Possession;
};

/// Some of the permits of a Semaphore.
class [[nodiscard]] Permit : public Possession {
 public:
  using Possession::Possession;
};

}  // namespace tenure
