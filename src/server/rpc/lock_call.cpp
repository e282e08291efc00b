#include "server/rpc/lock_call.hpp"

#include <utility>
#include <variant>

#include "wire/answers.hpp"
#include "wire/errors.hpp"

namespace tenure::server {

void LockCall::open(Desk& desk, Order order, const ReplyTo<v1::LockResponse>& reply) {
  const auto call = std::make_shared<LockCall>(desk, std::move(order), reply);
  reply->when_cut_off = [weak = std::weak_ptr(call)] {
    if (const auto here = weak.lock()) {
      here->cut_off();
    }
  };
  call->propose();
}

LockCall::LockCall(Desk& desk, Order order, ReplyTo<v1::LockResponse> reply)
    : desk_(desk),
      order_(std::move(order)),
      key_{.lease = order_.acquire.lease, .request = order_.acquire.request},
      reply_(std::move(reply)) {
  reply_->response.set_key(wire::key_of(order_.acquire));
  reply_->response.set_request_id(key_.request.get());
}

void LockCall::propose() {
  desk_.store.propose(
      std::move(order_.acquire),
      [call = shared_from_this()](Result<Decided> result) { call->decided(std::move(result)); });
}

void LockCall::decided(Result<Decided> result) {
  if (!result) {
    refuse(result.error());
    return;
  }
  term_ = result->term;
  if (const auto* queued = std::get_if<core::Queued>(&result->outcome)) {
    wait(*queued, result->term);
    return;
  }
  const auto* granted = std::get_if<core::Granted>(&result->outcome);
  if (is_cut_off_ && granted != nullptr && !order_.has_own_id) {
    leave_queue();
  }
  answer(result->outcome, result->revision);
}

void LockCall::wait(const core::Queued& queued, std::uint64_t term) {
  term_ = term;
  reply_->response.set_queue_position(queued.position);
  ticket_ = desk_.callers.attach(
      key_, [call = shared_from_this()](const Result<core::Notice>& notice,
                                        core::Revision revision) { call->told(notice, revision); });
  if (is_cut_off_ || desk_.is_stopping) {
    cut_off();
    return;
  }
  if (order_.timeout) {
    timer_.emplace(desk_.store.loop(), *order_.timeout);
    timer_->async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      if (const auto call = weak.lock(); call && !error) {
        call->time_out();
      }
    });
  }
}

void LockCall::told(const Result<core::Notice>& notice, core::Revision revision) {
  ticket_.reset();
  timer_.reset();
  if (!notice) {
    refuse(notice.error());
    return;
  }
  std::visit([&](const auto& end) { answer(end, revision); }, notice->end);
}

void LockCall::time_out() {
  if (!ticket_) {
    return;
  }
  is_timed_out_ = true;
  leave_queue();
}

void LockCall::cut_off() {
  is_cut_off_ = true;
  if (!ticket_) {
    // Not decided yet: decided() sees the flag. Or over.
    return;
  }
  timer_.reset();
  if (desk_.is_stopping) {
    desk_.callers.detach(key_, *std::exchange(ticket_, {}));
    finish({h2::StatusCode::unavailable, "the server stops"});
    return;
  }
  leave_queue();
}

void LockCall::leave_queue() {
  if (ticket_ && desk_.callers.detach(key_, *std::exchange(ticket_, {})) == Callers::Left::others) {
    // Another call waits for the same.
    refuse({.error = {.code = is_timed_out_ ? Errc::timed_out : Errc::cancelled}}, {});
    return;
  }
  desk_.store.propose(
      core::Abandon{.lease = key_.lease, .request = key_.request},
      [call = shared_from_this()](const Result<Decided>& result) { call->abandoned(result); });
}

void LockCall::abandoned(const Result<Decided>& result) {
  if (!result) {
    refuse(result.error());
    return;
  }
  const auto* granted = std::get_if<core::Granted>(&result->outcome);
  if (granted == nullptr) {
    answer(result->outcome, result->revision);
    return;
  }
  if (is_cut_off_ && !order_.has_own_id) {
    desk_.store.propose(core::Release{.lease = key_.lease, .what = granted->token},
                        [](const Result<Decided>&) {});
  }
  answer(*granted, result->revision);
}

void LockCall::answer(const core::Outcome& outcome, core::Revision revision) {
  if (reply_ == nullptr) {
    return;
  }
  if (const auto* granted = std::get_if<core::Granted>(&outcome)) {
    wire::write(*granted, reply_->response);
    desk_.write_header(revision, term_, *reply_->response.mutable_header());
    finish({});
    return;
  }
  if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
    refuse(*refused, revision);
    return;
  }
  if (std::holds_alternative<core::LeaseLost>(outcome)) {
    finish(wire::lease_lost(key_.lease));
    return;
  }
  finish({h2::StatusCode::internal, "the store gave an answer to another question"});
}

void LockCall::refuse(const core::Refused& refused, core::Revision revision) {
  if (reply_ == nullptr) {
    return;
  }
  if (!wire::is_busy(refused)) {
    finish(wire::status_of(refused.error));
    return;
  }
  auto reason = refused;
  if (is_timed_out_ && reason.error.code == Errc::cancelled) {
    reason.error.code = Errc::timed_out;
  }
  wire::write(reason, reply_->response);
  desk_.write_header(revision, term_, *reply_->response.mutable_header());
  finish({});
}

void LockCall::refuse(const Error& error) {
  timer_.reset();
  desk_.leadership.refuse(
      error, [call = shared_from_this()](h2::Status status) { call->finish(std::move(status)); });
}

void LockCall::finish(h2::Status status) {
  timer_.reset();
  if (const auto reply = std::exchange(reply_, nullptr)) {
    reply->answer(std::move(status));
  }
}

}  // namespace tenure::server
