#include "server/requests/acquisition.hpp"

#include <utility>
#include <variant>

#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::server {
namespace {

/// Mode of the hold that this request would upgrade now, if there is one.
std::optional<LockMode> held_mode(const core::LockTable& locks, const core::Acquire& acquire) {
  if (acquire.again != core::Again::reenter || acquire.items.size() != 1) {
    return std::nullopt;
  }
  core::Visits visits;
  const auto* hold = locks.own_hold(acquire.lease, acquire.items.front(), visits);
  if (hold == nullptr || hold->items.size() > 1 ||
      std::holds_alternative<core::Permits>(hold->items.front().claim)) {
    return std::nullopt;
  }
  return mode_of(hold->items.front());
}

}  // namespace

std::shared_ptr<Acquisition> Acquisition::begin(const Around& around, Order order, Ended ended) {
  auto acquisition = std::make_shared<Acquisition>(around, std::move(order), std::move(ended));
  acquisition->propose();
  return acquisition;
}

Acquisition::Acquisition(const Around& around, Order order, Ended ended)
    : around_(around),
      order_(std::move(order)),
      key_{.lease = order_.acquire.lease, .request = order_.acquire.request},
      ended_(std::move(ended)) {}

void Acquisition::propose() {
  if (!order_.has_own_id) {
    former_mode_ = held_mode(around_.store.state().locks, order_.acquire);
  }
  around_.store.propose(
      std::move(order_.acquire),
      [self = shared_from_this()](Result<Decided> result) { self->decided(std::move(result)); });
}

void Acquisition::decided(Result<Decided> result) {
  if (!result) {
    finish(std::unexpected(std::move(result).error()));
    return;
  }
  term_ = result->term;
  if (const auto* queued = std::get_if<core::Queued>(&result->outcome)) {
    wait(*queued);
    return;
  }
  if (is_cut_off_ && std::holds_alternative<core::Granted>(result->outcome) && !order_.has_own_id) {
    leave_queue();
  }
  finish(std::move(result->outcome), result->revision);
}

void Acquisition::wait(const core::Queued& queued) {
  position_ = queued.position;
  const auto& locks = around_.store.state().locks;
  const auto* wait = locks.find(queued.ticket);
  if (wait != nullptr && wait->upgrades) {
    // Exact from now on: a hold keeps its mode while an upgrade of it waits.
    former_mode_ = mode_of(locks.find(*wait->upgrades)->items.front());
  }
  ticket_ = around_.callers.attach(
      key_, [self = shared_from_this()](const Result<core::Notice>& notice,
                                        core::Revision revision) { self->told(notice, revision); });
  if (is_cut_off_ || around_.is_stopping) {
    cut_off();
    return;
  }
  if (order_.timeout) {
    timer_.emplace(around_.store.loop(), *order_.timeout);
    timer_->async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      if (const auto self = weak.lock(); self && !error) {
        self->time_out();
      }
    });
  }
}

void Acquisition::told(const Result<core::Notice>& notice, core::Revision revision) {
  ticket_.reset();
  if (!notice) {
    finish(std::unexpected(notice.error()));
    return;
  }
  std::visit([&](const auto& end) { finish(core::Outcome(end), revision); }, notice->end);
}

void Acquisition::time_out() {
  if (!ticket_) {
    return;
  }
  is_timed_out_ = true;
  leave_queue();
}

void Acquisition::cut_off() {
  is_cut_off_ = true;
  if (!ticket_) {
    // Not decided yet: decided() sees the flag. Or over.
    return;
  }
  timer_.reset();
  if (around_.is_stopping) {
    around_.callers.detach(key_, *std::exchange(ticket_, {}));
    finish(fail(Errc::unavailable, "the server stops"));
    return;
  }
  leave_queue();
}

void Acquisition::leave_queue() {
  if (ticket_ &&
      around_.callers.detach(key_, *std::exchange(ticket_, {})) == Callers::Left::others) {
    // Another call waits for the same.
    finish(core::Refused{.error = {.code = Errc::cancelled}});
    return;
  }
  around_.store.propose(
      core::Abandon{.lease = key_.lease, .request = key_.request},
      [self = shared_from_this()](const Result<Decided>& result) { self->abandoned(result); });
}

void Acquisition::abandoned(const Result<Decided>& result) {
  if (!result) {
    finish(std::unexpected(result.error()));
    return;
  }
  const auto* granted = std::get_if<core::Granted>(&result->outcome);
  if (granted != nullptr && is_cut_off_ && !order_.has_own_id) {
    undo(*granted);
  }
  finish(result->outcome, result->revision);
}

void Acquisition::undo(const core::Granted& granted) {
  if (former_mode_ && granted.count > 1) {
    around_.store.propose(
        core::Downgrade{.lease = key_.lease, .token = granted.token, .mode = *former_mode_},
        [](const Result<Decided>&) {});
  }
  around_.store.propose(core::Release{.lease = key_.lease, .what = granted.token},
                        [](const Result<Decided>&) {});
}

void Acquisition::finish(Result<core::Outcome> outcome, core::Revision revision) {
  timer_.reset();
  auto* refused = outcome ? std::get_if<core::Refused>(&*outcome) : nullptr;
  if (refused != nullptr && is_timed_out_ && refused->error.code == Errc::cancelled) {
    refused->error.code = Errc::timed_out;
  }
  if (auto ended = std::exchange(ended_, {})) {
    ended({.outcome = std::move(outcome),
           .revision = revision,
           .term = term_,
           .position = position_});
  }
}

}  // namespace tenure::server
