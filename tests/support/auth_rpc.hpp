#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/auth/authorizer.hpp"
#include "support/rpc_asker.hpp"
#include "support/rpc_fixture.hpp"

namespace tenure::test {

/// Tokens "r", "l", "o" and "ad".
inline server::auth::Policy auth_rules(const std::vector<server::auth::Rule>& of_locker = {
                                             {"a/", server::auth::Level::lock}}) {
  using server::auth::digest_of;
  using server::auth::Level;
  using server::auth::Policy;
  return *Policy::make(
      {{.name = "reader", .tokens = {digest_of("r")}, .rules = {{"a/", Level::read}}},
       {.name = "locker", .tokens = {digest_of("l")}, .rules = of_locker},
       {.name = "other", .tokens = {digest_of("o")}, .rules = {{"b/", Level::lock}}},
       {.name = "admin", .tokens = {digest_of("ad")}, .rules = {{"", Level::admin}}}});
}

struct GateRoom {
  server::auth::Authorizer authorizer{auth_rules()};
};

/// A server that has these users.
class AuthRpc : public GateRoom, public RpcTest {
 protected:
  AuthRpc() : RpcTest({.authorizer = &authorizer}, core::Limits{}) {}

  static constexpr auto locks = "/tenure.v1.LockService/";
  static constexpr auto admin = "/tenure.v1.Admin/";

  std::uint64_t grant(Asker& asker) {
    v1::LeaseGrantRequest request;
    request.set_ttl_ms(60'000);
    const auto answer = asker.ask(std::string(locks) + "LeaseGrant", request);
    EXPECT_EQ(answer.code(), grpc::StatusCode::ok) << answer.words();
    return answer.first<v1::LeaseGrantResponse>().id();
  }
  Asker::Answer take(Asker& asker, const std::string& name, std::uint64_t lease) {
    return asker.ask(std::string(locks) + "Lock", lock_request(name, lease));
  }
  /// One operation on a stream of its own; what came of it.
  v1::Outcome operate(Asker& asker, v1::Operation operation) {
    v1::SessionRequest request;
    request.mutable_hello()->set_client("test");
    operation.set_id(1);
    *request.add_operations() = std::move(operation);
    const auto answer = asker.ask(std::string(locks) + "Session", request);
    EXPECT_EQ(answer.code(), grpc::StatusCode::ok) << answer.words();
    for (const auto& bytes : answer.messages) {
      v1::SessionResponse response;
      EXPECT_TRUE(response.ParseFromString(bytes));
      if (response.outcomes_size() > 0) {
        return response.outcomes(0);
      }
    }
    return {};
  }
};

}  // namespace tenure::test
