#include "client/lease_renewer.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace tenure::detail {
namespace {

/// Leases that are due within this window are renewed together. Without it, ten thousand leases
/// that started one after the other would need ten thousand requests and wake-ups per interval.
constexpr std::chrono::nanoseconds batch_window(std::chrono::nanoseconds interval) {
  return interval / 8;
}

/// Next time at which a lease needs attention: to renew, to report a risk, or to report its loss.
sys::BootTime next_check(const LeaseRecord& lease, sys::BootTime now) {
  const auto term = lease.term();
  const auto end = valid_until(term.sent, term.ttl);
  const auto risk = at_risk_from(term.sent, term.ttl);
  auto next = now < risk ? std::min(risk, end) : end;
  if (lease.renewals_per_ttl() > 0) {
    const auto interval = renewal_interval(term.ttl, lease.renewals_per_ttl());
    const auto due = term.sent + interval;
    // A renewal is overdue: retry after half an interval.
    next = std::min(next, due > now + batch_window(interval) ? due : now + interval / 2);
  }
  return next;
}

/// The answer to a renewal of `count` leases. An answer of another length confirms nothing, because
/// its results cannot be attributed to leases.
Result<backends::Renewed> checked(Result<backends::Renewed> answer, std::size_t count) {
  if (answer && answer->size() != count) {
    return fail(Errc::unavailable, "the service answered " + std::to_string(answer->size()) +
                                       " of " + std::to_string(count) + " renewals");
  }
  return answer;
}

}  // namespace

LeaseRenewer::LeaseRenewer(backends::Backend& backend, sys::Clock& clock, Listener& listener)
    : backend_(backend), clock_(clock), listener_(listener), alarm_(clock.make_alarm()) {}

bool LeaseRenewer::add(const Record& lease) {
  return schedule(lease, lease->term().sent);
}

void LeaseRenewer::renew(const Record& lease, backends::Backend::Done<void> done) {
  // Before the request leaves: the confirmed term must not begin later than that of the service.
  const auto sent = clock_.now();
  backend_.renew_leases({lease->id()}, [this, lease, sent, done = std::move(done)](
                                           Result<backends::Renewed> reply) mutable {
    auto answer = checked(std::move(reply), 1);
    on_renewed({lease}, sent, answer);
    if (!answer) {
      done(std::unexpected(std::move(answer).error()));
    } else if (lease->has_ended()) {
      done(fail(Errc::lease_lost,
                "the renewal was confirmed after the end of the lease; acquire again"));
    } else {
      done({});
    }
  });
}

void LeaseRenewer::set_ttl(const Record& lease, backends::RequestId request,
                           std::chrono::milliseconds ttl, backends::Backend::Done<void> done) {
  const auto sent = clock_.now();
  if (!lease->begin_ttl_change({.sent = sent, .ttl = ttl})) {
    done(fail(Errc::unavailable, "a previous change of the ttl is still pending"));
    return;
  }
  // Before the request is sent: a shorter TTL may end the lease sooner from now on.
  static_cast<void>(schedule(lease, sent));
  backend_.set_ttl({.lease = lease->id(), .request = request, .ttl = ttl},
                   [this, lease, done = std::move(done)](Result<void> answer) mutable {
                     done(on_ttl_reply(lease, std::move(answer)));
                   });
}

Result<void> LeaseRenewer::on_ttl_reply(const Record& lease, Result<void> answer) {
  // Rejected: the service keeps the old TTL. Any other error but lease_lost leaves the outcome
  // open.
  if (!answer && answer.error() == Errc::invalid_argument) {
    lease->reject_ttl();
  } else if (!answer && answer.error() != Errc::lease_lost) {
    lease->mark_ttl_unknown();
  } else if (answer && lease->is_valid(clock_.now())) {
    lease->confirm_ttl();
  } else {
    listener_.lost(lease);
    return fail(Errc::lease_lost,
                "the renewal was confirmed after the end of the lease; acquire again");
  }
  return answer;
}

void LeaseRenewer::call_at(sys::BootTime when, std::weak_ptr<Dependent> owner,
                           std::function<void()> wake) {
  const sys::MutexGuard lock(mutex_);
  calls_.emplace(when, Call{.owner = std::move(owner), .wake = std::move(wake)});
  // A waiting request has a lease, so the thread runs already.
  static_cast<void>(start_thread());
  // The thread sleeps for longer: wake it, so that it takes the new entry into account.
  if (alarm_set_ && when < *alarm_set_) {
    alarm_->notify();
  }
}

// A stopped renewer reports success: no new thread, and no error that would end a lease.
bool LeaseRenewer::start_thread() {
  if (thread_.joinable() || is_stopped_) {
    return true;
  }
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

bool LeaseRenewer::schedule(const Record& lease, sys::BootTime now) {
  const sys::MutexGuard lock(mutex_);
  // The session is being destroyed; its leases expire on their own.
  if (is_stopped_) {
    return true;
  }
  if (!start_thread()) {
    return false;
  }
  // Under the mutex, so that the last of concurrent callers has seen the latest TTL.
  const auto when = next_check(*lease, now);
  lease->next_check_ = when;
  leases_.emplace(when, lease);
  if (alarm_set_ && when < *alarm_set_) {
    alarm_->notify();
  }
  return true;
}

void LeaseRenewer::stop() {
  std::jthread thread;
  {
    const sys::MutexGuard lock(mutex_);
    is_stopped_ = true;
    // Joined at the end of this function, without the mutex, which the thread needs to finish.
    thread = std::move(thread_);
  }
  thread.request_stop();
  alarm_->notify();
}

std::size_t LeaseRenewer::size() {
  const sys::MutexGuard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      leases_, [](const auto& entry) { return entry.second->next_check_ == entry.first; }));
}

