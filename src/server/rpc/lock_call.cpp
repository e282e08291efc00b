#include "server/rpc/lock_call.hpp"

#include <utility>
#include <variant>

#include "wire/answers.hpp"
#include "wire/errors.hpp"

namespace tenure::server {
namespace {

void answer(Desk& desk, core::LeaseId lease, const ReplyTo<v1::LockResponse>& reply,
            const Acquisition::End& end) {
  auto& response = reply->response;
  const auto write_header = [&] {
    desk.write_header(end.revision, end.term, *response.mutable_header());
  };
  if (!end.outcome) {
    refuse(desk, reply, end.outcome.error());
    return;
  }
  if (end.position > 0) {
    response.set_queue_position(end.position);
  }
  if (const auto* granted = std::get_if<core::Granted>(&*end.outcome)) {
    wire::write(*granted, response);
    write_header();
    reply->answer();
  } else if (const auto* refused = std::get_if<core::Refused>(&*end.outcome);
             refused != nullptr && wire::is_busy(*refused)) {
    auto shown = *end.outcome;
    hide_unreadable(reply->guest.get(), shown);
    wire::write(std::get<core::Refused>(shown), response);
    write_header();
    reply->answer();
  } else if (std::holds_alternative<core::LeaseLost>(*end.outcome)) {
    reply->answer(wire::lease_lost(lease));
  } else {
    reply->answer(failure_of(*end.outcome));
  }
}

}  // namespace

void answer_lock(Desk& desk, Acquisition::Order order, const ReplyTo<v1::LockResponse>& reply) {
  reply->response.set_key(wire::key_of(order.acquire));
  reply->response.set_request_id(order.acquire.request.get());
  const auto lease = order.acquire.lease;
  const auto acquisition = Acquisition::begin(
      {.store = desk.store, .callers = desk.callers, .is_stopping = desk.is_stopping},
      std::move(order),
      [&desk, lease, reply](const Acquisition::End& end) { answer(desk, lease, reply, end); });
  reply->when_cut_off = [weak = std::weak_ptr(acquisition)] {
    if (const auto here = weak.lock()) {
      here->cut_off();
    }
  };
}

}  // namespace tenure::server
