#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/auth/authorizer.hpp"
#include "support/rpc/fixture.hpp"
#include "support/rpc/probe.hpp"

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

/// Server with these users.
class AuthRpc : public GateRoom, public RpcTest {
 protected:
  AuthRpc() : RpcTest({.authorizer = &authorizer}, core::Limits{}) {}

  static constexpr auto locks = "/tenure.v1.LockService/";
  static constexpr auto admin = "/tenure.v1.Admin/";

  std::uint64_t grant(RpcProbe& probe) {
    v1::LeaseGrantRequest request;
    request.set_ttl_ms(60'000);
    const auto reply = probe.call(std::string(locks) + "LeaseGrant", request);
    EXPECT_EQ(reply.code(), grpc::StatusCode::ok) << reply.message();
    return reply.first<v1::LeaseGrantResponse>().id();
  }
  RpcProbe::Reply take(RpcProbe& probe, const std::string& name, std::uint64_t lease) {
    return probe.call(std::string(locks) + "Lock", lock_request(name, lease));
  }
  /// Runs one operation on a new session stream; returns its outcome.
  v1::Outcome operate(RpcProbe& probe, v1::Operation operation) {
    v1::SessionRequest request;
    request.mutable_hello()->set_client("test");
    operation.set_id(1);
    *request.add_operations() = std::move(operation);
    const auto reply = probe.call(std::string(locks) + "Session", request);
    EXPECT_EQ(reply.code(), grpc::StatusCode::ok) << reply.message();
    for (const auto& bytes : reply.messages) {
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
