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
#include "server/rpc/desk.hpp"
#include "server/rpc/permission.hpp"
#include "wire/errors.hpp"

namespace tenure::server {

/// Maximum number of entries in a page of a listing.
inline constexpr std::uint32_t page_entries_max = 1000;

/// Number of entries in a page when the client requests `limit`; zero means no preference.
[[nodiscard]] constexpr std::uint32_t page_size(std::uint32_t limit) noexcept {
  return limit == 0 || limit > page_entries_max ? page_entries_max : limit;
}

/// Where the answer to one question goes. Of the store's thread.
template <class Response>
class Reply : public grpc::Call {
 public:
  Reply(const grpc::Opening& opening, std::unique_ptr<auth::Guest> caller)
      : Call(opening), guest(std::move(caller)) {}

  const std::unique_ptr<auth::Guest> guest;  ///< Who asks; null: there are no users.
  Response response;
  /// Called if the client goes away before it has its answer.
  std::function<void()> when_cut_off;

  /// With `ok`, the response goes along. The first one counts.
  void answer(grpc::Status status = {}) {
    if (status.ok()) {
      this->send(response);
    }
    this->finish(std::move(status));
  }

 private:
  void closed() final {
    if (const auto tell = std::exchange(when_cut_off, {}); tell && !this->is_finished()) {
      tell();
    }
  }
};
template <class Response>
using ReplyTo = std::shared_ptr<Reply<Response>>;

/// A call with one question and one answer.
template <class Request, class Response>
class Unary final : public Reply<Response> {
 public:
  using Asked = std::function<void(const Request&, const ReplyTo<Response>&)>;

  /// `asked` outlives this.
  Unary(const grpc::Opening& opening, std::unique_ptr<auth::Guest> caller, const Asked& asked)
      : Reply<Response>(opening, std::move(caller)), asked_(asked) {}

 private:
  void received(std::string_view message) override {
    if (std::exchange(is_asked_, true)) {
      this->finish({grpc::StatusCode::invalid_argument, "one message only"});
    } else if (!request_.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      this->finish({grpc::StatusCode::invalid_argument,
                    "this is no " + std::string(request_.GetTypeName())});
    }
  }
  void half_closed() override {
    if (!is_asked_) {
      this->finish({grpc::StatusCode::invalid_argument, "where is the message?"});
      return;
    }
    asked_(request_, std::static_pointer_cast<Reply<Response>>(this->shared_from_this()));
  }

  const Asked& asked_;
  Request request_;
  bool is_asked_ = false;
};

/// Makes calls that are answered by `asked`.
template <class Request, class Response>
[[nodiscard]] GuestOpen answered_by(typename Unary<Request, Response>::Asked asked) {
  return
      [asked = std::make_shared<const typename Unary<Request, Response>::Asked>(std::move(asked))](
          const grpc::Opening& opening, std::unique_ptr<auth::Guest> guest) {
        return std::make_shared<Unary<Request, Response>>(opening, std::move(guest), *asked);
      };
}

/// Answers that it may not, if it may not. True: it was answered.
template <class Response>
[[nodiscard]] bool is_denied(const ReplyTo<Response>& reply,
                             const std::optional<auth::Denial>& denial) {
  if (denial) {
    reply->answer(status_of(*denial));
  }
  return denial.has_value();
}
template <class Response>
[[nodiscard]] bool is_denied(const ReplyTo<Response>& reply, auth::Verb verb,
                             std::string_view name) {
  return reply->guest && is_denied(reply, reply->guest->why_not(verb, name));
}
/// The same for a lease: somebody else's is not known to it.
template <class Response>
[[nodiscard]] bool is_denied(const Desk& desk, const ReplyTo<Response>& reply,
                             core::LeaseId lease) {
  const bool is_denied = is_foreign(reply->guest.get(), desk.store.state(), lease);
  if (is_denied) {
    reply->answer(wire::lease_lost(lease));
  }
  return is_denied;
}

/// What the store said when it did not do what was asked.
[[nodiscard]] inline grpc::Status failure_of(const core::Outcome& outcome) {
  if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
    return wire::status_of(refused->error);
  }
  if (const auto* lost = std::get_if<core::LeaseLost>(&outcome)) {
    return wire::lease_lost(lost->id);
  }
  return {grpc::StatusCode::internal, "the store gave an answer to another question"};
}

/// Answers with the error, and who leads if that is what is wrong.
template <class Response>
void refuse(Desk& desk, const ReplyTo<Response>& reply, const Error& error) {
  desk.leadership.refuse(error, [reply](grpc::Status status) { reply->answer(std::move(status)); });
}

/// Proposes a command and answers with what became of it: `fill(expected outcome, response)`, or
/// the error.
template <class Expected, class Response, class Fill>
void decide(Desk& desk, const ReplyTo<Response>& reply, core::Command command, Fill fill) {
  desk.store.propose(std::move(command), [&desk, reply, fill](const Result<Decided>& result) {
    if (!result) {
      refuse(desk, reply, result.error());
      return;
    }
    const auto* expected = std::get_if<Expected>(&result->outcome);
    if (expected == nullptr) {
      reply->answer(failure_of(result->outcome));
      return;
    }
    desk.write_header(*result, *reply->response.mutable_header());
    fill(*expected, reply->response);
    reply->answer();
  });
}

/// What may be shown: all that was acknowledged before, or what this member happens to have.
enum class Freshness : std::uint8_t { newest, any };
template <class Request>
[[nodiscard]] Freshness freshness_of(const Request& request) {
  return request.stale() ? Freshness::any : Freshness::newest;
}

/// Reads the state: `fill(view, response)` returns a status.
template <class Response, class Fill>
void look(Desk& desk, const ReplyTo<Response>& reply, Freshness freshness, Fill fill) {
  auto looker = [&desk, reply, fill](const Result<View>& view) {
    if (!view) {
      refuse(desk, reply, view.error());
      return;
    }
    desk.write_header(*view, *reply->response.mutable_header());
    reply->answer(fill(*view, reply->response));
  };
  if (freshness == Freshness::any) {
    desk.store.peek(std::move(looker));
  } else {
    desk.store.read(std::move(looker));
  }
}

}  // namespace tenure::server
