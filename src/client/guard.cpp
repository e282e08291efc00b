#include <optional>
#include <utility>

#include <tenure/client/guard.hpp>

#include "client/hold.hpp"
#include "client/session.hpp"

namespace tenure {

std::string_view to_string(GuardState state) noexcept {
  switch (state) {
    case GuardState::held: return "held";
    case GuardState::at_risk: return "at_risk";
    case GuardState::lost: return "lost";
    case GuardState::released: return "released";
  }
  return "unknown";
}

LockHandle::LockHandle(std::shared_ptr<const detail::LockSpec> spec,
                       std::shared_ptr<detail::Hold> hold) noexcept
    : spec_(std::move(spec)), hold_(std::move(hold)) {}

LockHandle& LockHandle::operator=(LockHandle&& other) noexcept {
  if (this != &other) {
    if (hold_ != nullptr) {
      // The overwritten lock is released as by its destructor, without waiting for the reply.
      hold_->drop();
    }
    hold_ = std::move(other.hold_);
    spec_ = std::move(other.spec_);
  }
  return *this;
}

LockHandle::~LockHandle() {
  if (hold_ != nullptr) {
    // Does not block; the reply is ignored. unlock() reports errors.
    hold_->drop();
  }
}

bool LockHandle::owns_lock() const noexcept {
  const auto now = state();
  return now == GuardState::held || now == GuardState::at_risk;
}

GuardState LockHandle::state() const noexcept {
  return hold_ == nullptr ? GuardState::released : hold_->state();
}

FencingToken LockHandle::token() const noexcept {
  return hold_ == nullptr ? FencingToken{} : hold_->token();
}

std::stop_token LockHandle::lost() const {
  return hold_ == nullptr ? std::stop_token() : hold_->lost();
}

std::chrono::steady_clock::time_point LockHandle::valid_until() const noexcept {
  if (hold_ == nullptr || hold_->state() == GuardState::released) {
    return {};
  }
  // Converted at each call, see Session::steady().
  return spec_->session->steady(hold_->lease()->valid_until());
}

Result<void> LockHandle::extend(std::optional<std::chrono::milliseconds> ttl) {
  if (state() == GuardState::released) {
    return fail(Errc::not_held, "unlocked or moved from before; lock again");
  }
  if (state() == GuardState::lost) {
    return fail(Errc::lease_lost, "the lease has ended; lock again");
  }
  return spec_->session->renew(hold_->lease(), ttl);
}

Result<void> LockHandle::unlock() {
  if (hold_ == nullptr) {
    return fail(Errc::not_held, "never locked, or moved from");
  }
  return hold_->unlock();
}

Awaitable<void> LockHandle::unlock_async() {
  return Awaitable<void>(
      // `spec` keeps the session alive until the completion has run, even if the guard is
      // destroyed.
      [spec = spec_, hold = hold_](Awaitable<void>::Done done) -> std::optional<Result<void>> {
        if (hold == nullptr) {
          return fail(Errc::not_held, "never locked, or moved from");
        }
        return hold->unlock_async([spec, done = std::move(done)](Result<void> answer) mutable {
          done(std::move(answer));
        });
      });
}

AcquisitionReport LockHandle::report() const noexcept {
  return hold_ == nullptr ? AcquisitionReport{} : hold_->report();
}

std::string_view LockHandle::name() const noexcept {
  return spec_ == nullptr ? std::string_view() : std::string_view(spec_->name);
}

}  // namespace tenure
