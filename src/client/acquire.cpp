#include "client/acquire.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "client/pending_acquire.hpp"
#include "client/session.hpp"
#include "client/shared_lease.hpp"
#include "sys/jitter.hpp"
#include "sys/mutex.hpp"

namespace tenure::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// Error that makes a request pointless, before the service is involved.
std::optional<Error> precondition_error(const LockSpec& spec) {
  if (spec.error) {
    return spec.error;
  }
  return spec.session->is_inherited() ? std::optional(backends::inherited_error()) : std::nullopt;
}

/// Lease under which to acquire: the explicit one, or one that only this hold uses until its
/// release.
std::shared_ptr<LeaseRecord> lease_for(const LockSpec& spec, Session::Freshness freshness) {
  return spec.lease != nullptr
             ? spec.lease->record()
             : spec.session->take_lease(spec.ttl, spec.renewals_per_ttl, freshness);
}

std::shared_ptr<PendingAcquire> start_acquire(const LockSpec& spec, backends::Queue queue,
                                              Session::Freshness freshness) {
  // A new request, and so a new request id, for each attempt: a repeated id would get the reply to
  // the first request with that id.
  auto pending = std::make_shared<PendingAcquire>(
      *spec.session,
      PendingAcquire::Request{
          .spec = spec.acquire_spec, .lease = lease_for(spec, freshness), .queue = queue});
  pending->start();
  return pending;
}

/// Completes an error with its cause and the name of the lock.
Error explain(Error error, const LockSpec& spec, LeaseRecord& lease) {
  if (error == Errc::lease_lost) {
    // The lease was never granted: report the cause instead of the consequence.
    if (auto refused = lease.refused()) {
      return *std::move(refused);
    }
  }
  if (error.detail.empty()) {
    error.detail = '"' + spec.name + "\": " + std::string(message(error.code));
  }
  return error;
}

/// Converts a settled request to a hold, or frees its lease. `began`: time of the request.
Acquired finish(const LockSpec& spec, PendingAcquire& pending, sys::BootTime began) {
  auto& session = *spec.session;
  const auto& lease = pending.lease();
  auto answer = pending.take_answer();
  if (!answer) {
    auto error = explain(std::move(answer).error(), spec, *lease);
    if (spec.lease == nullptr) {
      // After every other error the service has confirmed that no wait or hold remains under the
      // lease.
      const bool is_clean = error != Errc::unavailable && error != Errc::lease_lost;
      session.free_lease(lease, is_clean);
    }
    return std::unexpected(std::move(error));
  }
  const auto now = session.clock().now();
  auto hold = std::make_shared<Hold>(
      spec,
      Hold::Start{.request = pending.request(),
                  .lease = lease,
                  .granted = *answer,
                  .report = {.waited = now - began, .queue_position = answer->queue_position}});
  // Attach first, check second: an end of the lease after the check would otherwise go unnoticed.
  if (!lease->attach(*hold)) {
    return fail(Errc::lease_lost, "the lease ended while the lock was granted; acquire again");
  }
  if (!lease->is_valid(now)) {
    // The reply took longer than the lease: the service may have granted the lock again.
    session.lose(lease);
    return fail(Errc::lease_lost, "the grant arrived after the end of its lease; acquire again");
  }
  if (lease->was_force_released(pending.request())) {
    hold->mark_lost();
  }
  return hold;
}

/// TTL of a lease whose hold must last for LockOptions::hold_at_least. The local validity must not
/// end earlier: the client revokes a lease that has expired by its own clock.
std::chrono::milliseconds longest_ttl(const LockSpec& spec) {
  return std::max(spec.ttl, ttl_for(spec.hold_at_least));
}

/// Completes a grant with LockOptions::hold_at_least: `renewed` is the reply to a renewal with
/// longest_ttl(). `granted`: time of the grant. Without a confirmed renewal the hold is released.
Acquired finish_renewal(const LockSpec& spec, std::shared_ptr<Hold> hold, Result<void> renewed,
                        sys::BootTime granted) {
  if (!renewed) {
    hold->drop();
    return std::unexpected(explain(std::move(renewed).error(), spec, *hold->lease()));
  }
  hold->keep_until(granted + spec.hold_at_least);
  return hold;
}

