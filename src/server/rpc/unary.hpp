#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/desk.hpp"
#include "wire/errors.hpp"

namespace tenure::server {

/// Answers at once.
[[nodiscard]] inline grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext& context,
                                                      const grpc::Status& status) {
  auto* reactor = context.DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

/// What the store said when it did not do what was asked.
[[nodiscard]] inline grpc::Status failure_of(const core::Outcome& outcome) {
  if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
    return wire::status_of(refused->error);
  }
  if (const auto* lost = std::get_if<core::LeaseLost>(&outcome)) {
    return wire::lease_lost(lost->id);
  }
  return {grpc::StatusCode::INTERNAL, "the store gave an answer to another question"};
}

/// Proposes a command and answers with what became of it: `fill(expected outcome, response)`, or
/// the error.
template <class Expected, class Response, class Fill>
[[nodiscard]] grpc::ServerUnaryReactor* decide(Desk& desk, grpc::CallbackServerContext& context,
                                               core::Command command, Response& response,
                                               Fill fill) {
  auto* reactor = context.DefaultReactor();
  desk.store.propose(std::move(command),
                     [&desk, reactor, &response, fill](const Result<Decided>& result) {
                       if (!result) {
                         reactor->Finish(wire::status_of(result.error()));
                         return;
                       }
                       const auto* expected = std::get_if<Expected>(&result->outcome);
                       if (expected == nullptr) {
                         reactor->Finish(failure_of(result->outcome));
                         return;
                       }
                       desk.write_header(*result, *response.mutable_header());
                       fill(*expected, response);
                       reactor->Finish(grpc::Status::OK);
                     });
  return reactor;
}

/// Reads the state: `fill(view, response)` returns a status.
template <class Response, class Fill>
[[nodiscard]] grpc::ServerUnaryReactor* look(Desk& desk, grpc::CallbackServerContext& context,
                                             Response& response, Fill fill) {
  auto* reactor = context.DefaultReactor();
  desk.store.read([&desk, reactor, &response, fill](const Result<View>& view) {
    if (!view) {
      reactor->Finish(wire::status_of(view.error()));
      return;
    }
    desk.write_header(*view, *response.mutable_header());
    reactor->Finish(fill(*view, response));
  });
  return reactor;
}

}  // namespace tenure::server
