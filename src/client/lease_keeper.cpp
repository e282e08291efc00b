#include "client/lease_keeper.hpp"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

namespace tenure::detail {
namespace {

/// Those that would be due so soon are renewed with those that are, by one request: of ten thousand
/// that began one after the other each would wake us, the connection and the service by itself.
constexpr std::chrono::nanoseconds gathering(std::chrono::nanoseconds interval) {
  return interval / 8;
}

/// When the keeper has to look at a lease next: to renew, to warn, or to declare it lost.
sys::BootTime next_look(const LeaseRecord& lease, sys::BootTime now) {
  const auto term = lease.term();
  const auto end = valid_until(term.sent, term.ttl);
  const auto risk = at_risk_from(term.sent, term.ttl);
  auto next = now < risk ? std::min(risk, end) : end;
  if (lease.renewals_per_ttl() > 0) {
    const auto interval = renewal_interval(term.ttl, lease.renewals_per_ttl());
    const auto due = term.sent + interval;
    // Asked for and not confirmed: once more, soon.
    next = std::min(next, due > now + gathering(interval) ? due : now + interval / 2);
  }
  return next;
}

}  // namespace

LeaseKeeper::LeaseKeeper(backends::Backend& backend, sys::Clock& clock, Owner& owner)
    : backend_(backend), clock_(clock), owner_(owner), alarm_(clock.make_alarm()) {}

bool LeaseKeeper::keep(const Record& lease) {
  return schedule(lease, lease->term().sent);
}

void LeaseKeeper::renew(const Record& lease, backends::Backend::Done<void> done) {
  const auto sent = clock_.now();
  backend_.renew_leases({lease->id()}, [this, lease, sent, done = std::move(done)](
                                           Result<backends::Renewed> answer) mutable {
    answered({lease}, sent, answer);
    if (!answer) {
      done(std::unexpected(std::move(answer).error()));
    } else if (lease->has_ended()) {
      done(fail(Errc::lease_lost, "the renewal came too late; begin anew"));
    } else {
      done({});
    }
  });
}

void LeaseKeeper::set_ttl(const Record& lease, backends::RequestId request,
                          std::chrono::milliseconds ttl, backends::Backend::Done<void> done) {
  const auto sent = clock_.now();
  if (!lease->ask_ttl({.sent = sent, .ttl = ttl})) {
    done(fail(Errc::unavailable, "another ttl was asked for before, and is not answered yet"));
    return;
  }
  // Before it leaves: it may be over sooner from now on.
  static_cast<void>(schedule(lease, sent));
  backend_.set_ttl({.lease = lease->id(), .request = request, .ttl = ttl},
                   [this, lease, done = std::move(done)](Result<void> answer) mutable {
                     done(ttl_answered(lease, std::move(answer)));
                   });
}

Result<void> LeaseKeeper::ttl_answered(const Record& lease, Result<void> answer) {
  if (!answer && answer.error() == Errc::invalid_argument) {
    lease->refuse_ttl();
  } else if (!answer && answer.error() != Errc::lease_lost) {
    lease->fear_ttl();
  } else if (answer && lease->is_valid(clock_.now())) {
    lease->confirm_ttl();
  } else {
    owner_.lost(lease);
    return fail(Errc::lease_lost, "the renewal came too late; begin anew");
  }
  return answer;
}

void LeaseKeeper::call_at(sys::BootTime when, std::weak_ptr<Dependent> owner,
                          std::function<void()> wake) {
  const sys::MutexGuard lock(mutex_);
  calls_.emplace(when, Call{.owner = std::move(owner), .wake = std::move(wake)});
  // A wait has a lease, so the thread runs already.
  static_cast<void>(start_thread());
  if (alarm_set_ && when < *alarm_set_) {
    alarm_->ring();
  }
}

bool LeaseKeeper::start_thread() {
  if (thread_.joinable() || is_stopped_) {
    return true;
  }
  try {
    thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

bool LeaseKeeper::schedule(const Record& lease, sys::BootTime now) {
  const sys::MutexGuard lock(mutex_);
  if (is_stopped_) {
    return true;
  }
  if (!start_thread()) {
    return false;
  }
  // Under the mutex: whoever comes last has seen the latest ttl.
  const auto when = next_look(*lease, now);
  lease->look_ = when;
  leases_.emplace(when, lease);
  if (alarm_set_ && when < *alarm_set_) {
    alarm_->ring();
  }
  return true;
}

void LeaseKeeper::stop() {
  std::jthread thread;
  {
    const sys::MutexGuard lock(mutex_);
    is_stopped_ = true;
    thread = std::move(thread_);
  }
  thread.request_stop();
  alarm_->ring();
}

std::size_t LeaseKeeper::size() {
  const sys::MutexGuard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      leases_, [](const auto& entry) { return entry.second->look_ == entry.first; }));
}

void LeaseKeeper::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto now = clock_.now();
    Due due;
    {
      const sys::MutexGuard lock(mutex_);
      due = take_due(now);
    }
    std::erase_if(due.leases, [&](const Record& lease) { return !look_at(lease, now); });
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
      // Far away if there is nothing: whoever comes is earlier, and rings.
      alarm_set_ = next.value_or(sys::BootTime::max());
    }
    alarm_->wait_until(next);
  }
}

