#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "server/peers/peer_transport.hpp"
#include "support/peers/test_peer.hpp"
#include "support/rpc/certificates.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {

/// Two members, the first of which connects to the second.
class TwoPeers : public ::testing::Test {
 protected:
  [[nodiscard]] static server::peers::PeerTls files(const Authority& authority,
                                                    const Certificate& certificate) {
    return {.certificate = test::content_of(certificate.file),
            .key = test::content_of(certificate.key),
            .ca = test::content_of(authority.file())};
  }
  [[nodiscard]] static server::peers::PeerOptions with_tls(std::uint64_t member,
                                                           Authority& authority,
                                                           const std::string& alternatives) {
    auto options = TestPeer::options(member);
    options.tls = files(authority, authority.sign({.name = "member" + std::to_string(member),
                                                   .alternatives = alternatives}));
    return options;
  }
  [[nodiscard]] static server::peers::PeerOptions with_tls(std::uint64_t member,
                                                           Authority& authority) {
    return with_tls(member, authority, "URI:tenure:member/" + std::to_string(member));
  }

  void begin(server::peers::PeerOptions one, server::peers::PeerOptions two) {
    initiator = std::make_unique<TestPeer>(std::move(one));
    acceptor = std::make_unique<TestPeer>(std::move(two));
    initiator->set_members({{2, acceptor->address()}});
  }
  /// Expects that both ends log these texts, and that no message passes.
  void expect_refusal(const std::string& initiator_reports, const std::string& acceptor_reports) {
    EXPECT_TRUE(eventually([&] { return initiator->reports_about(initiator_reports); }))
        << initiator->reports.all();
    EXPECT_TRUE(eventually([&] { return acceptor->reports_about(acceptor_reports); }))
        << acceptor->reports.all();
    EXPECT_FALSE(initiator->is_connected_to(2) && acceptor->received_count() > 0);
    EXPECT_FALSE(acceptor->is_connected_to(1));
  }
  void expect_connection() {
    EXPECT_TRUE(eventually([&] {
      initiator->send(2, server::raft::AppendResult{});
      return acceptor->received_count() > 0;
    })) << initiator->reports.all()
        << acceptor->reports.all();
  }

  Authority ours;
  Authority theirs;
  std::unique_ptr<TestPeer> initiator;
  std::unique_ptr<TestPeer> acceptor;
};

/// Connection that sends any bytes to a port.
class RawPeer {
 public:
  /// `from`: 127.0.0.N, so that one machine is several places.
  explicit RawPeer(std::uint16_t port, unsigned from = 1) {
    socket_.open(boost::asio::ip::tcp::v4());
    socket_.bind({boost::asio::ip::address_v4(0x7F000000U + from), 0});
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
  }
  void write(const std::string& bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }
  /// Bytes received until the other end closes or `enough` bytes have arrived.
  [[nodiscard]] std::string read(std::size_t enough) {
    std::string heard;
    char buffer[1024];
    boost::system::error_code error;
    while (!error && heard.size() < enough) {
      heard.append(buffer, socket_.read_some(boost::asio::buffer(buffer), error));
    }
    return heard;
  }

 private:
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::socket socket_{loop_};
};

}  // namespace tenure::test
