#include "server/requests/pending_acquire.hpp"

#include <utility>
#include <variant>

#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::server {
namespace {

/// Hold that this request would upgrade now; null: none.
const core::Hold* upgradable_hold(const core::LockTable& locks, const core::Acquire& acquire) {
  if (acquire.self_conflict != core::SelfConflict::reenter || acquire.items.size() != 1) {
    return nullptr;
  }
  core::Visits visits;
  const auto* hold = locks.own_hold(acquire.lease, acquire.items.front(), visits);
  const bool is_one_lock = hold != nullptr && hold->items.size() == 1 &&
                           !std::holds_alternative<core::Permits>(hold->items.front().claim);
  return is_one_lock ? hold : nullptr;
}

}  // namespace

std::shared_ptr<PendingAcquire> PendingAcquire::begin(const Context& context, Request request,
                                                      OnComplete on_complete) {
  auto acquisition =
      std::make_shared<PendingAcquire>(context, std::move(request), std::move(on_complete));
  context.rollbacks.pass(acquisition->key_.lease, [acquisition] { acquisition->propose(); });
  return acquisition;
}

PendingAcquire::PendingAcquire(const Context& context, Request request, OnComplete on_complete)
    : context_(context),
      request_(std::move(request)),
      key_{.lease = request_.acquire.lease, .request = request_.acquire.request},
      on_complete_(std::move(on_complete)) {}

void PendingAcquire::propose() {
  if (!on_complete_) {
    return;
  }
  is_proposed_ = true;
  // Only then can a grant be rolled back; see leave_queue().
  const auto* hold = request_.has_client_request_id
                         ? nullptr
                         : upgradable_hold(context_.store.state().locks, request_.acquire);
  if (hold != nullptr) {
    former_mode_ = mode_of(hold->items.front());
    expected_count_ = hold->count + 1;
  }
  context_.store.propose(
      std::move(request_.acquire),
      [self = shared_from_this()](Result<Decided> result) { self->decided(std::move(result)); });
}

void PendingAcquire::decided(Result<Decided> result) {
  if (!result) {
    finish(std::unexpected(std::move(result).error()));
    return;
  }
  term_ = result->term;
  if (const auto* queued = std::get_if<core::Queued>(&result->outcome)) {
    wait(*queued);
    return;
  }
  // The client disconnected before the decision and cannot ask again, so the grant would be held
  // until the lease expires.
  if (is_disconnected_ && std::holds_alternative<core::Granted>(result->outcome) &&
      !request_.has_client_request_id) {
    leave_queue();
    return;
  }
  finish(std::move(result->outcome), result->revision);
}

void PendingAcquire::wait(const core::Queued& queued) {
  position_ = queued.position;
  const auto& locks = context_.store.state().locks;
  const auto* wait = locks.find(queued.ticket);
  if (wait != nullptr && wait->upgrades) {
    // Exact from here on: a hold does not change its mode while its upgrade waits.
    former_mode_ = mode_of(locks.find(*wait->upgrades)->items.front());
    expected_count_.reset();
  }
  ticket_ = context_.waiters.attach(
      key_,
      [self = shared_from_this()](const Result<core::Notice>& notice, core::Revision revision) {
        self->notified(notice, revision);
      });
  if (is_disconnected_ || context_.is_stopping) {
    on_disconnect();
    return;
  }
  if (request_.timeout) {
    timer_.emplace(context_.store.loop(), *request_.timeout);
    // weak: the registry owns the request while it waits; the timer must not extend its life.
    timer_->async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      if (const auto self = weak.lock(); self && !error) {
        self->time_out();
      }
    });
  }
}

void PendingAcquire::notified(const Result<core::Notice>& notice, core::Revision revision) {
  ticket_.reset();
  if (!notice) {
    finish(std::unexpected(notice.error()));
    return;
  }
  std::visit([&](const auto& end) { finish(core::Outcome(end), revision); }, notice->end);
}

void PendingAcquire::time_out() {
  if (!ticket_) {
    return;
  }
  is_timed_out_ = true;
  leave_queue();
}

void PendingAcquire::on_disconnect() {
  is_disconnected_ = true;
  if (!is_proposed_) {
    // Delayed. It must not close the gate that it waits for.
    finish(core::Refused{.error = {.code = Errc::cancelled}});
    return;
  }
  close_gate();
  if (!ticket_) {
    // Not decided yet, so decided() sees the flag; or completed.
    return;
  }
  timer_.reset();
  if (context_.is_stopping) {
    context_.waiters.detach(key_, *std::exchange(ticket_, {}));
    finish(fail(Errc::unavailable, "the server stops"));
    return;
  }
  leave_queue();
}

void PendingAcquire::leave_queue() {
  if (ticket_ && context_.waiters.detach(key_, *std::exchange(ticket_, {})) ==
                     WaiterRegistry::Remaining::some) {
    // Another call waits for the same request.
    finish(core::Refused{.error = {.code = Errc::cancelled}});
    return;
  }
  // From the proposal on: a disconnect may follow while the timeout is being decided.
  close_gate();
  context_.store.propose(
      core::Abandon{.lease = key_.lease, .request = key_.request},
      [self = shared_from_this()](const Result<Decided>& result) { self->abandoned(result); });
}

void PendingAcquire::abandoned(const Result<Decided>& result) {
  if (!result) {
    finish(std::unexpected(result.error()));
    return;
  }
  const auto* granted = std::get_if<core::Granted>(&result->outcome);
  if (granted != nullptr && is_disconnected_ && !request_.has_client_request_id) {
    roll_back(*granted);
  }
  finish(result->outcome, result->revision);
}

void PendingAcquire::close_gate() {
  if (on_complete_ && !request_.has_client_request_id && !closed_gate_) {
    closed_gate_.emplace(context_.rollbacks.close(key_.lease));
  }
}

void PendingAcquire::roll_back(const core::Granted& granted) {
  const auto* hold = context_.store.state().locks.find(granted.token);
  // Other requests of the lease may have reentered the hold, and rely on its mode: before the
  // grant, if they were in flight with this one, or between it and the disconnect. The gate delays
  // later ones.
  const bool is_reentered = hold == nullptr || hold->count != granted.count ||
                            expected_count_.value_or(granted.count) != granted.count;
  if (former_mode_ && granted.count > 1 && !is_reentered) {
    context_.store.propose(
        core::Downgrade{.lease = key_.lease, .token = granted.token, .mode = *former_mode_},
        [](const Result<Decided>&) {});
  }
  // Releases one acquisition. The result is ignored: no client waits for it, and the lease expires.
  context_.store.propose(core::Release{.lease = key_.lease, .what = granted.token},
                         [](const Result<Decided>&) {});
}

void PendingAcquire::finish(Result<core::Outcome> outcome, core::Revision revision) {
  timer_.reset();
  auto* refused = outcome ? std::get_if<core::Refused>(&*outcome) : nullptr;
  // The store reports an abandoned wait as cancelled; the client must see the cause.
  if (refused != nullptr && is_timed_out_ && refused->error.code == Errc::cancelled) {
    refused->error.code = Errc::timed_out;
  }
  if (auto on_complete = std::exchange(on_complete_, {})) {
    on_complete({.outcome = std::move(outcome),
                 .revision = revision,
                 .term = term_,
                 .position = position_});
  }
  // Last: delayed requests follow the rollback in the log.
  closed_gate_.reset();
}

}  // namespace tenure::server
