#include "server/rpc/lock_call.hpp"

#include <utility>
#include <variant>

#include "wire/answers.hpp"
#include "wire/errors.hpp"

namespace tenure::server {
namespace {

/// A busy lock is a normal response, not a gRPC error: clients need the cycle as data.
void answer(RpcContext& context, core::LeaseId lease, const ReplyPtr<v1::LockResponse>& reply,
            const PendingAcquire::Completion& end) {
  auto& response = reply->response;
  // Revision and term of the grant, not of the current state.
  const auto write_header = [&] {
    context.write_header(end.revision, end.term, *response.mutable_header());
  };
  if (!end.outcome) {
    reply_error(context, reply, end.outcome.error());
    return;
  }
  if (end.position > 0) {
    response.set_queue_position(end.position);
  }
  if (const auto* granted = std::get_if<core::Granted>(&*end.outcome)) {
    wire::write(*granted, response);
    write_header();
    reply->complete();
  } else if (const auto* refused = std::get_if<core::Refused>(&*end.outcome);
             refused != nullptr && wire::is_busy(*refused)) {
    auto shown = *end.outcome;
    redact_unreadable(reply->principal.get(), shown);
    wire::write(std::get<core::Refused>(shown), response);
    write_header();
    reply->complete();
  } else if (std::holds_alternative<core::LeaseLost>(*end.outcome)) {
    reply->complete(wire::lease_lost(lease));
  } else {
    reply->complete(status_of_failure(*end.outcome));
  }
}

}  // namespace

void run_lock_call(RpcContext& context, PendingAcquire::Request request,
                   const ReplyPtr<v1::LockResponse>& reply) {
  reply->response.set_key(wire::key_of(request.acquire));
  reply->response.set_request_id(request.acquire.request.get());
  const auto lease = request.acquire.lease;
  const auto acquisition = PendingAcquire::begin(
      {.store = context.store,
       .waiters = context.waiters,
       .rollbacks = context.rollbacks,
       .is_stopping = context.is_stopping},
      std::move(request), [&context, lease, reply](const PendingAcquire::Completion& end) {
        answer(context, lease, reply, end);
      });
  // Installed after begin(): the request may be complete already, then weak is expired or its
  // disconnect has no effect.
  reply->on_disconnect = [weak = std::weak_ptr(acquisition)] {
    if (const auto here = weak.lock()) {
      here->on_disconnect();
    }
  };
}

}  // namespace tenure::server
