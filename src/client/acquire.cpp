#include "client/acquire.hpp"

#include <algorithm>
#include <utility>

#include "client/pending_acquire.hpp"
#include "client/session.hpp"
#include "client/shared_lease.hpp"
#include "sys/jitter.hpp"
#include "sys/mutex.hpp"

namespace tenure::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// Why nothing is asked of the service at all.
std::optional<Error> refusal_of(const LockSpec& spec) {
  if (spec.error) {
    return spec.error;
  }
  return spec.session->is_inherited() ? std::optional(backends::inherited_error()) : std::nullopt;
}

std::shared_ptr<LeaseRecord> lease_for(const LockSpec& spec, Session::Freshness freshness) {
  return spec.lease != nullptr
             ? spec.lease->record()
             : spec.session->take_lease(spec.ttl, spec.renewals_per_ttl, freshness);
}

std::shared_ptr<PendingAcquire> ask(const LockSpec& spec, backends::Queue queue,
                                    Session::Freshness freshness) {
  auto acquisition = std::make_shared<PendingAcquire>(
      *spec.session,
      PendingAcquire::Question{
          .spec = spec.acquire_spec, .lease = lease_for(spec, freshness), .queue = queue});
  acquisition->start();
  return acquisition;
}

/// What was wrong, in words that tell what to do.
Error explain(Error error, const LockSpec& spec, LeaseRecord& lease) {
  if (error == Errc::lease_lost) {
    // The service never granted the lease of this hold: that is what went wrong.
    if (auto refused = lease.refused()) {
      return *std::move(refused);
    }
  }
  if (error.detail.empty()) {
    error.detail = '"' + spec.name + "\": " + std::string(message(error.code));
  }
  return error;
}

/// Makes a hold of a settled acquisition, or gives its lease back. `began`: when it was asked for.
Acquired finish(const LockSpec& spec, PendingAcquire& acquisition, sys::BootTime began) {
  auto& session = *spec.session;
  const auto& lease = acquisition.lease();
  auto answer = acquisition.take_answer();
  if (!answer) {
    auto error = explain(std::move(answer).error(), spec, *lease);
    if (spec.lease == nullptr) {
      const bool is_clean = error != Errc::unavailable && error != Errc::lease_lost;
      session.free_lease(lease, is_clean);
    }
    return std::unexpected(std::move(error));
  }
  const auto now = session.clock().now();
  auto hold = std::make_shared<Hold>(
      spec,
      Hold::Start{.request = acquisition.request(),
                  .lease = lease,
                  .granted = *answer,
                  .report = {.waited = now - began, .queue_position = answer->queue_position}});
  if (!lease->attach(*hold)) {
    return fail(Errc::lease_lost, "the lease ended while the lock was granted; ask again");
  }
  if (!lease->is_valid(now)) {
    // Granted, but so long ago that it may be somebody else's by now.
    session.lose(lease);
    return fail(Errc::lease_lost, "the grant came too late for its lease; ask again");
  }
  if (lease->was_taken(acquisition.request())) {
    hold->take_away();
  }
  return hold;
}

/// Sleeps until the answer is there; leaves the queue if it takes too long.
void wait_for(Session& session, PendingAcquire& acquisition, const WaitLimits& wait) {
  acquisition.sleep(wait.deadline, wait.cancel);
  if (acquisition.is_settled()) {
    return;
  }
  acquisition.call_off(wait.cancel.stop_requested() ? Errc::cancelled : Errc::timed_out);
  acquisition.sleep(Clock::now() + session.request_timeout(), {});
  if (!acquisition.is_settled()) {
    acquisition.give_up();
  }
}

/// Sleeps between two attempts. False if it was called off.
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

/// An acquisition that a coroutine waits for. Keeps the session alive until it is settled.
struct Pending {
  std::shared_ptr<const LockSpec> spec;
  std::shared_ptr<PendingAcquire> acquisition;
  std::move_only_function<void(Acquired)> done;
  sys::BootTime began;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;

  void settle() {
    on_cancel.reset();
    auto acquired = finish(*spec, *acquisition, began);
    std::exchange(done, {})(std::move(acquired));
  }
};

/// Sees to it that a wait ends in time, though no thread sleeps for it.
void end_in_time(const Pending& pending) {
  if (!pending.spec->max_wait) {
    return;
  }
  auto& session = *pending.spec->session;
  const auto end = pending.began + *pending.spec->max_wait;
  const std::weak_ptr<PendingAcquire> weak = pending.acquisition;
  session.keeper().call_at(end, weak, [weak] {
    if (const auto acquisition = weak.lock()) {
      acquisition->call_off(Errc::timed_out);
    }
  });
  session.keeper().call_at(end + session.request_timeout(), weak, [weak] {
    if (const auto acquisition = weak.lock(); acquisition && !acquisition->is_settled()) {
      acquisition->give_up();
    }
  });
}

}  // namespace