/// finish() and the renewal, with a blocked thread.
Acquired finish_and_renew(const LockSpec& spec, PendingAcquire& pending, sys::BootTime began) {
  auto acquired = finish(spec, pending, began);
  if (!acquired || spec.hold_at_least == std::chrono::milliseconds::zero()) {
    return acquired;
  }
  auto& session = *spec.session;
  const auto granted = session.clock().now();
  auto renewed = session.renew((*acquired)->lease(), longest_ttl(spec));
  return finish_renewal(spec, *std::move(acquired), std::move(renewed), granted);
}

/// Blocks until the request is settled. After the deadline or a cancellation it leaves the wait
/// queue, and waits at most another request_timeout for the confirmation.
void wait_for(Session& session, PendingAcquire& pending, const WaitLimits& wait) {
  // First the wait proper, then a bounded wait for the confirmation of the cancellation.
  pending.sleep(wait.deadline, wait.cancel);
  if (pending.is_settled()) {
    return;
  }
  pending.cancel(wait.cancel.stop_requested() ? Errc::cancelled : Errc::timed_out);
  pending.sleep(Clock::now() + session.request_timeout(), {});
  if (!pending.is_settled()) {
    // The service is silent. A grant that still arrives is released by the request itself.
    pending.abandon();
  }
}

/// Delay between two attempts. False if it was cancelled.
bool pause(std::chrono::nanoseconds length, const std::stop_token& cancel) {
  sys::Mutex mutex;
  sys::Signal changed;
  const std::stop_callback on_stop(cancel, [&] {
    const sys::MutexGuard lock(mutex);
    changed.notify_all();
  });
  const auto end = Clock::now() + length;
  const sys::MutexGuard lock(mutex);
  while (!cancel.stop_requested() && Clock::now() < end) {
    changed.wait_for(mutex, end - Clock::now());
  }
  return !cancel.stop_requested();
}

/// Renewal for LockOptions::hold_at_least after a grant, without a blocked thread. The first of its
/// reply and its timeout counts. Owned by the callback of the backend; keeps the session alive
/// until it is settled.
struct AsyncRenewal {
  std::shared_ptr<const LockSpec> spec;
  std::shared_ptr<Hold> hold;
  std::move_only_function<void(Acquired)> done;
  sys::BootTime granted;
  std::atomic<bool> is_settled = false;

  /// REQUIRES: the caller keeps the session alive during the call.
  static void start(std::shared_ptr<const LockSpec> spec, std::shared_ptr<Hold> hold,
                    std::move_only_function<void(Acquired)> done) {
    auto& session = *spec->session;
    const auto granted = session.clock().now();
    const auto ttl = longest_ttl(*spec);
    // A copy: the timer may settle the renewal before set_ttl() is called.
    const auto lease = hold->lease();
    const std::weak_ptr<Dependent> owner = hold;
    const auto renewal =
        std::make_shared<AsyncRenewal>(std::move(spec), std::move(hold), std::move(done), granted);
    // No thread waits for the reply, so another one has to run the event loop.
    session.backend().parker().begin_background();
    session.renewer().call_at(
        granted + session.request_timeout(), owner, [weak = std::weak_ptr(renewal)] {
          if (const auto waiting = weak.lock()) {
            settle(*waiting, fail(Errc::unavailable, "no reply to the renewal after the grant"));
          }
        });
    session.renewer().set_ttl(lease, session.fresh_request(), ttl, [renewal](Result<void> answer) {
      settle(*renewal, std::move(answer));
    });
  }

