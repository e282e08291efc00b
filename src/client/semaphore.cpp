#include <utility>

#include <tenure/client/semaphore.hpp>

#include "client/acquire.hpp"
#include "client/make_guard.hpp"

namespace tenure {

Semaphore::Semaphore(std::shared_ptr<const detail::LockSpec> spec) noexcept
    : spec_(std::move(spec)) {}

// All forms acquire with the same specification and differ only in the limits of the wait.
Result<Permit> Semaphore::acquire(std::stop_token cancel) const {
  return detail::make_guard<Permit>(spec_, detail::within_max_wait(*spec_, std::move(cancel)));
}

Result<Permit> Semaphore::try_acquire() const {
  return detail::make_guard<Permit>(spec_, {.queue = backends::Queue::skip});
}

Result<Permit> Semaphore::try_acquire(Attempts attempts, std::stop_token cancel) const {
  return detail::make_guard<Permit>(spec_, detail::acquire(*spec_, attempts, cancel));
}

Result<Permit> Semaphore::acquire_within(std::chrono::nanoseconds timeout,
                                         std::stop_token cancel) const {
  return detail::make_guard<Permit>(spec_, detail::within(timeout, std::move(cancel)));
}

Awaitable<Permit> Semaphore::acquire_async(std::stop_token cancel) const {
  return detail::make_guard_async<Permit>(spec_, std::move(cancel));
}

std::string_view Semaphore::name() const noexcept {
  return spec_->name;
}

}  // namespace tenure