void LeaseRenewer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // One reading per turn: all decisions of the turn, and the term of its renewals, refer to it.
    const auto now = clock_.now();
    Due due;
    {
      const sys::MutexGuard lock(mutex_);
      due = take_due(now);
    }
    // Without the mutex: check() and the renewals call the listener and the backend.
    std::erase_if(due.leases, [&](const Record& lease) { return !check(lease, now); });
    renew_all(std::move(due.leases), now);
    for (auto& call : due.calls) {
      if (const auto alive = call.owner.lock()) {
        call.wake();
      }
    }
    std::optional<sys::BootTime> next;
    {
      const sys::MutexGuard lock(mutex_);
      const auto earlier = [&](sys::BootTime when) { next = next ? std::min(*next, when) : when; };
      if (!leases_.empty()) {
        earlier(leases_.begin()->first);
      }
      if (!calls_.empty()) {
        earlier(calls_.begin()->first);
      }
      // Without entries, the end of time: every new entry is earlier and notifies the alarm.
      alarm_set_ = next.value_or(sys::BootTime::max());
    }
    alarm_->wait_until(next);
  }
}

LeaseRenewer::Due LeaseRenewer::take_due(sys::BootTime now) {
  Due due;
  auto end = now;
  while (!leases_.empty() && leases_.begin()->first <= end) {
    // A rescheduled lease has several entries; only the one that matches next_check_ is current.
    auto entry = leases_.extract(leases_.begin());
    auto& lease = entry.mapped();
    if (lease->next_check_ == entry.key()) {
      lease->next_check_.reset();
      // The window of the first due lease applies to the whole batch.
      if (due.leases.empty() && lease->renewals_per_ttl() > 0) {
        end += batch_window(renewal_interval(lease->term().ttl, lease->renewals_per_ttl()));
      }
      due.leases.push_back(std::move(lease));
    }
  }
  while (!calls_.empty() && calls_.begin()->first <= now) {
    due.calls.push_back(std::move(calls_.begin()->second));
    calls_.erase(calls_.begin());
  }
  return due;
}

bool LeaseRenewer::check(const Record& lease, sys::BootTime now) {
  if (lease->has_ended()) {
    return false;
  }
  // Expired by the local clock: lost even if the network is silent and no reply will ever come.
  if (!lease->is_valid(now)) {
    listener_.lost(lease);
    return false;
  }
  const auto term = lease->term();
  bool is_due = false;
  if (lease->renewals_per_ttl() > 0) {
    const auto interval = renewal_interval(term.ttl, lease->renewals_per_ttl());
    is_due = now + batch_window(interval) >= term.sent + interval;
  }
  // Idle since the last renewal: to revoke it is cheaper than to renew it without a holder.
  if (is_due && listener_.retire_if_idle(lease)) {
    backend_.revoke_lease(lease->id(), [](const Result<void>&) {});
    return false;
  }
  if (lease->is_at_risk(now) && lease->should_warn()) {
    listener_.at_risk(lease);
  }
  static_cast<void>(schedule(lease, now));  // Cannot fail: this is the thread.
  return is_due;
}

void LeaseRenewer::renew_all(std::vector<Record> leases, sys::BootTime now) {
  const auto batch_max = backend_.limits().renewals_max;
  // All batches carry the same `sent`, which is not later than any of them.
  for (std::size_t from = 0; from < leases.size(); from += batch_max) {
    const auto batch = std::span(leases).subspan(from, std::min(batch_max, leases.size() - from));
    std::vector<LeaseId> ids;
    std::ranges::transform(batch, std::back_inserter(ids), &LeaseRecord::id,
                           [](const Record& lease) -> const LeaseRecord& { return *lease; });
    backend_.renew_leases(
        std::move(ids), [this, sent = now, kept = std::vector<Record>(batch.begin(), batch.end())](
                            Result<backends::Renewed> answer) {
          on_renewed(kept, sent, checked(std::move(answer), kept.size()));
        });
  }
}

void LeaseRenewer::on_renewed(const std::vector<Record>& leases, sys::BootTime sent,
                              const Result<backends::Renewed>& answer) {
  for (std::size_t index = 0; index < leases.size(); ++index) {
    const auto& lease = leases[index];
    if (!answer) {
      // The outcome is unknown: the lease keeps its term, and the next check retries early.
      lease->mark_suspect();
    } else if ((*answer)[index] && lease->is_valid(clock_.now())) {
      lease->confirm(sent);
    } else {
      // The service has ended the lease, or confirmed it after its end by the local clock: loss is
      // final, even if it was not reported yet.
      listener_.lost(lease);
    }
  }
}

}  // namespace tenure::detail
