#include "net/connector.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include <tenure/error.hpp>

#include "support/net/full_server.hpp"
#include "support/net/listener.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using net::Connector;
using net::OutgoingSocket;

/// Address on loopback where no server listens.
tcp::endpoint closed_endpoint() {
  const Listener closed_at_return;
  return {boost::asio::ip::address_v4::loopback(), closed_at_return.port()};
}

Connector::Target target_of(const std::string& host, std::uint16_t port) {
  return {.host = host,
          .port = port,
          .service = "a test server",
          .deadline = Connector::Clock::now() + 10s};
}

/// One attempt, and how it ended.
struct Attempt {
  explicit Attempt(Connector::Target target)
      : connector(std::make_shared<Connector>(
            loop, std::move(target), [this](Result<OutgoingSocket> how) {
              EXPECT_FALSE(result) << "the handler is called once";
              result.emplace(std::move(how));
            })) {
    connector->start();
    EXPECT_FALSE(result) << "the handler is not called by start()";
  }

  [[nodiscard]] std::string error() const {
    return result && !*result ? to_string(result->error()) : "no error";
  }

  boost::asio::io_context loop;
  std::optional<Result<OutgoingSocket>> result;
  std::shared_ptr<Connector> connector;
};

TEST(NetConnector, an_address_is_connected_to_without_a_delay_of_small_messages) {
  const Listener server;
  Attempt attempt(target_of("127.0.0.1", server.port()));
  attempt.loop.run();

  ASSERT_TRUE(attempt.result && *attempt.result) << attempt.error();
  auto& socket = (**attempt.result).socket();
  EXPECT_EQ(socket.remote_endpoint().port(), server.port());
  tcp::no_delay no_delay;
  socket.get_option(no_delay);
  EXPECT_TRUE(no_delay.value());
}

TEST(NetConnector, a_name_is_resolved) {
  const Listener server;
  Attempt attempt(target_of("localhost", server.port()));
  attempt.loop.run();

  EXPECT_TRUE(attempt.result && *attempt.result) << attempt.error();
}

TEST(NetConnector, an_unknown_name_is_an_error_with_advice) {
  Attempt attempt(target_of("no..name", 1));
  attempt.loop.run();

  ASSERT_TRUE(attempt.result && !*attempt.result);
  EXPECT_EQ(attempt.result->error(), Errc::unavailable);
  EXPECT_TRUE(attempt.error().ends_with("; is the name right?")) << attempt.error();
}

TEST(NetConnector, a_refused_connection_is_an_error_that_names_the_service) {
  Attempt attempt(target_of("127.0.0.1", closed_endpoint().port()));
  attempt.loop.run();

  EXPECT_EQ(attempt.error(), "unavailable: Connection refused; does a test server run there?");
}

TEST(NetConnector, each_address_is_tried_until_one_accepts) {
  const Listener server;
  auto target = target_of("server", server.port());
  target.addresses = {closed_endpoint(),
                      {boost::asio::ip::address_v4::loopback(), server.port()},
                      closed_endpoint()};
  Attempt attempt(std::move(target));
  attempt.loop.run();

  ASSERT_TRUE(attempt.result && *attempt.result) << attempt.error();
  EXPECT_EQ((**attempt.result).socket().remote_endpoint().port(), server.port());
}

TEST(NetConnector, an_attempt_to_a_silent_server_ends_at_the_deadline) {
  const FullServer server;
  auto target = target_of("127.0.0.1", server.endpoint().port());
  target.deadline = Connector::Clock::now() + 50ms;
  const auto deadline = target.deadline;
  Attempt attempt(std::move(target));
  attempt.loop.run();

  EXPECT_EQ(attempt.error(), "unavailable: no answer; is the address right?");
  EXPECT_GE(Connector::Clock::now(), deadline);
}

TEST(NetConnector, a_deadline_in_the_past_ends_the_attempt) {
  const FullServer server;
  auto target = target_of("127.0.0.1", server.endpoint().port());
  target.deadline = Connector::Clock::now() - 1s;
  Attempt attempt(std::move(target));
  attempt.loop.run();

  EXPECT_EQ(attempt.error(), "unavailable: no answer; is the address right?");
}

TEST(NetConnector, a_cancelled_attempt_ends_at_once_and_calls_no_handler) {
  const FullServer server;
  Attempt attempt(target_of("127.0.0.1", server.endpoint().port()));
  attempt.loop.poll();
  ASSERT_FALSE(attempt.result) << "it is being connected";

  attempt.connector->cancel();
  attempt.loop.restart();
  const auto began = Connector::Clock::now();
  attempt.loop.run();

  EXPECT_FALSE(attempt.result);
  EXPECT_LT(Connector::Clock::now() - began, 5s) << "the deadline is 10 s away";
}

// The handler of a connection that was made just before is still queued.
TEST(NetConnector, an_attempt_that_is_cancelled_after_the_server_accepted_calls_no_handler) {
  const Listener server;
  Attempt attempt(target_of("127.0.0.1", server.port()));
  attempt.connector->cancel();
  attempt.loop.run();

  EXPECT_FALSE(attempt.result);
}

// A handler that owns its connector would otherwise keep both, and the socket, for ever.
TEST(NetConnector, an_attempt_is_destroyed_with_its_loop) {
  const FullServer server;
  const auto owned = std::make_shared<int>();
  {
    boost::asio::io_context loop;
    const auto connector =
        std::make_shared<Connector>(loop, target_of("127.0.0.1", server.endpoint().port()),
                                    [owned](const Result<OutgoingSocket>&) {});
    connector->start();
    loop.poll();
    EXPECT_GT(owned.use_count(), 1);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace tenure::test