Acquired acquire(const LockSpec& spec, const WaitLimits& wait) {
  if (auto error = refusal_of(spec)) {
    return std::unexpected(*std::move(error));
  }
  if (wait.cancel.stop_requested()) {
    return fail(Errc::cancelled, '"' + spec.name + "\": called off before it was asked for");
  }
  auto& session = *spec.session;
  auto freshness = Session::Freshness::any;
  const auto began = session.clock().now();
  for (;;) {
    const auto acquisition = ask(spec, wait.queue, freshness);
    if (!acquisition->is_settled()) {
      wait_for(session, *acquisition, wait);
    }
    auto acquired = finish(spec, *acquisition, began);
    // An idle lease may have run out unseen, such as while the machine slept. Once is enough: a new
    // one is not idle.
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
    return fail(Errc::invalid_argument, "attempts: a positive count and no negative delay");
  }
  const auto began = spec.session->clock().now();
  for (int attempt = 1;; ++attempt) {
    auto acquired = acquire(spec, {.queue = backends::Queue::skip, .cancel = cancel});
    if (acquired) {
      (*acquired)->set_attempts(attempt, spec.session->clock().now() - began);
      return acquired;
    }
    if (acquired.error() != Errc::would_block) {
      return acquired;
    }
    if (attempt == attempts.count) {
      return fail(Errc::would_block, '"' + spec.name +
                                         "\": held or waited for by somebody else, at " +
                                         std::to_string(attempt) + " attempts");
    }
    if (!pause(attempts.delay + sys::with_jitter(attempts.delay / 2, sys::Jitter::full), cancel)) {
      return fail(Errc::cancelled, '"' + spec.name + "\": called off between two attempts");
    }
  }
}

std::optional<Acquired> acquire_async(std::shared_ptr<const LockSpec> spec,
                                      const std::stop_token& cancel,
                                      std::move_only_function<void(Acquired)> done) {
  if (auto error = refusal_of(*spec)) {
    return std::unexpected(*std::move(error));
  }
  auto& session = *spec->session;
  const auto began = session.clock().now();
  auto acquisition = ask(*spec, backends::Queue::wait, Session::Freshness::any);
  if (acquisition->is_settled()) {
    return finish(*spec, *acquisition, began);
  }
  const auto pending = std::make_shared<Pending>();
  pending->spec = std::move(spec);
  pending->acquisition = std::move(acquisition);
  pending->done = std::move(done);
  pending->began = began;
  // Before it can be settled: afterwards it belongs to the notifier.
  end_in_time(*pending);
  if (cancel.stop_possible()) {
    pending->on_cancel.emplace(cancel, [weak = std::weak_ptr(pending->acquisition)] {
      if (const auto waiting = weak.lock()) {
        waiting->call_off(Errc::cancelled);
      }
    });
  }
  if (!pending->acquisition->when_settled([pending] { pending->settle(); })) {
    session.notifier().post([pending] { pending->settle(); });
  }
  return std::nullopt;
}

Result<void> upgrade(const LockSpec& exclusive, const std::shared_ptr<Hold>& hold,
                     const WaitLimits& wait) {
  if (auto error = refusal_of(exclusive)) {
    return std::unexpected(*std::move(error));
  }
  auto& session = *exclusive.session;
  const auto acquisition = std::make_shared<PendingAcquire>(
      session, PendingAcquire::Question{.spec = exclusive.acquire_spec,
                                        .lease = hold->lease(),
                                        .queue = wait.queue,
                                        .upgrades = hold});
  acquisition->start();
  wait_for(session, *acquisition, wait);
  auto answer = acquisition->take_answer();
  if (!answer) {
    return std::unexpected(explain(std::move(answer).error(), exclusive, *hold->lease()));
  }
  hold->strengthen(*answer, exclusive.acquire_spec);
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
    return {.queue = backends::Queue::skip, .cancel = std::move(cancel)};
  }
  // No further than the clock goes.
  const auto now = Clock::now();
  const auto longest = Clock::time_point::max() - now;
  return {.deadline = now + std::min<std::chrono::nanoseconds>(timeout, longest),
          .cancel = std::move(cancel)};
}

}  // namespace tenure::detail