  /// On any thread; `done` runs on the callback thread. The session moves to that job: whatever
  /// thread drops the renewal later must not destroy the session.
  static void settle(AsyncRenewal& renewal, Result<void> answer) {
    if (renewal.is_settled.exchange(true)) {
      return;
    }
    auto& session = *renewal.spec->session;
    session.backend().parker().end_background();
    session.callbacks().post([spec = std::move(renewal.spec), hold = std::move(renewal.hold),
                              done = std::move(renewal.done), granted = renewal.granted,
                              answer = std::move(answer)]() mutable {
      done(finish_renewal(*spec, std::move(hold), std::move(answer), granted));
    });
  }
};

/// Request that a coroutine waits for. Keeps the session alive until it is settled. Owned by its
/// completion callback. settle() runs once, on the callback thread.
struct AsyncAcquire {
  std::shared_ptr<const LockSpec> spec;
  std::shared_ptr<PendingAcquire> request;
  std::move_only_function<void(Acquired)> done;
  sys::BootTime began;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;

  void settle() {
    // Waits for a cancellation that runs on another thread, and prevents later ones.
    on_cancel.reset();
    auto acquired = finish(*spec, *request, began);
    if (acquired && spec->hold_at_least > std::chrono::milliseconds::zero()) {
      AsyncRenewal::start(spec, *std::move(acquired), std::exchange(done, {}));
    } else {
      std::exchange(done, {})(std::move(acquired));
    }
  }
};

/// Schedules the timeout of a wait without a blocked thread: cancel at max_wait, abandon if the
/// service has not confirmed that after request_timeout.
void schedule_timeout(const AsyncAcquire& async) {
  if (!async.spec->max_wait) {
    return;
  }
  auto& session = *async.spec->session;
  const auto end = async.began + *async.spec->max_wait;
  // Weak: a timer of a settled request must not keep it, and its session, until the deadline.
  const std::weak_ptr<PendingAcquire> weak = async.request;
  session.renewer().call_at(end, weak, [weak] {
    if (const auto request = weak.lock()) {
      request->cancel(Errc::timed_out);
    }
  });
  session.renewer().call_at(end + session.request_timeout(), weak, [weak] {
    if (const auto request = weak.lock(); request && !request->is_settled()) {
      request->abandon();
    }
  });
}

}  // namespace

Acquired acquire(const LockSpec& spec, const WaitLimits& wait) {
  if (auto error = precondition_error(spec)) {
    return std::unexpected(*std::move(error));
  }
  if (wait.cancel.stop_requested()) {
    return fail(Errc::cancelled, '"' + spec.name + "\": cancelled before it was sent");
  }
  auto& session = *spec.session;
  auto freshness = Session::Freshness::any;
  // Before the retry, because the report shows the whole time that the caller has waited.
  const auto began = session.clock().now();
  for (;;) {
    const auto pending = start_acquire(spec, wait.queue, freshness);
    if (!pending->is_settled()) {
      wait_for(session, *pending, wait);
    }
    auto acquired = finish_and_renew(spec, *pending, began);
    // A pooled lease may have expired unnoticed, for example while the machine was suspended. One
    // retry is enough, because a new lease is not from the pool.
    const bool is_stale = !acquired && acquired.error() == Errc::lease_lost &&
                          freshness == Session::Freshness::any && spec.lease == nullptr;
    if (!is_stale) {
      return acquired;
    }
    freshness = Session::Freshness::fresh;
  }
}

Acquired acquire(const LockSpec& spec, Attempts attempts, const std::stop_token& cancel) {
  if (attempts.count <= 0 || attempts.delay < std::chrono::milliseconds::zero()) {
    return fail(Errc::invalid_argument,
                "attempts: count must be positive and delay must not be negative");
  }
  const auto began = spec.session->clock().now();
  for (int attempt = 1;; ++attempt) {
    auto acquired = acquire(spec, {.queue = backends::Queue::skip, .cancel = cancel});
    if (acquired) {
      (*acquired)->set_attempts(attempt, spec.session->clock().now() - began);
      return acquired;
    }
    // Only contention is worth another attempt; every other error is returned at once.
    if (acquired.error() != Errc::would_block) {
      return acquired;
    }
    if (attempt == attempts.count) {
      return fail(Errc::would_block, '"' + spec.name + "\": not available in " +
                                         std::to_string(attempt) + " attempts");
    }
    // Jitter of up to half the delay separates clients that began at the same time.
    if (!pause(attempts.delay + sys::with_jitter(attempts.delay / 2, sys::Jitter::full), cancel)) {
      return fail(Errc::cancelled, '"' + spec.name + "\": cancelled between two attempts");
    }
  }
}

