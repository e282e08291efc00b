#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "grpc/call.hpp"
#include "grpc/router.hpp"
#include "server/rpc/authorization.hpp"
#include "server/rpc/rpc_context.hpp"
#include "wire/errors.hpp"

namespace tenure::server {

/// Maximum number of entries in a page of a listing.
inline constexpr std::uint32_t page_entries_max = 1000;

/// Number of entries in a page when the client requests `limit`; zero means no preference.
[[nodiscard]] constexpr std::uint32_t page_size(std::uint32_t limit) noexcept {
  return limit == 0 || limit > page_entries_max ? page_entries_max : limit;
}

/// Reply of a unary call. Store thread only.
///
/// Handlers keep it by shared_ptr until they complete it. If the client disconnects first,
/// complete() has no effect.
template <class Response>
class Reply : public grpc::Call {
 public:
  Reply(const grpc::CallInfo& info, std::unique_ptr<auth::Principal> caller)
      : Call(info), principal(std::move(caller)) {}

  const std::unique_ptr<auth::Principal> principal;  ///< Principal; null: no users.
  Response response;
  /// Called if the client disconnects before the reply.
  std::function<void()> on_disconnect;

  /// Sends the reply: with `ok` the response, then the status. Only the first call has an effect.
  void complete(grpc::Status status = {}) {
    if (status.ok()) {
      this->send(response);
    }
    this->finish(std::move(status));
  }

 private:
  // A finished call is closed too; that is no disconnect.
  void closed() final {
    if (const auto notify = std::exchange(on_disconnect, {}); notify && !this->is_finished()) {
      notify();
    }
  }
};
template <class Response>
using ReplyPtr = std::shared_ptr<Reply<Response>>;

/// Unary call: one request, one reply.
///
/// The handler runs at half_closed(), not at the message: a client that sends a second message gets
/// an error before anything is executed.
template <class Request, class Response>
class Unary final : public Reply<Response> {
 public:
  using Handler = std::function<void(const Request&, const ReplyPtr<Response>&)>;

  /// `handler` outlives this.
  Unary(const grpc::CallInfo& info, std::unique_ptr<auth::Principal> caller, const Handler& handler)
      : Reply<Response>(info, std::move(caller)), handler_(handler) {}

 private:
  void received(std::string_view message) override {
    if (std::exchange(has_request_, true)) {
      this->finish({grpc::StatusCode::invalid_argument, "a unary call has one request message"});
    } else if (!request_.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      this->finish(
          {grpc::StatusCode::invalid_argument, "invalid " + std::string(request_.GetTypeName())});
    }
  }
  void half_closed() override {
    if (!has_request_) {
      this->finish({grpc::StatusCode::invalid_argument, "request message missing"});
      return;
    }
    handler_(request_, std::static_pointer_cast<Reply<Response>>(this->shared_from_this()));
  }

  const Handler& handler_;
  Request request_;
  bool has_request_ = false;
};

/// Factory for unary calls with this handler.
template <class Request, class Response>
[[nodiscard]] OpenCall unary_handler(typename Unary<Request, Response>::Handler handler) {
  return [handler = std::make_shared<const typename Unary<Request, Response>::Handler>(std::move(
              handler))](const grpc::CallInfo& info, std::unique_ptr<auth::Principal> principal) {
    return std::make_shared<Unary<Request, Response>>(info, std::move(principal), *handler);
  };
}

/// Fails the call with the error if access is denied; returns whether it did.
template <class Response>
[[nodiscard]] bool reply_if_denied(const ReplyPtr<Response>& reply,
                                   const std::optional<auth::AccessDenied>& denial) {
  if (denial) {
    reply->complete(status_of(*denial));
  }
  return denial.has_value();
}
template <class Response>
[[nodiscard]] bool reply_if_denied(const ReplyPtr<Response>& reply, auth::Verb verb,
                                   std::string_view name) {
  return reply->principal && reply_if_denied(reply, reply->principal->authorize(verb, name));
}
/// Fails the call with an unknown-lease error if the lease belongs to another user.
template <class Response>
[[nodiscard]] bool reply_if_denied(const RpcContext& context, const ReplyPtr<Response>& reply,
                                   core::LeaseId lease) {
  // The same status as for an unknown lease, so that a client cannot probe for leases.
  const bool reply_if_denied = is_foreign(reply->principal.get(), context.store.state(), lease);
  if (reply_if_denied) {
    reply->complete(wire::lease_lost(lease));
  }
  return reply_if_denied;
}

/// Status of an outcome that is not the expected one.
[[nodiscard]] inline grpc::Status status_of_failure(const core::Outcome& outcome) {
  if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
    return wire::status_of(refused->error);
  }
  if (const auto* lost = std::get_if<core::LeaseLost>(&outcome)) {
    return wire::lease_lost(lost->id);
  }
  return {grpc::StatusCode::internal, "unexpected outcome from the store"};
}

/// Fails the call with an error, and the leader if the error is `unavailable`.
template <class Response>
void reply_error(RpcContext& context, const ReplyPtr<Response>& reply, const Error& error) {
  context.leadership.reject(error,
                            [reply](grpc::Status status) { reply->complete(std::move(status)); });
}

/// Proposes a command and replies with `fill(expected outcome, response)`, or with the error.
/// The command is durable before the reply is sent.
template <class Expected, class Response, class Fill>
void propose_and_reply(RpcContext& context, const ReplyPtr<Response>& reply, core::Command command,
                       Fill fill) {
  context.store.propose(std::move(command), [&context, reply, fill](const Result<Decided>& result) {
    if (!result) {
      reply_error(context, reply, result.error());
      return;
    }
    const auto* expected = std::get_if<Expected>(&result->outcome);
    if (expected == nullptr) {
      reply->complete(status_of_failure(result->outcome));
      return;
    }
    context.write_header(*result, *reply->response.mutable_header());
    fill(*expected, reply->response);
    reply->complete();
  });
}

/// Consistency of a read: linearizable, or from the possibly outdated state of this member.
enum class Consistency : std::uint8_t { linearizable, stale };
template <class Request>
[[nodiscard]] Consistency consistency_of(const Request& request) {
  return request.stale() ? Consistency::stale : Consistency::linearizable;
}

/// Reads the state and replies with the status of `fill(view, response)`.
/// `fill` runs on the store's thread, so it must do bounded work.
template <class Response, class Fill>
void read_and_reply(RpcContext& context, const ReplyPtr<Response>& reply, Consistency freshness,
                    Fill fill) {
  auto reader = [&context, reply, fill](const Result<View>& view) {
    if (!view) {
      reply_error(context, reply, view.error());
      return;
    }
    context.write_header(*view, *reply->response.mutable_header());
    reply->complete(fill(*view, reply->response));
  };
  if (freshness == Consistency::stale) {
    context.store.peek(std::move(reader));
  } else {
    context.store.read(std::move(reader));
  }
}

}  // namespace tenure::server
