#include <utility>

#include <tenure/client/lease.hpp>

#include "client/completion.hpp"
#include "client/session.hpp"
#include "client/shared_lease.hpp"

namespace tenure {

Lease::Lease(std::shared_ptr<detail::SharedLease> lease) noexcept : lease_(std::move(lease)) {}

LeaseId Lease::id() const noexcept {
  return lease_->record()->id();
}

bool Lease::is_alive() const noexcept {
  return lease_->is_alive();
}

std::stop_token Lease::lost() const {
  return lease_->lost();
}

std::chrono::steady_clock::time_point Lease::valid_until() const noexcept {
  return lease_->session().steady(lease_->record()->valid_until());
}

Result<void> Lease::renew(std::optional<std::chrono::milliseconds> ttl) const {
  if (!is_alive()) {
    return fail(Errc::lease_lost, "the lease has ended; request a new one");
  }
  return lease_->session().renew(lease_->record(), ttl);
}

Result<void> Lease::revoke() const {
  if (!is_alive()) {
    return fail(Errc::lease_lost, "the lease has ended already");
  }
  auto& session = lease_->session();
  detail::Completion<void> revoked(session.backend());
  // lose() instead of end_lease(): the holds under the lease end too, and must report their loss.
  session.lose(lease_->record(), revoked.callback());
  auto answer = revoked.wait_for(session.request_timeout());
  return answer ? *std::move(answer) : fail(Errc::unavailable, "no reply to the revocation");
}

}  // namespace tenure