std::optional<Acquired> acquire_async(std::shared_ptr<const LockSpec> spec,
                                      const std::stop_token& cancel,
                                      std::move_only_function<void(Acquired)> done) {
  if (auto error = precondition_error(*spec)) {
    return std::unexpected(*std::move(error));
  }
  auto& session = *spec->session;
  const auto began = session.clock().now();
  auto request = start_acquire(*spec, backends::Queue::wait, Session::Freshness::any);
  // Granted or refused at once: the coroutine continues without a switch of threads. A renewal
  // after the grant needs the callback thread.
  const bool renews = spec->hold_at_least > std::chrono::milliseconds::zero();
  if (request->is_settled() && !renews) {
    return finish(*spec, *request, began);
  }
  const auto async = std::make_shared<AsyncAcquire>();
  async->spec = std::move(spec);
  async->request = std::move(request);
  async->done = std::move(done);
  async->began = began;
  // Before on_settled(): afterwards the callback thread owns it.
  schedule_timeout(*async);
  if (cancel.stop_possible()) {
    async->on_cancel.emplace(cancel, [weak = std::weak_ptr(async->request)] {
      if (const auto waiting = weak.lock()) {
        waiting->cancel(Errc::cancelled);
      }
    });
  }
  // Settled in between. The completion still runs on the callback thread, as documented.
  if (!async->request->on_settled([async] { async->settle(); })) {
    session.callbacks().post([async] { async->settle(); });
  }
  return std::nullopt;
}

Result<void> upgrade(const LockSpec& exclusive, const std::shared_ptr<Hold>& hold,
                     const WaitLimits& wait) {
  if (auto error = precondition_error(exclusive)) {
    return std::unexpected(*std::move(error));
  }
  auto& session = *exclusive.session;
  // Under the lease of the hold: the service joins both to one hold, and upgrades its mode. A late
  // grant is reverted through `upgrades`.
  const auto pending = std::make_shared<PendingAcquire>(
      session, PendingAcquire::Request{.spec = exclusive.acquire_spec,
                                       .lease = hold->lease(),
                                       .queue = wait.queue,
                                       .upgrades = hold});
  pending->start();
  wait_for(session, *pending, wait);
  auto answer = pending->take_answer();
  if (!answer) {
    return std::unexpected(explain(std::move(answer).error(), exclusive, *hold->lease()));
  }
  // Before the check: even a lost hold has to send the releases that the service counts.
  hold->apply_upgrade(*answer, exclusive.acquire_spec);
  if (hold->state() == GuardState::lost) {
    return fail(Errc::lease_lost, "the lease ended while the lock was upgraded");
  }
  return {};
}

WaitLimits within_max_wait(const LockSpec& spec, std::stop_token cancel) {
  WaitLimits wait{.cancel = std::move(cancel)};
  if (spec.max_wait) {
    wait.deadline = Clock::now() + *spec.max_wait;
  }
  return wait;
}

WaitLimits within(std::chrono::nanoseconds timeout, std::stop_token cancel) {
  if (timeout <= std::chrono::nanoseconds::zero()) {
    // One attempt, like try_lock_for() of <mutex> with a duration of zero.
    return {.queue = backends::Queue::skip, .cancel = std::move(cancel)};
  }
  // No further than the clock goes.
  const auto now = Clock::now();
  const auto longest = Clock::time_point::max() - now;
  return {.deadline = now + std::min<std::chrono::nanoseconds>(timeout, longest),
          .cancel = std::move(cancel)};
}

}  // namespace tenure::detail
