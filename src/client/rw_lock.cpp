#include <utility>

#include <tenure/client/rw_lock.hpp>

#include "client/acquire.hpp"
#include "client/make_guard.hpp"
#include "client/session.hpp"

namespace tenure {
namespace {

/// Checks that the hold is of this lock and has not ended.
Result<void> check_change(const LockHandle& held, std::string_view name, std::string_view what) {
  if (held.state() == GuardState::released) {
    return fail(Errc::not_held, "the " + std::string(what) + " was unlocked or moved from before");
  }
  if (held.name() != name) {
    return fail(Errc::invalid_argument, "the " + std::string(what) + " belongs to another lock, " +
                                            std::string(held.name()) + ", not of " +
                                            std::string(name));
  }
  if (held.state() == GuardState::lost) {
    return fail(Errc::lease_lost, "the " + std::string(what) + " was lost; lock again");
  }
  return {};
}

/// Two clients may use the same name on different services, so the name alone proves nothing.
Error of_another_client() {
  return {.code = Errc::invalid_argument, .detail = "the guard belongs to another client"};
}

}  // namespace

RwLock::RwLock(std::shared_ptr<const detail::LockSpec> exclusive,
               std::shared_ptr<const detail::LockSpec> shared) noexcept
    : exclusive_(std::move(exclusive)), shared_(std::move(shared)) {}

Result<Guard> RwLock::lock(std::stop_token cancel) const {
  return detail::make_guard<Guard>(exclusive_,
                                   detail::within_max_wait(*exclusive_, std::move(cancel)));
}

Result<Guard> RwLock::try_lock() const {
  return detail::make_guard<Guard>(exclusive_, {.queue = backends::Queue::skip});
}

Result<Guard> RwLock::try_lock(Attempts attempts, std::stop_token cancel) const {
  return detail::make_guard<Guard>(exclusive_, detail::acquire(*exclusive_, attempts, cancel));
}

Result<Guard> RwLock::lock_within(std::chrono::nanoseconds timeout, std::stop_token cancel) const {
  return detail::make_guard<Guard>(exclusive_, detail::within(timeout, std::move(cancel)));
}

Awaitable<Guard> RwLock::lock_async(std::stop_token cancel) const {
  return detail::make_guard_async<Guard>(exclusive_, std::move(cancel));
}

Result<SharedGuard> RwLock::lock_shared(std::stop_token cancel) const {
  return detail::make_guard<SharedGuard>(shared_,
                                         detail::within_max_wait(*shared_, std::move(cancel)));
}

Result<SharedGuard> RwLock::try_lock_shared() const {
  return detail::make_guard<SharedGuard>(shared_, {.queue = backends::Queue::skip});
}

Result<SharedGuard> RwLock::try_lock_shared(Attempts attempts, std::stop_token cancel) const {
  return detail::make_guard<SharedGuard>(shared_, detail::acquire(*shared_, attempts, cancel));
}

Result<SharedGuard> RwLock::lock_shared_within(std::chrono::nanoseconds timeout,
                                               std::stop_token cancel) const {
  return detail::make_guard<SharedGuard>(shared_, detail::within(timeout, std::move(cancel)));
}

Awaitable<SharedGuard> RwLock::lock_shared_async(std::stop_token cancel) const {
  return detail::make_guard_async<SharedGuard>(shared_, std::move(cancel));
}

Result<Guard> RwLock::upgrade(SharedGuard& share, std::stop_token cancel) const {
  if (auto checked = check_change(share, name(), "share"); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  if (share.spec_->session != exclusive_->session) {
    return std::unexpected(of_another_client());
  }
  if (exclusive_->acquire_spec->items.size() > 1) {
    return fail(Errc::unsupported, "rw_all_of() does not support upgrade; unlock, then lock()");
  }
  if (!exclusive_->session->backend().capabilities().has(backends::Capability::upgrade)) {
    return fail(Errc::unsupported, "this backend does not support upgrade; unlock, then lock()");
  }
  // With SelfConflict::reenter the service upgrades the shared hold of the same lease. With
  // `refuse` the hold itself would block the request: a self-deadlock.
  auto reentering = *exclusive_;
  auto acquire_spec = *reentering.acquire_spec;
  acquire_spec.self_conflict = backends::SelfConflict::reenter;
  reentering.acquire_spec = std::make_shared<const backends::AcquireSpec>(std::move(acquire_spec));
  const auto upgraded = detail::upgrade(reentering, share.hold_,
                                        detail::within_max_wait(reentering, std::move(cancel)));
  if (!upgraded) {
    return std::unexpected(upgraded.error());
  }
  // The share becomes empty only on success. After an error it still owns the shared hold.
  return Guard(std::move(share.spec_), std::move(share.hold_));
}

Result<SharedGuard> RwLock::downgrade(Guard& guard) const {
  if (auto checked = check_change(guard, name(), "guard"); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  if (guard.spec_->session != exclusive_->session) {
    return std::unexpected(of_another_client());
  }
  if (exclusive_->acquire_spec->items.size() > 1) {
    return fail(Errc::unsupported,
                "rw_all_of() does not support downgrade; unlock, then lock_shared()");
  }
  if (!exclusive_->session->backend().capabilities().has(backends::Capability::downgrade)) {
    return fail(Errc::unsupported,
                "this backend does not support downgrade; unlock, then lock_shared()");
  }
  if (guard.spec_->acquire_spec->self_conflict == backends::SelfConflict::reenter) {
    return fail(Errc::invalid_argument,
                "with Reentry::counted, other guards may rely on exclusive access; "
                "unlock, then lock_shared()");
  }
  if (auto downgraded = guard.hold_->downgrade(shared_->acquire_spec); !downgraded) {
    return std::unexpected(std::move(downgraded).error());
  }
  return SharedGuard(std::move(guard.spec_), std::move(guard.hold_));
}

std::string_view RwLock::name() const noexcept {
  return exclusive_->name;
}

}  // namespace tenure
