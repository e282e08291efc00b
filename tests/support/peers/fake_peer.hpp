#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "server/peers/frame.hpp"

namespace tenure::test {

/// Scripted peer: listens like a member and replies to each frame with the frames that a test
/// returns, as a member with an older program or an attacker would.
class FakePeer {
 public:
  /// Script; runs on the own thread of the fake peer.
  using Answer =
      std::function<std::vector<server::peers::Frame>(const server::peers::ReceivedFrame&)>;

  explicit FakePeer(Answer answer)
      : answer_(std::move(answer)), acceptor_(loop_, {boost::asio::ip::address_v4::loopback(), 0}) {
    accept();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FakePeer() {
    loop_.stop();
    thread_.join();
  }
  FakePeer(const FakePeer&) = delete;
  FakePeer& operator=(const FakePeer&) = delete;

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  struct Connection {
    boost::asio::ip::tcp::socket socket;
    server::peers::FrameReader reader{server::peers::FrameLimits{}};
    std::array<char, 65536> buffer{};
  };

  void accept() {
    acceptor_.async_accept(
        [this](boost::system::error_code error, boost::asio::ip::tcp::socket socket) {
          if (!error) {
            read(std::make_shared<Connection>(std::move(socket)));
            accept();
          }
        });
  }
  void read(const std::shared_ptr<Connection>& connection) {
    connection->socket.async_read_some(
        boost::asio::buffer(connection->buffer),
        [this, connection](boost::system::error_code error, std::size_t size) {
          if (error) {
            return;
          }
          const auto fed = connection->reader.feed(
              {connection->buffer.data(), size}, [&](const server::peers::ReceivedFrame& frame) {
                boost::system::error_code ignored;
                for (const auto& reply : answer_(frame)) {
                  boost::asio::write(connection->socket, boost::asio::buffer(reply.head), ignored);
                }
                return true;
              });
          if (fed) {
            read(connection);
          }
        });
  }

  Answer answer_;
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace tenure::test
