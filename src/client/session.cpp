#include "client/session.hpp"

#include <algorithm>
#include <utility>

#include "client/completion.hpp"
#include "client/hold.hpp"
#include "client/lock_spec.hpp"
#include "sys/process.hpp"
#include "sys/random.hpp"

namespace tenure::detail {
namespace {

ConnectOptions with_defaults(ConnectOptions options) {
  if (options.owner.empty()) {
    options.owner = sys::process_label();
  }
  return options;
}

}  // namespace

Session::Session(std::unique_ptr<backends::Backend> backend, ConnectOptions options,
                 sys::Clock& clock)
    : options_(with_defaults(std::move(options))),
      clock_(clock),
      backend_(std::move(backend)),
      limits_(backend_->limits()) {
  // Before any thread starts: from now on a child of fork() sees another ForkEpoch.
  sys::watch_forks();
  renewer_ = std::make_unique<LeaseRenewer>(*backend_, clock_, *this);
  // Last, because the backend may call the listener before start() returns.
  backend_->start(*this);
}

Session::~Session() {
  // First: the renewal thread uses the backend, which is destroyed before the renewer.
  renewer_->stop();
  for (const auto& lease : pool_.take_all()) {
    // Idle leases are revoked now, instead of after their TTL. No hold exists any more; a lease
    // with a release in flight is left to the destructor of the backend.
    end_lease(lease);
  }
  // Only after the revocations, which end_lease() omits from now on.
  is_closing_ = true;
  // Runs the remaining callbacks while the other members still exist.
  callbacks_.close();
}

Session::Record Session::take_lease(std::chrono::milliseconds ttl, int renewals_per_ttl,
                                    Freshness freshness) {
  // A lease without renewals cannot be reused: the second hold would get only the rest of its TTL.
  if (freshness == Freshness::any && renewals_per_ttl > 0) {
    // A lease may have expired in the pool, for example during a suspension of the machine.
    while (auto lease = pool_.take(ttl, renewals_per_ttl)) {
      if (!lease->has_ended()) {
        return lease;
      }
    }
  }
  return new_lease(
      {.id = LeaseId{sys::random_id()}, .ttl = ttl, .renewals_per_ttl = renewals_per_ttl},
      [](const Result<void>&) {});
}

Session::Record Session::new_lease(LeaseRecord::Terms terms,
                                   backends::Backend::Done<void> granted) {
  // The time before the request is sent: the service starts its count later.
  auto lease = std::make_shared<LeaseRecord>(terms, clock_.now());
  {
    const sys::LatchGuard lock(latch_);
    // Before the request: the backend may report the loss of the lease before grant_lease()
    // returns.
    leases_.emplace(terms.id, lease);
  }
  backend_->grant_lease({.id = terms.id, .ttl = terms.ttl, .client = owner()},
                        [this, lease, granted = std::move(granted)](Result<void> answer) mutable {
                          if (!answer) {
                            // Before lose(): an acquire that fails with lease_lost then finds the
                            // cause.
                            lease->refuse(answer.error());
                            lose(lease);
                          }
                          granted(std::move(answer));
                        });
  // Without a renewal thread the lease would expire under its holder, so the hold must not begin.
  if (!lease->has_ended() && !renewer_->add(lease)) {
    lease->refuse(
        {.code = Errc::resource_exhausted, .detail = "cannot start a thread to renew the lease"});
    lose(lease);
  }
  return lease;
}

Result<void> Session::renew(const Record& lease, std::optional<std::chrono::milliseconds> ttl) {
  if (is_inherited()) {
    return std::unexpected(backends::inherited_error());
  }
  // The reply slot is shared with the callback: after a timeout a late reply still updates the
  // lease.
  Completion<void> renewed(*backend_);
  if (!ttl) {
    renewer_->renew(lease, renewed.callback());
  } else if (auto error = check_ttl(*ttl, lease->renewals_per_ttl(), limits_)) {
    return std::unexpected(*std::move(error));
  } else if (!backend_->capabilities().has(backends::Capability::new_ttl)) {
    return fail(Errc::unsupported,
                "this backend does not support new_ttl; extend() without one renews");
  } else {
    renewer_->set_ttl(lease, fresh_request(), *ttl, renewed.callback());
  }
  auto answer = renewed.wait_for(request_timeout());
  return answer ? *std::move(answer)
                : fail(Errc::unavailable,
                       "no reply to the renewal; the lease runs until valid_until()");
}

void Session::free_lease(const Record& lease, bool is_clean) {
  if (is_clean && lease->renewals_per_ttl() > 0 && lease->is_ttl_known()) {
    // An unknown TTL excludes reuse: the next hold would rely on a term that the service may not
    // count.
    pool_.release(lease);
  } else if (!lease->has_ended()) {
    end_lease(lease);
  }
}

void Session::end_lease(const Record& lease, backends::Backend::Done<void> done) {
  if (is_inherited()) {
    done(std::unexpected(backends::inherited_error()));
    return;
  }
  // Before the revocation, which the backend may report as a loss: that report must find no lease.
  forget(lease->id());
  // Exactly one caller ends the lease; the others must not revoke it twice.
  if (!lease->end()) {
    done(fail(Errc::lease_lost, "the lease has ended already"));
    return;
  }
  if (is_closing_) {
    // The backend is closing; its leases expire.
    done(fail(Errc::unavailable));
    return;
  }
  backend_->revoke_lease(lease->id(), std::move(done));
}

void Session::leave_lease(const Record& lease, std::chrono::milliseconds ttl,
                          backends::Backend::Done<void> done) {
  backend_->set_ttl({.lease = lease->id(),
                     .request = fresh_request(),
                     .ttl = std::clamp(ttl, limits_.ttl_min, limits_.ttl_max),
                     .tracking = backends::LeaseTracking::ended},
                    [this, lease, done = std::move(done)](Result<void> answer) mutable {
                      forget(lease->id());
                      lease->end();
                      done(std::move(answer));
                    });
}

void Session::lose(const Record& lease, backends::Backend::Done<void> revoked) {
  if (is_inherited()) {
    revoked(std::unexpected(backends::inherited_error()));
    return;
  }
  forget(lease->id());
  // The dependents are taken in the step that ends the lease: a later attach() fails, so no
  // dependent is missed, and none is notified twice.
  auto dependents = lease->lose();
  if (!dependents || is_closing_) {
    revoked(fail(Errc::lease_lost, "the lease has ended already"));
    return;
  }
  // Before the revocation: as soon as the service receives it, the next waiter may get the locks,
  // and every hold here must already report the loss.
  for (auto& dependent : *dependents) {
    dependent->lease_lost();
    drop_later(std::move(dependent));
  }
  backend_->revoke_lease(lease->id(), std::move(revoked));
}

void Session::lease_lost(LeaseId lease) {
  if (const auto record = find(lease)) {
    lose(record);
  }
}

void Session::hold_force_released(LeaseId lease, backends::RequestId acquired) {
  const auto record = find(lease);
  if (record == nullptr) {
    return;
  }
  for (auto& dependent : record->note_force_released(acquired)) {
    // Only the hold of this acquisition is affected; others under the same lease continue.
    if (auto* hold = dynamic_cast<Hold*>(dependent.get());
        hold != nullptr && hold->request() == acquired) {
      hold->mark_lost();
    }
    drop_later(std::move(dependent));
  }
}

void Session::connection_changed(bool is_connected, std::string_view /*detail*/) {
  is_connected_ = is_connected;
}

void Session::at_risk(const Record& lease) {
  for (auto& dependent : lease->dependents()) {
    // on_at_risk is user code, so it runs on the callback thread.
    callbacks_.post([dependent = std::move(dependent)] { dependent->lease_at_risk(); });
  }
}

bool Session::retire_if_idle(const Record& lease) {
  // Used since the last renewal, or in use now: keep renewing. Removal from the pool comes before
  // the end of the lease, so that no acquire can take a lease that is about to end.
  if (lease->was_used() || !pool_.remove(lease)) {
    return false;
  }
  forget(lease->id());
  return lease->end();
}

void Session::drop_later(std::shared_ptr<Dependent> dependent) {
  callbacks_.post([kept = std::move(dependent)] {});
}

Session::Record Session::find(LeaseId lease) {
  const sys::LatchGuard lock(latch_);
  const auto it = leases_.find(lease);
  return it == leases_.end() ? nullptr : it->second;
}

void Session::forget(LeaseId lease) {
  const sys::LatchGuard lock(latch_);
  leases_.erase(lease);
}

}  // namespace tenure::detail
