#include <utility>

#include <tenure/client/mutex.hpp>

#include "client/acquire.hpp"
#include "client/make_guard.hpp"

namespace tenure {

Mutex::Mutex(std::shared_ptr<const detail::LockSpec> spec) noexcept : spec_(std::move(spec)) {}

// All forms acquire with the same specification and differ only in the limits of the wait.
Result<Guard> Mutex::lock(std::stop_token cancel) const {
  return detail::make_guard<Guard>(spec_, detail::within_max_wait(*spec_, std::move(cancel)));
}

Result<Guard> Mutex::try_lock() const {
  return detail::make_guard<Guard>(spec_, {.queue = backends::Queue::skip});
}

Result<Guard> Mutex::try_lock(Attempts attempts, std::stop_token cancel) const {
  return detail::make_guard<Guard>(spec_, detail::acquire(*spec_, attempts, cancel));
}

Result<Guard> Mutex::lock_within(std::chrono::nanoseconds timeout, std::stop_token cancel) const {
  return detail::make_guard<Guard>(spec_, detail::within(timeout, std::move(cancel)));
}

Awaitable<Guard> Mutex::lock_async(std::stop_token cancel) const {
  return detail::make_guard_async<Guard>(spec_, std::move(cancel));
}

std::string_view Mutex::name() const noexcept {
  return spec_->name;
}

}  // namespace tenure
