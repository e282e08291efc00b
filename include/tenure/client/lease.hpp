#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

namespace tenure {

namespace detail {
class SharedLease;  // src/client/shared_lease.hpp
struct Factory;     // src/client/factory.hpp
}  // namespace detail

/// How a lease behaves.
struct LeaseOptions {
  /// Time to live: how long holds outlive a process that stops renewing. A shorter TTL frees the
  /// locks of a crashed holder sooner; a longer one survives longer pauses and outages. REQUIRES:
  /// within the limits of the service.
  std::chrono::milliseconds ttl = std::chrono::seconds(30);

  /// Number of renewals per TTL: the lease is renewed every ttl / renewals_per_ttl. At the default,
  /// two renewals may fail before the lease is at risk. 0: never renewed. REQUIRES: not negative.
  int renewals_per_ttl = 3;
};

/// Lease that several locks share: they live and end together, and the service treats them as one
/// owner. It detects deadlocks between leases, and a request for a lock that its own lease holds
/// fails with Errc::deadlock instead of waiting forever. A lock without an explicit lease has its
/// own.
///
/// A handle: copies refer to the same lease, which ends with the last of them, of the lock objects
/// that were made with it, and of their guards. Thread safety: as std::shared_ptr.
class [[nodiscard]] Lease {
 public:
  /// Id of the lease in the service.
  [[nodiscard]] LeaseId id() const noexcept;
  /// False once the lease has ended by the local clock or by a reply of the service.
  [[nodiscard]] bool is_alive() const noexcept;
  /// Stop token that is triggered once, on the client's callback thread, when the lease ends,
  /// including by revoke().
  [[nodiscard]] std::stop_token lost() const;
  /// End of the confirmed lease by the local clock; see LockHandle::valid_until().
  [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const noexcept;
  /// Renews the lease now and waits for the reply. Errc::lease_lost if it had ended. `ttl` changes
  /// the TTL, as described at LockHandle::extend().
  [[nodiscard]] Result<void> renew(
      std::optional<std::chrono::milliseconds> ttl = std::nullopt) const;
  /// Ends the lease and everything under it. Errc::lease_lost if it had ended already.
  [[nodiscard]] Result<void> revoke() const;

 private:
  friend struct detail::Factory;
  explicit Lease(std::shared_ptr<detail::SharedLease> lease) noexcept;

  std::shared_ptr<detail::SharedLease> lease_;
};

}  // namespace tenure
