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

/// Bidirectional streaming call. Store thread only.
///
/// Adds to grpc::Call: parsing, the limits of open streams, and the end on loss of leadership. A
/// derived class implements on_request() and the callbacks of Call.
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

  // The aliasing constructor shares the ownership of the call.
  [[nodiscard]] std::shared_ptr<LeaderBoundCall> keep_alive() final {
    const auto call = weak_from_this().lock();
    return call ? std::shared_ptr<LeaderBoundCall>(call, this) : nullptr;
  }

  /// Fails the stream if a stream limit is reached, in total or for this user or address.
  void enforce_stream_limits() {
    if (context_.streams > context_.limits.streams_max) {
      finish({grpc::StatusCode::resource_exhausted,
              "too many open streams (service.streams_max); close streams or raise the limit"});
      return;
    }
    // Shares per user and per address: one of them must not take all streams of the server.
    const auto* user = principal_ ? principal_->access().user() : nullptr;
    auto by_user = user == nullptr ? std::optional(net::Shares::Share())
                                   : context_.streams_by_user.take(user->name);
    auto by_address = context_.streams_by_address.take(net::network_of(peer()));
    if (!by_user || !by_address) {
      finish({grpc::StatusCode::resource_exhausted,
              "too many open streams for one user or address (three quarters of "
              "service.streams_max); close streams or raise the limit"});
      return;
    }
    by_user_ = *std::move(by_user);
    by_address_ = *std::move(by_address);
  }

 protected:
  /// Handles one message. It lives in an arena that ends with the call; a copy is needed to keep
  /// it.
  virtual void on_request(Request& request) = 0;
  /// Ends the stream with an error, and the leader if the error is `unavailable`.
  void fail_stream(const Error& why) {
    context_.leadership.reject(
        why, [self = shared_from_this()](grpc::Status status) { self->finish(std::move(status)); });
  }

  /// Ends the stream if its user no longer exists. Returns whether it did.
  /// A stream can outlive a reload of the users, so it checks each message.
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
  const std::unique_ptr<auth::Principal> principal_;  ///< Principal; null: no users.

 private:
  void received(std::string_view message) final {
    // The arena frees all parts of a message at once. Protobuf aborts on an unaligned buffer;
    // zeroing is unnecessary.
    alignas(8) std::array<char, 32 * 1024> begin;  // NOLINT(*-member-init)
    google::protobuf::Arena arena(begin.data(), begin.size());
    auto& request = *google::protobuf::Arena::CreateMessage<Request>(&arena);
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      finish({grpc::StatusCode::invalid_argument, "invalid " + std::string(request.GetTypeName())});
      return;
    }
    on_request(request);
  }

  /// Returned to the limits when the stream is destroyed.
  net::Shares::Share by_user_;
  net::Shares::Share by_address_;
};

/// Factory for streams of this kind.
template <class Kind>
[[nodiscard]] OpenCall stream_handler(RpcContext& context) {
  return [&context](const grpc::CallInfo& info, std::unique_ptr<auth::Principal> principal) {
    auto stream = std::make_shared<Kind>(info, context, std::move(principal));
    stream->enforce_stream_limits();
    return stream;
  };
}

}  // namespace tenure::server
