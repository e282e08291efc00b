#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "grpc/connection.hpp"
#include "server/rpc/health_service.hpp"
#include "server/rpc/routes.hpp"
#include "support/rpc/fixture.hpp"
#include "support/rpc/raw_client.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using End = RawClient::End;

constexpr auto lock_path = "/tenure.v1.LockService/Lock";
constexpr auto check_path = "/grpc.health.v1.Health/Check";
constexpr auto watch_path = "/grpc.health.v1.Health/Watch";

/// A server with small buffers.
class BuffersRpc : public RpcTest {
 protected:
  BuffersRpc()
      : RpcTest({.connection_bytes_max = std::size_t{2} << 20,
                 .memory_bytes_max = std::size_t{4} << 20},
                core::Limits{}) {}
};

// Regression: the server closed the connection that added the last byte instead of the one that
// used most of the memory.
TEST_F(BuffersRpc, a_client_locks_while_others_send_incomplete_messages) {
  const auto owner = lease();
  std::vector<std::unique_ptr<RawClient>> attackers;
  const std::string most_of_it(15'000, 'x');
  for (int n = 0; n < 9; ++n) {
    attackers.push_back(std::make_unique<RawClient>(address_));
    for (int call = 0; call < 25; ++call) {
      const auto stream = 2 * call + 1;
      attackers.back()->write(RawClient::headers(stream, lock_path) +
                              RawClient::data(stream, RawClient::message_prefix(60'100)));
      for (int part = 0; part < 4; ++part) {
        attackers.back()->write(RawClient::data(stream, most_of_it));
      }
    }
    // 1.5 MB each: the third exhausts the buffer memory.
    auto request = lock_request("lock/" + std::to_string(n), owner);
    request.set_metadata(std::string(4000, 'm'));
    EXPECT_TRUE(lock(request).acquired());
    const auto newcomer = v1::LockService::NewStub(connect());
    v1::LockResponse response;
    request.set_name("other/" + std::to_string(n));
    EXPECT_TRUE(newcomer->Lock(context().get(), request, &response).ok());
  }
  EXPECT_TRUE(attackers.front()->is_closed_by_server());
}

/// A server with a short request timeout.
class SlowRequestRpc : public RpcTest {
 protected:
  SlowRequestRpc() : RpcTest({.request_time = 50ms}, core::Limits{}) {}
};

TEST_F(SlowRequestRpc, a_unary_call_without_its_message_times_out) {
  RawClient slow(address_);
  slow.write(RawClient::headers(1, lock_path) + RawClient::data(1, RawClient::message_prefix(100)));

  const auto answer = slow.read(RawClient::headers_type, 1);

  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ends_stream());
  EXPECT_TRUE(slow.read(RawClient::reset_type, 1));
}

TEST_F(SlowRequestRpc, a_call_that_waits_for_a_lock_goes_on) {
  const auto holder = lock("a", lease());
  auto request = lock_request("a", lease());
  request.set_timeout_ms(1500);

  EXPECT_EQ(lock(request).reason(), v1::REASON_TIMED_OUT);
}

class OpenRoutesRpc : public RpcTest {};

TEST_F(OpenRoutesRpc, an_unauthenticated_call_rejects_a_large_message) {
  RawClient client(address_);
  const auto size = server::Routes::open_message_bytes_max + 1;
  client.write(RawClient::headers(1, check_path) +
               RawClient::data(1, RawClient::message_prefix(size)));

  const auto answer = client.read(RawClient::headers_type, 1);

  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ends_stream());
}

TEST_F(OpenRoutesRpc, unauthenticated_calls_are_limited_per_connection) {
  RawClient client(address_);
  const auto most = static_cast<int>(grpc::ServerContext{.loop = store_.loop()}.open_calls_max);
  for (int call = 0; call <= most; ++call) {
    client.write(RawClient::headers(2 * call + 1, check_path));
  }

  // The call above the limit is refused while the others wait for their message.
  const auto refused = client.read(RawClient::headers_type, 2 * most + 1);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->ends_stream());
  client.write(RawClient::data(1, RawClient::message_prefix(0), End::stream));
  const auto served = client.read(RawClient::headers_type, 1);
  ASSERT_TRUE(served);
  EXPECT_FALSE(served->ends_stream());
}

TEST_F(OpenRoutesRpc, health_watches_are_limited_per_connection) {
  RawClient client(address_);
  const auto most = static_cast<int>(server::HealthService::watches_per_connection_max);
  for (int call = 0; call <= most; ++call) {
    client.write(RawClient::headers(2 * call + 1, watch_path) +
                 RawClient::data(2 * call + 1, RawClient::message_prefix(0), End::stream));
  }
  for (int call = 0; call <= most; ++call) {
    const auto answer = client.read(RawClient::headers_type, 2 * call + 1);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->ends_stream(), call == most);
  }
  // The end of a watch frees its slot.
  client.write(RawClient::reset(1));
  const auto next = 2 * most + 3;
  client.write(RawClient::headers(next, watch_path) +
               RawClient::data(next, RawClient::message_prefix(0), End::stream));
  const auto answer = client.read(RawClient::headers_type, next);
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->ends_stream());
}

TEST_F(OpenRoutesRpc, a_health_watch_delivers_each_change_once) {
  RawClient client(address_);
  client.write(RawClient::headers(1, watch_path) +
               RawClient::data(1, RawClient::message_prefix(0), End::stream));
  ASSERT_TRUE(client.read(RawClient::data_type, 1));

  // The next check reads the store again and finds no change.
  client.write(RawClient::headers(3, check_path) +
               RawClient::data(3, RawClient::message_prefix(0), End::stream));
  auto frame = client.read();
  while (frame && !(frame->stream == 3 && frame->ends_stream())) {
    EXPECT_NE(frame->stream, 1);
    frame = client.read();
  }
  ASSERT_TRUE(frame);

  store_.lead(false);
  EXPECT_TRUE(client.read(RawClient::data_type, 1));
}

class RefusalsRpc : public RpcTest {};

TEST_F(RefusalsRpc, an_unknown_path_is_truncated_in_the_error) {
  RawClient client(address_);
  client.write(RawClient::headers(1, "/" + std::string(4000, '%'), End::stream));

  const auto answer = client.read(RawClient::headers_type, 1);

  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ends_stream());
  // Percent-encoding turns a byte into three.
  EXPECT_LT(answer->payload.size(), 600U);
}

TEST_F(RefusalsRpc, a_client_that_resets_call_after_call_is_disconnected) {
  RawClient client(address_);
  std::string flood;
  for (int call = 0; call < 3000; ++call) {
    flood += RawClient::headers(2 * call + 1, lock_path) + RawClient::reset(2 * call + 1);
  }
  client.write(flood);

  EXPECT_TRUE(client.is_closed_by_server());
  EXPECT_TRUE(lock("a", lease()).acquired());
}

/// A server with few streams, of which one address gets three quarters.
class SharesRpc : public RpcTest {
 protected:
  SharesRpc() : RpcTest(options(), core::Limits{}) {}

 private:
  static server::RpcOptions options() {
    server::RpcOptions options;
    options.limits.streams_max = 4;
    return options;
  }
};

TEST_F(SharesRpc, an_address_cannot_use_all_streams) {
  RawClient client(address_);
  for (int call = 0; call < 4; ++call) {
    client.write(RawClient::headers(2 * call + 1, "/tenure.v1.LockService/Watch"));
  }
  const auto refused = client.read(RawClient::headers_type, 7);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->ends_stream());
}

}  // namespace
}  // namespace tenure::test
