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
#include "server/rpc/desk.hpp"
#include "server/rpc/permission.hpp"

namespace tenure::server {

/// One call with messages in both directions. Of the store's thread.
template <class Request, class Response>
class Stream : public grpc::Call, public Led {
 public:
  Stream(const grpc::Opening& opening, Desk& desk, std::unique_ptr<auth::Guest> guest)
      : Call(opening), desk_(desk), guest_(std::move(guest)) {
    ++desk_.streams;
    desk_.leadership.add(*this);
  }
  ~Stream() override {
    --desk_.streams;
    desk_.leadership.remove(*this);
  }

  [[nodiscard]] std::shared_ptr<Led> keep() final {
    const auto call = weak_from_this().lock();
    return call ? std::shared_ptr<Led>(call, this) : nullptr;
  }

  /// Ends it at once if there are too many, of all clients or of this one.
  void refuse_if_too_many() {
    if (desk_.streams > desk_.limits.sessions_max) {
      finish({grpc::StatusCode::resource_exhausted,
              "too many streams are open (service.sessions_max); close some or raise it"});
      return;
    }
    const auto* user = guest_ ? guest_->access().user() : nullptr;
    auto by_user = user == nullptr ? std::optional(net::Shares::Share())
                                   : desk_.streams_by_user.take(user->name);
    auto by_address = desk_.streams_by_address.take(net::network_of(peer()));
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
  virtual void asked(Request& request) = 0;
  /// Ends it by this error; with who leads, if it is that.
  void refuse_all(const Error& why) {
    desk_.leadership.refuse(
        why, [self = shared_from_this()](grpc::Status status) { self->finish(std::move(status)); });
  }

  /// Ends it if the rules have changed and its user is nobody any more. True: it has.
  [[nodiscard]] bool has_lost_its_user() {
    if (!guest_) {
      return false;
    }
    const auto denial = guest_->why_not(auth::Need::identity);
    if (denial) {
      finish(status_of(*denial));
    }
    return denial.has_value();
  }

  Desk& desk_;
  const std::unique_ptr<auth::Guest> guest_;  ///< Who asks; null: there are no users.

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
    asked(request);
  }

  net::Shares::Share by_user_;
  net::Shares::Share by_address_;
};

/// Makes streams of this kind.
template <class Kind>
[[nodiscard]] GuestOpen streamed_by(Desk& desk) {
  return [&desk](const grpc::Opening& opening, std::unique_ptr<auth::Guest> guest) {
    auto stream = std::make_shared<Kind>(opening, desk, std::move(guest));
    stream->refuse_if_too_many();
    return stream;
  };
}

}  // namespace tenure::server
