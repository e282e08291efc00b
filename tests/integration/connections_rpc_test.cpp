#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "support/rpc/fixture.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;

::grpc::Status ask(const std::shared_ptr<::grpc::Channel>& channel) {
  v1::StatusResponse response;
  return v1::Admin::NewStub(channel)->Status(RpcTest::context().get(), {}, &response);
}

/// A raw TCP connection that sends arbitrary bytes.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address) : socket_(loop_) {
    const auto colon = address.rfind(':');
    const auto port = static_cast<unsigned short>(std::stoi(address.substr(colon + 1)));
    socket_.connect({boost::asio::ip::make_address(address.substr(0, colon)), port});
  }

  void write(const std::string& bytes) {
    boost::system::error_code ignored;  // The server may have closed.
    boost::asio::write(socket_, boost::asio::buffer(bytes), ignored);
  }
  /// Reads until the server closes; whether it did in time.
  bool is_closed_by_server() {
    socket_.non_blocking(true);
    const auto deadline = std::chrono::steady_clock::now() + RpcTest::test_timeout;
    while (std::chrono::steady_clock::now() < deadline) {
      char buffer[4096];
      boost::system::error_code error;
      socket_.read_some(boost::asio::buffer(buffer), error);
      if (error && error != boost::asio::error::would_block) {
        return true;
      }
    }
    return false;
  }

  /// The first bytes of every HTTP/2 connection, with empty settings.
  static std::string greeting() {
    return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
  }

 private:
  boost::asio::io_context loop_;
  tcp::socket socket_;
};

/// A server with a limit of three connections; the client of the fixture uses the first.
class ConnectionsRpc : public RpcTest {
 protected:
  ConnectionsRpc() : RpcTest({.connections_max = 3}, core::Limits{}) {}
};

// Without a limit a flood of connections would take the descriptors of the log.
TEST_F(ConnectionsRpc, a_connection_over_the_limit_is_closed_and_a_freed_slot_is_reused) {
  ASSERT_TRUE(ask(channel_).ok());
  auto second = connect();
  const auto third = connect();
  ASSERT_TRUE(ask(second).ok());
  ASSERT_TRUE(ask(third).ok());

  EXPECT_EQ(ask(connect()).error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ask(third).ok());
  second.reset();

  const auto deadline = std::chrono::steady_clock::now() + test_timeout;
  bool is_let_in = false;
  while (!is_let_in && std::chrono::steady_clock::now() < deadline) {
    is_let_in = ask(connect()).ok();
  }
  EXPECT_TRUE(is_let_in);
}

/// A server with short keep-alive pings.
class SilentRpc : public RpcTest {
 protected:
  SilentRpc()
      : RpcTest({.keep_alive = {.ping_interval = 50ms, .ping_timeout = 50ms}}, core::Limits{}) {}
};

// 002-B21
TEST_F(SilentRpc, a_client_that_does_not_answer_pings_is_disconnected) {
  RawConnection silent(address_);
  silent.write(RawConnection::greeting());

  EXPECT_TRUE(silent.is_closed_by_server());
}

TEST_F(SilentRpc, a_client_that_sends_nothing_is_disconnected) {
  RawConnection silent(address_);

  EXPECT_TRUE(silent.is_closed_by_server());
}

TEST_F(SilentRpc, a_client_that_answers_pings_stays_connected_during_long_calls) {
  const auto holder = lock("a", lease());
  const auto waiter = lease();
  auto request = lock_request("a", waiter);
  request.set_timeout_ms(3000);  // Several times the ping timeout.

  const auto answer = lock(request);

  EXPECT_FALSE(answer.acquired());
  EXPECT_EQ(answer.reason(), v1::REASON_TIMED_OUT);
}

class MalformedRpc : public RpcTest {};

TEST_F(MalformedRpc, a_client_that_does_not_speak_http2_is_disconnected_without_side_effects) {
  for (const auto* noise :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nnonsense"}) {
    RawConnection raw(address_);
    raw.write(noise);
    EXPECT_TRUE(raw.is_closed_by_server());
  }
  EXPECT_TRUE(ask(channel_).ok());
}

TEST_F(MalformedRpc, a_compressed_message_is_unimplemented) {
  v1::LockResponse response;
  const auto here = context();
  here->set_compression_algorithm(GRPC_COMPRESS_GZIP);

  // Long enough that compressing it pays.
  const auto status =
      locks_->Lock(here.get(), lock_request(std::string(1000, 'a'), lease()), &response);

  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(MalformedRpc, a_status_message_arrives_as_it_was_written) {
  auto request = lock_request("100 % \n", lease());
  v1::LockResponse response;

  const auto status = locks_->Lock(context().get(), request, &response);

  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("control character"), std::string::npos)
      << status.error_message();
}

/// A server with small buffers.
class UnreadRpc : public RpcTest {
 protected:
  UnreadRpc() : RpcTest({.connection_bytes_max = 100'000}, core::Limits{}) {}
};

TEST_F(UnreadRpc, a_client_that_does_not_read_its_replies_loses_only_its_own_connection) {
  const auto owner = lease();
  for (int n = 0; n < 200; ++n) {
    auto request = lock_request("lock/" + std::to_string(n), owner);
    request.set_metadata(std::string(4000, 'm'));
    ASSERT_TRUE(lock(request).acquired());
  }
  v1::ListResponse listing;
  ASSERT_TRUE(admin_->List(context().get(), {}, &listing).ok());  // One reply at a time fits.
  ASSERT_GT(listing.ByteSizeLong(), 500'000U);

  // More than the flow-control window of the client.
  const auto other = connect();
  const auto hasty = v1::Admin::NewStub(other);
  struct Listing {
    std::unique_ptr<::grpc::ClientContext> here = context();
    v1::ListResponse response{};
    ::grpc::Status status{};
    std::unique_ptr<::grpc::ClientAsyncResponseReader<v1::ListResponse>> call{};
  };
  std::vector<Listing> listings(50);
  ::grpc::CompletionQueue queue;
  for (auto& one : listings) {
    one.call = hasty->AsyncList(one.here.get(), {}, &queue);
    one.call->Finish(&one.response, &one.status, &one);
  }
  int cut = 0;
  for (std::size_t n = 0; n < listings.size(); ++n) {
    void* tag = nullptr;
    bool is_ok = false;
    ASSERT_TRUE(queue.Next(&tag, &is_ok));
    cut +=
        static_cast<Listing*>(tag)->status.error_code() == ::grpc::StatusCode::UNAVAILABLE ? 1 : 0;
  }

  EXPECT_GT(cut, 0);
  EXPECT_TRUE(ask(channel_).ok());
}

}  // namespace
}  // namespace tenure::test
