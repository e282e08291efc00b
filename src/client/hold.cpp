#include "client/hold.hpp"

#include <utility>

#include "client/completion.hpp"
#include "client/session.hpp"

namespace tenure::detail {
namespace {

/// A stop token that is triggered already, for holds that were lost before the first lost().
std::stop_token stopped() {
  static const std::stop_source source = [] {
    std::stop_source made;
    made.request_stop();
    return made;
  }();
  return source.get_token();
}

/// The reply to a release in terms of the caller: not_held means that the hold was lost.
Result<void> explained(Result<void> answer) {
  if (!answer && answer.error() == Errc::not_held) {
    return fail(Errc::lease_lost,
                "the lock was lost before unlock(); work done since may have raced");
  }
  return answer;
}

Result<void> unanswered() {
  return fail(Errc::unavailable, "no reply to the release before its lease ended");
}

}  // namespace

Hold::Hold(const LockSpec& spec, Start start)
    : session_(*spec.session),
      lease_(std::move(start.lease)),
      request_(start.request),
      report_(start.report),
      is_lease_shared_(spec.lease != nullptr),
      on_at_risk_(spec.on_at_risk),
      token_(start.granted.token.get()),
      acquire_spec_(spec.acquire_spec) {}

GuardState Hold::state() const noexcept {
  if (is_released_) {
    return GuardState::released;
  }
  if (session_.is_inherited() || is_lost_ || lease_->has_ended()) {
    return GuardState::lost;
  }
  const auto now = session_.clock().now();
  if (!lease_->is_valid(now)) {
    // The renewer has not noticed yet, but no later call may succeed. The loss is final from this
    // call on: a late renewal cannot revive the lease.
    session_.lose(lease_);
    return GuardState::lost;
  }
  return lease_->is_at_risk(now) ? GuardState::at_risk : GuardState::held;
}

std::stop_token Hold::lost() {
  if (session_.is_inherited()) {
    return stopped();
  }
  const bool is_lost = state() == GuardState::lost;
  const sys::LatchGuard lock(latch_);
  if (!lost_ && is_lost) {
    return stopped();
  }
  if (!lost_) {
    lost_.emplace();
  }
  // The callback thread may not have triggered lost_ yet. It runs the callbacks, but a caller that
  // polls must see the loss now.
  return is_lost && !lost_->stop_requested() ? stopped() : lost_->get_token();
}

Result<void> Hold::leave() {
  // Before begin_release(), after which state() reports `released`.
  const bool was_lost = state() == GuardState::lost;
  if (!begin_release()) {
    return fail(Errc::not_held, "unlocked before");
  }
  if (session_.is_inherited()) {
    return fail(Errc::lease_lost, "the parent process holds the lock; a child of fork() does not");
  }
  if (was_lost) {
    // If only the replies were lost, the service may still count the hold: release it there too.
    lease_->detach(*this);
    send_release(Waiter::none);
    session_.backend().parker().flush();
    return fail(Errc::lease_lost,
                "the lease ended before unlock(); work done since may have raced");
  }
  return {};
}

Result<void> Hold::unlock() {
  if (auto left = leave(); !left) {
    return left;
  }
  // From here on the reply or the timeout decides, not the end of the lease.
  lease_->detach(*this);
  send_release(Waiter::thread);
  // Blocks in the parker of the backend, where the waiting thread may run the event loop itself.
  auto answer = released_.wait_for(session_.backend(), session_.request_timeout());
  if (!answer) {
    return fail(Errc::unavailable, "no reply to the release; the lock is free when its lease ends");
  }
  return explained(*std::move(answer));
}

std::optional<Result<void>> Hold::unlock_async(backends::Backend::Done<void> done) {
  if (auto left = leave(); !left) {
    return left;
  }
  // Stays attached: without a reply, the end of the lease completes the release.
  send_release(Waiter::coroutine);
  auto& parker = session_.backend().parker();
  // No thread waits for this reply, so another one has to run the event loop.
  parker.begin_background();
  std::optional<Result<void>> answer;
  {
    const sys::LatchGuard lock(latch_);
    answer = std::exchange(release_answer_, std::nullopt);
    if (!answer) {
      // From now on settle_release() owns the completion; it may run at any moment.
      releasing_ = std::move(done);
    }
  }
  if (answer) {
    parker.end_background();
    return answer;
  }
  // The loss of the lease may have been reported before releasing_ was set, and is not repeated. An
  // end that is no loss is followed by the reply to the release.
  if (lease_->is_lost()) {
    settle_release(unanswered());
  }
  return std::nullopt;
}

void Hold::settle_release(Result<void> answer) {
  backends::Backend::Done<void> done;
  {
    const sys::LatchGuard lock(latch_);
    done = std::exchange(releasing_, nullptr);
    if (!done) {
      release_answer_ = std::move(answer);
      return;
    }
  }
  session_.backend().parker().end_background();
  session_.callbacks().post(
      [done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); });
}

void Hold::drop() noexcept {
  // In a child of fork() the parent still holds the lock, so nothing is sent.
  if (begin_release() && !session_.is_inherited()) {
    lease_->detach(*this);
    send_release(Waiter::none);
    session_.backend().parker().flush();
  }
}