LeaseKeeper::Due LeaseKeeper::take_due(sys::BootTime now) {
  Due due;
  auto end = now;
  while (!leases_.empty() && leases_.begin()->first <= end) {
    auto entry = leases_.extract(leases_.begin());
    auto& lease = entry.mapped();
    if (lease->look_ == entry.key()) {
      lease->look_.reset();
      if (due.leases.empty() && lease->renewals_per_ttl() > 0) {
        end += gathering(renewal_interval(lease->term().ttl, lease->renewals_per_ttl()));
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

bool LeaseKeeper::look_at(const Record& lease, sys::BootTime now) {
  if (lease->has_ended()) {
    return false;
  }
  if (!lease->is_valid(now)) {
    owner_.lost(lease);
    return false;
  }
  const auto term = lease->term();
  bool is_due = false;
  if (lease->renewals_per_ttl() > 0) {
    const auto interval = renewal_interval(term.ttl, lease->renewals_per_ttl());
    is_due = now + gathering(interval) >= term.sent + interval;
  }
  if (is_due && owner_.give_up(lease)) {
    backend_.revoke_lease(lease->id(), [](const Result<void>&) {});
    return false;
  }
  if (lease->is_at_risk(now) && lease->shall_warn()) {
    owner_.at_risk(lease);
  }
  static_cast<void>(schedule(lease, now));  // this is its thread
  return is_due;
}

void LeaseKeeper::renew_all(std::vector<Record> leases, sys::BootTime now) {
  const auto batch_max = backend_.limits().renewals_max;
  for (std::size_t from = 0; from < leases.size(); from += batch_max) {
    const auto batch = std::span(leases).subspan(from, std::min(batch_max, leases.size() - from));
    std::vector<LeaseId> ids;
    std::ranges::transform(batch, std::back_inserter(ids), &LeaseRecord::id,
                           [](const Record& lease) -> const LeaseRecord& { return *lease; });
    backend_.renew_leases(
        std::move(ids),
        [this, sent = now, kept = std::vector<Record>(batch.begin(), batch.end())](
            const Result<backends::Renewed>& answer) { answered(kept, sent, answer); });
  }
}

void LeaseKeeper::answered(const std::vector<Record>& leases, sys::BootTime sent,
                           const Result<backends::Renewed>& answer) {
  for (std::size_t index = 0; index < leases.size(); ++index) {
    const auto& lease = leases[index];
    if (!answer) {
      lease->doubt();
    } else if (index < answer->size() && !(*answer)[index]) {
      owner_.lost(lease);
    } else if (lease->is_valid(clock_.now())) {
      lease->confirm(sent);
    } else {
      // Confirmed too late: by our own clock it was lost already, and lost is for ever.
      owner_.lost(lease);
    }
  }
}

}  // namespace tenure::detail
