#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/rpc_fixture.hpp"

namespace tenure::test {
namespace {

/// A server that lets in three connections; the fixture's own client is the first.
class ConnectionsRpc : public RpcTest {
 protected:
  ConnectionsRpc() : RpcTest({.connections_max = 3}, core::Limits{}) {}

  grpc::Status ask(const std::shared_ptr<grpc::Channel>& channel) {
    v1::StatusResponse response;
    return v1::Admin::NewStub(channel)->Status(context().get(), {}, &response);
  }
};

// Without a limit a flood of connections would take the descriptors of the log.
TEST_F(ConnectionsRpc, beyond_the_limit_are_closed_and_a_place_that_comes_free_is_used) {
  ASSERT_TRUE(ask(channel_).ok());
  auto second = connect();
  const auto third = connect();
  ASSERT_TRUE(ask(second).ok());
  ASSERT_TRUE(ask(third).ok());

  EXPECT_EQ(ask(connect()).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ask(third).ok());
  second.reset();

  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool is_let_in = false;
  while (!is_let_in && std::chrono::steady_clock::now() < deadline) {
    is_let_in = ask(connect()).ok();
  }
  EXPECT_TRUE(is_let_in);
}

}  // namespace
}  // namespace tenure::test
