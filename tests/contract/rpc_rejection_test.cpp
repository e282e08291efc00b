#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "grpc/health/v1/health.pb.h"
#include "grpc/server.hpp"
#include "support/rpc/service.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// Health service that always reports SERVING.
class HealthAnswer final : public grpc::Call {
 public:
  using Call::Call;

 private:
  void received(std::string_view /*message*/) override {}
  void half_closed() override {
    ::grpc::health::v1::HealthCheckResponse response;
    response.set_status(::grpc::health::v1::HealthCheckResponse::SERVING);
    send(response);
    finish({});
  }
  void closed() override {}
};

/// Ends at once with a status, or listens for ever.
class Refusal final : public grpc::Call {
 public:
  using Call::Call;
  Refusal(const grpc::CallInfo& info, grpc::Status status) : Call(info) {
    finish(std::move(status));
  }

 private:
  void received(std::string_view /*message*/) override {}
  void half_closed() override {}
  void closed() override {}
};

/// gRPC server that reports SERVING and rejects the calls that the test selects.
class RefusingServer {
 public:
  explicit RefusingServer(const std::map<std::string, grpc::Status>& refusals) {
    add("/grpc.health.v1.Health/Check",
        [](const grpc::CallInfo& info) { return std::make_shared<HealthAnswer>(info); });
    add("/tenure.v1.LockService/Session",
        [](const grpc::CallInfo& info) { return std::make_shared<Refusal>(info); });
    for (const auto& [call, status] : refusals) {
      add(call,
          [status](const grpc::CallInfo& info) { return std::make_shared<Refusal>(info, status); });
    }
    port_ = server_->listen().value();
    server_->open();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~RefusingServer() {
    server_->stop_accepting();
    server_->stop(0ms);
    work_.reset();
    thread_.join();
  }
  RefusingServer(const RefusingServer&) = delete;
  RefusingServer& operator=(const RefusingServer&) = delete;

  [[nodiscard]] std::string url() const { return "tenure://127.0.0.1:" + std::to_string(port_); }

 private:
  void add(const std::string& call, grpc::Router::Open open) {
    context_.router.add(call, {.open = std::move(open), .ended = [](grpc::StatusCode) {}});
  }

  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  grpc::ServerContext context_{.loop = loop_};
  std::shared_ptr<grpc::Server> server_ =
      std::make_shared<grpc::Server>(context_, grpc::ServerOptions{});
  std::uint16_t port_ = 0;
  std::thread thread_;
};

constexpr auto health = "/grpc.health.v1.Health/Check";
constexpr auto session = "/tenure.v1.LockService/Session";
constexpr auto watch = "/tenure.v1.LockService/Watch";
constexpr auto list = "/tenure.v1.Admin/List";

TEST(RpcRejection, a_client_without_any_permission_cannot_connect) {
  for (const auto code : {grpc::StatusCode::unauthenticated, grpc::StatusCode::permission_denied}) {
    const RefusingServer server({{health, {code, "show a token"}}});

    const auto refused = connect(server.url(), {.request_timeout = 60s});

    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), Errc::permission_denied);
    EXPECT_NE(refused.error().detail.find("show a token"), std::string::npos);
  }
}

// A lost connection is made again and the request repeated. A refused one would be so for ever.
TEST(RpcRejection, a_forbidden_lock_fails_with_the_error_of_the_server) {
  const std::pair<grpc::StatusCode, Errc> codes[] = {
      {grpc::StatusCode::permission_denied, Errc::permission_denied},
      {grpc::StatusCode::unauthenticated, Errc::permission_denied},
      {grpc::StatusCode::unimplemented, Errc::unsupported},
      {grpc::StatusCode::resource_exhausted, Errc::resource_exhausted},
      {grpc::StatusCode::invalid_argument, Errc::invalid_argument}};
  for (const auto& [code, expected] : codes) {
    const RefusingServer server({{session, {code, "not you"}}});
    const auto client = connect(server.url(), {.request_timeout = 60s}).value();

    for (int round = 0; round < 3; ++round) {
      const auto refused = client.mutex("a").lock();

      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error(), expected) << to_string(refused.error());
      EXPECT_NE(refused.error().detail.find("not you"), std::string::npos);
    }
  }
}

