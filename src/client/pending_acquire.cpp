#include "client/pending_acquire.hpp"

#include "client/session.hpp"

namespace tenure::detail {

PendingAcquire::PendingAcquire(Session& session, Request question)
    : session_(session),
      parker_(session.backend().parker()),
      parameters_(std::move(question)),
      request_(session.fresh_request()) {}

void PendingAcquire::start() {
  session_.backend().acquire({.lease = parameters_.lease->id(),
                              .request = request_,
                              .spec = parameters_.spec,
                              .queue = parameters_.queue},
                             [self = std::static_pointer_cast<PendingAcquire>(shared_from_this())](
                                 Granted answer) { self->settle(std::move(answer)); });
  // After the request was sent: a reply that has arrived by now needs no registration. If the lease
  // ended in between, attach() fails and the request is settled here.
  if (!is_settled() && !parameters_.lease->attach(*this)) {
    lease_lost();
  }
}

void PendingAcquire::settle(Granted answer) {
  std::move_only_function<void()> then;
  bool is_background = false;
  {
    const sys::LatchGuard lock(latch_);
    if (!has_answer_) {
      has_answer_ = true;
      if (!answer && answer.error() == Errc::cancelled) {
        // The backend knows only that the wait was cancelled; the caller needs to know why.
        answer.error().code = why_;
      }
      answer_ = std::move(answer);
      then = std::move(then_);
      is_background = static_cast<bool>(then);
    } else if (answer) {
      // Posted, because undo() sends a request, which a callback of the backend must not do while
      // the backend is being destroyed; undo() checks that.
      then = [self = shared_from_this(), this, granted = *answer] { undo(granted); };
    }
  }
  // After answer_, and before the signal: a thread that sees the flag may take the answer.
  is_settled_ = true;
  parker_.signal(slot_);
  if (is_background) {
    parker_.end_background();
  }
  if (then) {
    // The session exists here: a completion keeps it alive until it has run, and a late grant comes
    // from a callback of its backend. Without `then`, the session may have been destroyed since the
    // signal.
    session_.callbacks().post(std::move(then));
  }
}

void PendingAcquire::undo(const backends::Granted& granted) {
  if (session_.is_closing()) {
    return;  // The backend ends its lease.
  }
  if (parameters_.upgrades != nullptr) {
    parameters_.upgrades->undo_upgrade(granted, parameters_.spec);
    return;
  }
  session_.backend().release({.lease = parameters_.lease->id(),
                              .request = session_.fresh_request(),
                              .acquired = request_,
                              .token = granted.token,
                              .spec = parameters_.spec},
                             [](const Result<void>&) {});
}

void PendingAcquire::sleep(std::optional<std::chrono::steady_clock::time_point> deadline,
                           const std::stop_token& cancel) {
  auto& parker = session_.backend().parker();
  // A stop token may have signalled the slot during an earlier sleep.
  slot_.reset();
  const std::stop_callback on_stop(cancel, [&] { parker.signal(slot_); });
  if (!is_settled()) {
    parker.wait(slot_, deadline);
  }
}

bool PendingAcquire::on_settled(std::move_only_function<void()> then) {
  auto& parker = session_.backend().parker();
  // Before the registration: settle() may run at once, and ends what has begun.
  parker.begin_background();
  {
    const sys::LatchGuard lock(latch_);
    if (!has_answer_) {
      then_ = std::move(then);
      return true;
    }
  }
  parker.end_background();
  return false;
}

void PendingAcquire::cancel(Errc why) {
  if (!is_settled()) {
    // Before the request: its confirmation may arrive before abandon() returns.
    why_ = why;
    session_.backend().abandon(parameters_.lease->id(), request_);
  }
}

void PendingAcquire::abandon() {
  settle(fail(Errc::unavailable, "no reply; a late grant is released at once"));
}

bool PendingAcquire::is_settled() const noexcept {
  return is_settled_;
}

PendingAcquire::Granted PendingAcquire::take_answer() {
  // Before the hold attaches: the loss of the lease then reaches the hold only.
  parameters_.lease->detach(*this);
  const sys::LatchGuard lock(latch_);
  return std::move(answer_);
}

void PendingAcquire::lease_lost() {
  settle(fail(Errc::lease_lost, "the lease of this wait ended; acquire again"));
}

}  // namespace tenure::detail
