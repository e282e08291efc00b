#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/arena.h>

#include "grpc/call.hpp"
#include "grpc/router.hpp"
#include "net/shares.hpp"
#include "server/rpc/authorization.hpp"
#include "server/rpc/rpc_context.hpp"

namespace tenure::server {

/// One call with messages in both directions. Of the store's thread.
template <class Request, class Response>
class Stream : public grpc::Call, public LeaderBoundCall {
 public:
  Stream(const grpc::CallInfo& info, RpcContext& context,
         std::unique_ptr<auth::Principal> principal)
      : Call(info), context_(context), principal_(std::move(principal)) {
    ++context_.streams;
    context_.leadership.add(*this);
  }
  ~Stream() override {
    --context_.streams;
    context_.leadership.remove(*this);
  }

  [[nodiscard]] std::shared_ptr<LeaderBoundCall> keep_alive() final {
    const auto call = weak_from_this().lock();
    return call ? std::shared_ptr<LeaderBoundCall>(call, this) : nullptr;
  }

  /// Ends it at once if there are too many, of all clients or of this one.
  void enforce_stream_limits() {
    if (context_.streams > context_.limits.sessions_max) {
      finish({grpc::StatusCode::resource_exhausted,
              "too many streams are open (service.sessions_max); close some or raise it"});
      return;
    }
    const auto* user = principal_ ? principal_->access().user() : nullptr;
    auto by_user = user == nullptr ? std::optional(net::Shares::Share())
                                   : context_.streams_by_user.take(user->name);
    auto by_address = context_.streams_by_address.take(net::network_of(peer()));
    if (!by_user || !by_address) {
      finish({grpc::StatusCode::resource_exhausted,
              "too many streams of one user or address are open (three quarters of "
              "service.sessions_max); close some or raise it"});
      return;
    }
    by_user_ = *std::move(by_user);
    by_address_ = *std::move(by_address);
  }

 protected:
  virtual void on_request(Request& request) = 0;
  /// Ends it by this error; with who leads, if it is that.
  void fail_stream(const Error& why) {
    context_.leadership.reject(
        why, [self = shared_from_this()](grpc::Status status) { self->finish(std::move(status)); });
  }

  /// Ends it if the rules have changed and its user is nobody any more. True: it has.
  [[nodiscard]] bool finish_if_unauthenticated() {
    if (!principal_) {
      return false;
    }
    const auto denial = principal_->authorize(auth::Permission::authenticated);
    if (denial) {
      finish(status_of(*denial));
    }
    return denial.has_value();
  }

  RpcContext& context_;
  const std::unique_ptr<auth::Principal> principal_;  ///< Who asks; null: there are no users.

 private:
  void received(std::string_view message) final {
    // All parts of a message come and go together: no allocation for each. Protobuf ends the
    // process if the buffer is not aligned; it needs no zeros.
    alignas(8) std::array<char, 32 * 1024> begin;  // NOLINT(*-member-init)
    google::protobuf::Arena arena(begin.data(), begin.size());
    auto& request = *google::protobuf::Arena::CreateMessage<Request>(&arena);
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      finish(
          {grpc::StatusCode::invalid_argument, "this is no " + std::string(request.GetTypeName())});
      return;
    }
    on_request(request);
  }

  net::Shares::Share by_user_;
  net::Shares::Share by_address_;
};

/// Makes streams of this kind.
template <class Kind>
[[nodiscard]] OpenCall stream_handler(RpcContext& context) {
  return [&context](const grpc::CallInfo& info, std::unique_ptr<auth::Principal> principal) {
    auto stream = std::make_shared<Kind>(info, context, std::move(principal));
    stream->enforce_stream_limits();
    return stream;
  };
}

}  // namespace tenure::server
