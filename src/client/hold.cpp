#include "client/hold.hpp"

#include <utility>

#include "client/completion.hpp"
#include "client/session.hpp"

namespace tenure::detail {
namespace {

/// A token that has stopped already, for what was lost before anybody asked.
std::stop_token stopped() {
  static const std::stop_source source = [] {
    std::stop_source made;
    made.request_stop();
    return made;
  }();
  return source.get_token();
}

/// The answer to a release, as the user is told.
Result<void> explained(Result<void> answer) {
  if (!answer && answer.error() == Errc::not_held) {
    return fail(Errc::lease_lost,
                "it was taken away before unlock(); work done since may have raced");
  }
  return answer;
}

Result<void> unanswered() {
  return fail(Errc::unavailable, "no answer to the release before its lease ended");
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
    // The keeper has not come to it yet. Nobody may hear success of it any more.
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
  // If it is lost but the notifier has not come to it yet: callbacks are its business, but whoever
  // looks must see it now.
  return is_lost && !lost_->stop_requested() ? stopped() : lost_->get_token();
}

Result<void> Hold::leave() {
  const bool was_lost = state() == GuardState::lost;
  if (!begin_release()) {
    return fail(Errc::not_held, "unlocked before");
  }
  if (session_.is_inherited()) {
    return fail(Errc::lease_lost, "the lock is the parent's; a child of fork() does not hold it");
  }
  if (was_lost) {
    // It may live on over there, if only the answers were lost: so the service is told all the
    // same.
    lease_->detach(*this);
    send_release(Hears::nobody);
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
  lease_->detach(*this);
  send_release(Hears::sleeper);
  auto answer = released_.wait_for(session_.backend(), session_.request_timeout());
  if (!answer) {
    return fail(Errc::unavailable, "no answer to the release; it is free when its lease ends");
  }
  return explained(*std::move(answer));
}

std::optional<Result<void>> Hold::unlock_async(backends::Backend::Done<void> done) {
  if (auto left = leave(); !left) {
    return left;
  }
  // It stays attached: if nobody answers, the end of the lease does.
  send_release(Hears::awaiter);
  auto& parker = session_.backend().parker();
  parker.begin_background();
  std::optional<Result<void>> answer;
  {
    const sys::LatchGuard lock(latch_);
    answer = std::exchange(release_answer_, std::nullopt);
    if (!answer) {
      releasing_ = std::move(done);
    }
  }
  if (answer) {
    parker.end_background();
    return answer;
  }
  if (lease_->has_ended()) {
    settle_release(unanswered());
  }
  return std::nullopt;
}

void Hold::settle_release(Result<void> answer) {
  backends::Backend::Done<void> told;
  {
    const sys::LatchGuard lock(latch_);
    told = std::exchange(releasing_, nullptr);
    if (!told) {
      release_answer_ = std::move(answer);
      return;
    }
  }
  session_.backend().parker().end_background();
  session_.notifier().post(
      [told = std::move(told), answer = std::move(answer)]() mutable { told(std::move(answer)); });
}

void Hold::drop() noexcept {
  if (begin_release() && !session_.is_inherited()) {
    lease_->detach(*this);
    send_release(Hears::nobody);
    session_.backend().parker().flush();
  }
}

void Hold::send_release(Hears who) {
  for (auto extra = releases_.load(); extra > 1; --extra) {
    send_one_release();
  }
  session_.backend().release({.lease = lease_->id(),
                              .request = session_.fresh_request(),
                              .acquired = request_,
                              .token = token(),
                              .spec = acquire_spec()},
                             [self = std::static_pointer_cast<Hold>(shared_from_this()), who](
                                 Result<void> answer) { self->released(who, std::move(answer)); });
}

void Hold::released(Hears who, Result<void> answer) {
  if (!is_lease_shared_) {
    session_.free_lease(lease_, answer.has_value());
  }
  switch (who) {
    case Hears::nobody: return;
    case Hears::sleeper: released_.settle(session_.backend(), std::move(answer)); return;
    case Hears::awaiter:
      lease_->detach(*this);
      settle_release(explained(std::move(answer)));
      return;
  }
}

void Hold::send_one_release() {
  session_.backend().release({.lease = lease_->id(),
                              .request = session_.fresh_request(),
                              .acquired = request_,
                              .token = token(),
                              .spec = acquire_spec()},
                             [](const Result<void>&) {});
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
  const auto why = answer && !*answer ? std::optional(answer->error()) : std::nullopt;
  if (why && (*why == Errc::not_held || *why == Errc::lease_lost)) {
    take_away();
    return fail(Errc::lease_lost,
                "it was taken away before the downgrade; work done since may have raced");
  }
  if (why && *why != Errc::unavailable) {
    return *answer;
  }
  {
    const sys::LatchGuard lock(latch_);
    acquire_spec_ = std::move(shared);
  }
  // What upgrades counted is given back: who goes up and down for ever must not count for ever.
  for (; releases_ > 1; --releases_) {
    send_one_release();
  }
  if (state() == GuardState::lost) {
    return fail(Errc::lease_lost, "the lease ended while the lock was downgraded");
  }
  return {};
}

void Hold::strengthen(const backends::Granted& granted,
                      std::shared_ptr<const backends::AcquireSpec> acquire_spec) {
  token_ = granted.token.get();
  ++releases_;
  const sys::LatchGuard lock(latch_);
  acquire_spec_ = std::move(acquire_spec);
}

void Hold::undo_upgrade(const backends::Granted& granted,
                        std::shared_ptr<const backends::AcquireSpec> exclusive) {
  token_ = granted.token.get();
  session_.backend().downgrade({.lease = lease_->id(),
                                .request = session_.fresh_request(),
                                .acquired = request_,
                                .token = granted.token,
                                .mode = LockMode::shared,
                                .spec = std::move(exclusive)},
                               [](const Result<void>&) {});
  // What the upgrade counted. The share itself is released by its guard.
  send_one_release();
}

void Hold::lease_lost() {
  if (is_released_) {
    settle_release(unanswered());
  }
  if (is_released_ || is_lost_.exchange(true)) {
    return;
  }
  session_.notifier().post([self = shared_from_this(), this] { fire_lost(); });
}

void Hold::fire_lost() {
  std::optional<std::stop_source> source;
  {
    const sys::LatchGuard lock(latch_);
    source = lost_;
  }
  if (source && !is_released_) {
    source->request_stop();
  }
}

void Hold::lease_at_risk() {
  if (on_at_risk_ == nullptr || state() != GuardState::at_risk) {
    return;
  }
  const auto left = lease_->valid_until() - session_.clock().now();
  (*on_at_risk_)({.name = acquire_spec()->items.front().name,
                  .token = token(),
                  .left = std::chrono::duration_cast<std::chrono::milliseconds>(left)});
}

}  // namespace tenure::detail
