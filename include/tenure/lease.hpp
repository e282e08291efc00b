#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

namespace tenure {

class Lease;

namespace detail {
class SharedLease;  // src/client/shared_lease.hpp
[[nodiscard]] const std::shared_ptr<SharedLease>& shared_part(const Lease& lease) noexcept;
}  // namespace detail

/// How a lease of one's own behaves.
struct LeaseOptions {
  /// How long what hangs on it outlives a process that stops renewing. Shorter frees a dead
  /// holder's locks sooner, longer rides out longer pauses. REQUIRES: not less than the service
  /// allows.
  std::chrono::milliseconds ttl = std::chrono::seconds(30);

  /// Renewed every ttl / renewals_per_ttl: at the default, two renewals may fail before the lease
  /// is in danger. 0: never. REQUIRES: not negative.
  int renewals_per_ttl = 3;
};

/// What several locks live and die together with, and whom the service sees as one owner: it finds
/// deadlocks between leases, and who waits for a lock that its own lease holds gets Errc::deadlock
/// instead of waiting for ever. Locks that are not given one each have a lease of their own.
///
/// A handle: copies are the same lease. It ends with the last of them, of the lock objects made
/// with it and of their guards. Thread safe, as a std::shared_ptr.
class [[nodiscard]] Lease {
 public:
  /// By Client::lease().
  explicit Lease(std::shared_ptr<detail::SharedLease> lease) noexcept;

  /// As the service knows it.
  [[nodiscard]] LeaseId id() const noexcept;
  /// False once it has ended, or may have by our own clock.
  [[nodiscard]] bool is_alive() const noexcept;
  /// Fires once, on the client's notifier thread, when it ends: by revoke() too.
  [[nodiscard]] std::stop_token lost() const;
  /// Until then the service keeps it, as far as we can tell.
  [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const noexcept;
  /// Renews now, and waits for the answer. Errc::lease_lost if it came too late. With a ttl, that
  /// is its ttl from now on, for all that hangs on it: as Guard::extend() says.
  [[nodiscard]] Result<void> renew(
      std::optional<std::chrono::milliseconds> ttl = std::nullopt) const;
  /// Ends it, and all that hangs on it. Errc::lease_lost if it had ended already.
  [[nodiscard]] Result<void> revoke() const;

 private:
  friend const std::shared_ptr<detail::SharedLease>& detail::shared_part(
      const Lease& lease) noexcept;
  std::shared_ptr<detail::SharedLease> lease_;
};

}  // namespace tenure