void Hold::send_release(Waiter waiter) {
  auto done = [self = std::static_pointer_cast<Hold>(shared_from_this()),
               waiter](Result<void> answer) { self->on_released(waiter, std::move(answer)); };
  if (const auto now = session_.clock().now(); now < kept_until_) {
    session_.leave_lease(lease_, std::chrono::ceil<std::chrono::milliseconds>(kept_until_ - now),
                         std::move(done));
    return;
  }
  // The service counts each upgrade as one more acquisition. These go first: the last release,
  // whose reply the caller awaits, then frees the lock.
  for (auto extra = releases_.load(); extra > 1; --extra) {
    send_one_release();
  }
  send_one_release(std::move(done));
}

void Hold::on_released(Waiter waiter, Result<void> answer) {
  if (!is_lease_shared_ && !lease_->has_ended()) {
    // Before the caller continues, so that its next acquire can reuse the lease.
    session_.free_lease(lease_, answer.has_value());
  }
  switch (waiter) {
    case Waiter::none: return;
    case Waiter::thread: released_.settle(session_.backend(), std::move(answer)); return;
    case Waiter::coroutine:
      lease_->detach(*this);
      settle_release(explained(std::move(answer)));
      return;
  }
}

void Hold::send_one_release(backends::Backend::Done<void> done) {
  session_.backend().release({.lease = lease_->id(),
                              .request = session_.fresh_request(),
                              .acquired = request_,
                              .token = token(),
                              .spec = acquire_spec()},
                             std::move(done));
}

std::shared_ptr<const backends::AcquireSpec> Hold::acquire_spec() {
  const sys::LatchGuard lock(latch_);
  return acquire_spec_;
}

Result<void> Hold::downgrade(std::shared_ptr<const backends::AcquireSpec> shared) {
  Completion<void> answered(session_.backend());
  session_.backend().downgrade({.lease = lease_->id(),
                                .request = session_.fresh_request(),
                                .acquired = request_,
                                .token = token(),
                                .mode = LockMode::shared,
                                .spec = acquire_spec()},
                               answered.callback());
  const auto answer = answered.wait_for(session_.request_timeout());
  // No value: no reply in time, treated like `unavailable` below.
  const auto why = answer && !*answer ? std::optional(answer->error()) : std::nullopt;
  if (why && (*why == Errc::not_held || *why == Errc::lease_lost)) {
    mark_lost();
    return fail(Errc::lease_lost,
                "the lock was lost before the downgrade; work done since may have raced");
  }
  // Rejected: the service still counts an exclusive hold, and so does the guard.
  if (why && *why != Errc::unavailable) {
    return *answer;
  }
  {
    const sys::LatchGuard lock(latch_);
    // With an unknown outcome, too: to use an exclusive hold as a shared one is safe, the reverse
    // is not.
    acquire_spec_ = std::move(shared);
  }
  // Release what upgrades have counted, so that repeated upgrades and downgrades do not accumulate.
  for (; releases_ > 1; --releases_) {
    send_one_release();
  }
  // The reply may have taken longer than the lease.
  if (state() == GuardState::lost) {
    return fail(Errc::lease_lost, "the lease ended while the lock was downgraded");
  }
  return {};
}

void Hold::apply_upgrade(const backends::Granted& granted,
                         std::shared_ptr<const backends::AcquireSpec> acquire_spec) {
  token_ = granted.token.get();
  ++releases_;
  const sys::LatchGuard lock(latch_);
  acquire_spec_ = std::move(acquire_spec);
}

void Hold::undo_upgrade(const backends::Granted& granted,
                        std::shared_ptr<const backends::AcquireSpec> exclusive) {
  // The downgrade keeps the token of the upgrade, and later requests must name it.
  token_ = granted.token.get();
  session_.backend().downgrade({.lease = lease_->id(),
                                .request = session_.fresh_request(),
                                .acquired = request_,
                                .token = granted.token,
                                .mode = LockMode::shared,
                                .spec = std::move(exclusive)},
                               [](const Result<void>&) {});
  // Only the count of the upgrade: the guard releases the shared hold.
  send_one_release();
}

void Hold::lease_lost() {
  if (is_released_) {
    settle_release(unanswered());
  }
  // A released hold is not lost, and a loss is reported once.
  if (is_released_ || is_lost_.exchange(true)) {
    return;
  }
  session_.callbacks().post([self = shared_from_this(), this] { fire_lost(); });
}

void Hold::fire_lost() {
  std::optional<std::stop_source> source;
  {
    const sys::LatchGuard lock(latch_);
    // Copied, so that the stop callbacks run without the latch.
    source = lost_;
  }
  if (source && !is_released_) {
    source->request_stop();
  }
}

void Hold::lease_at_risk() {
  // This job may have waited in the queue; a renewal or a loss may have come first.
  if (on_at_risk_ == nullptr || state() != GuardState::at_risk) {
    return;
  }
  const auto left = lease_->valid_until() - session_.clock().now();
  (*on_at_risk_)({.name = acquire_spec()->items.front().name,
                  .token = token(),
                  .left = std::chrono::duration_cast<std::chrono::milliseconds>(left)});
}

}  // namespace tenure::detail