TEST(RpcRejection, a_forbidden_watch_or_holder_query_fails) {
  const RefusingServer server({{watch, {grpc::StatusCode::permission_denied, "not you"}},
                               {list, {grpc::StatusCode::unauthenticated, "no credentials"}}});
  const auto client = connect(server.url(), {.request_timeout = 60s}).value();

  const auto refused = client.holders("a");
  EXPECT_EQ(refused.error(), Errc::permission_denied) << to_string(refused.error());
  auto watching = client.watch("a").value();
  EXPECT_EQ(watching.next_for(test_timeout).error(), Errc::permission_denied);
}

// A server that accepts connections but does not respond must not block the others.
TEST(RpcRejection, the_first_server_that_answers_is_used) {
  const RpcService service;
  boost::asio::io_context unused;
  const boost::asio::ip::tcp::acceptor silent(unused, {boost::asio::ip::address_v4::loopback(), 0});
  const auto first = "tenure://127.0.0.1:" + std::to_string(silent.local_endpoint().port());

  EXPECT_TRUE(connect(first + "," + service.address(), {.request_timeout = 200ms}));
  EXPECT_TRUE(connect("tenure://127.0.0.1:1," + service.address()));
  EXPECT_EQ(connect("tenure://127.0.0.1:1,127.0.0.1:2").error(), Errc::unavailable);
  EXPECT_EQ(connect(first, {.request_timeout = 100ms}).error(), Errc::unavailable);
}

TEST(RpcRejection, an_invalid_url_is_rejected_with_the_position) {
  const auto error_for = [](const std::string& text) {
    const auto refused = connect("tenure://" + text);
    EXPECT_EQ(refused.error(), Errc::invalid_argument);
    return refused.error().detail;
  };

  EXPECT_TRUE(error_for("a/path").starts_with("at 11: "));
  EXPECT_TRUE(error_for("a?colour=red").starts_with("at 11: unknown option \"colour\""));
  EXPECT_TRUE(error_for("").starts_with("at 9: a host name is missing"));
  EXPECT_TRUE(error_for("a:0").starts_with("at 10: expected a port"));
}

// The limits are the server's; what the client checks by itself are the defaults.
TEST(RpcRejection, a_ttl_below_the_limit_of_the_server_is_rejected_with_the_limit) {
  auto limits = server::Config{}.limits;
  limits.ttl_min = 5s;
  const RpcService service({}, limits);
  const auto client = connect(service.url()).value();

  const auto refused = client.mutex("a", {.ttl = 1s}).lock();

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::invalid_argument);
  EXPECT_NE(refused.error().detail.find("at least 5000000"), std::string::npos);
  EXPECT_TRUE(client.mutex("a", {.ttl = 5s}).lock());
}

// 003.006
TEST(RpcRejection, a_rejected_ttl_leaves_the_lease_unchanged) {
  auto limits = server::Config{}.limits;
  limits.ttl_min = 5s;
  const RpcService service({}, limits);
  const auto client = connect(service.url()).value();
  auto guard = client.mutex("a", {.ttl = 60s}).lock().value();

  EXPECT_EQ(guard.extend(1s).error(), Errc::invalid_argument);

  EXPECT_EQ(guard.state(), GuardState::held);
  EXPECT_GT(guard.valid_until(), std::chrono::steady_clock::now() + 30s);
}

TEST(RpcRejection, a_name_above_the_limit_of_the_server_is_rejected_with_the_limit) {
  auto limits = server::Config{}.limits;
  limits.name_bytes_max = 10;
  const RpcService service({}, limits);
  const auto client = connect(service.url()).value();

  const auto refused = client.mutex("12345678901").lock();

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::invalid_argument);
  EXPECT_NE(refused.error().detail.find("10"), std::string::npos) << refused.error().detail;
  EXPECT_TRUE(client.mutex("1234567890").lock());
}

}  // namespace
}  // namespace tenure::test
