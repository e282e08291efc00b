#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "server/peers/peer_transport.hpp"
#include "support/peers/pair.hpp"
#include "support/peers/test_peer.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::peers {
namespace {

using test::eventually;
using test::RawPeer;
using test::TestPeer;

using PeersHandshake = test::TwoPeers;

/// Threads that computed a step of a TLS handshake. OpenSSL passes its callback no argument.
class HandshakeThreads {
 public:
  HandshakeThreads() { set({}); }

  /// Contexts that record their threads.
  [[nodiscard]] static TlsContexts contexts(const PeerOptions& options) {
    auto made = *make_contexts(*options.tls, options.self.member);
    SSL_CTX_set_info_callback(made.acceptor->native_handle(), record);
    SSL_CTX_set_info_callback(made.initiator->native_handle(), record);
    return made;
  }
  [[nodiscard]] static std::set<std::thread::id> all() {
    const std::lock_guard guard(mutex_);
    return threads_;
  }

 private:
  static void record(const SSL* /*connection*/, int where, int /*result*/) {
    constexpr int step = SSL_CB_LOOP | SSL_CB_HANDSHAKE_START | SSL_CB_HANDSHAKE_DONE;
    if ((where & step) != 0) {
      const std::lock_guard guard(mutex_);
      threads_.insert(std::this_thread::get_id());
    }
  }
  static void set(std::set<std::thread::id> threads) {
    const std::lock_guard guard(mutex_);
    threads_ = std::move(threads);
  }

  inline static std::mutex mutex_;
  inline static std::set<std::thread::id> threads_;
};

// The loop is the thread of Raft: handshakes on it would delay heartbeats.
TEST_F(PeersHandshake, the_thread_of_the_loop_computes_no_handshake) {
  const HandshakeThreads threads;
  const auto one = with_tls(1, ours);
  const auto two = with_tls(2, ours);
  initiator = std::make_unique<TestPeer>(one);
  acceptor = std::make_unique<TestPeer>(two);
  initiator->on_loop([&] { initiator->transport().renew_tls(HandshakeThreads::contexts(one)); });
  acceptor->on_loop([&] { acceptor->transport().renew_tls(HandshakeThreads::contexts(two)); });

  initiator->set_members({{2, acceptor->address()}});
  expect_connection();

  const auto id = [] { return std::this_thread::get_id(); };
  const auto all = threads.all();
  EXPECT_EQ(all.size(), 2U) << "one handshake thread per member";
  EXPECT_FALSE(all.contains(initiator->on_loop(id)));
  EXPECT_FALSE(all.contains(acceptor->on_loop(id)));
}

// Otherwise the public-key operations of a flood would delay the handshakes of members.
TEST_F(PeersHandshake, a_connection_beyond_the_limit_of_handshakes_is_closed_at_once) {
  auto options = with_tls(2, ours);
  options.handshakes.per_second = {.total_max = 0, .each_max = 0};
  options.timeouts.handshake = std::chrono::hours(1);
  TestPeer end(options);
  std::atomic<int> limited = 0;
  end.on_loop([&] { end.transport().on_handshake_limit([&] { ++limited; }); });
  RawPeer raw_peer(end.port());

  EXPECT_EQ(raw_peer.read(1), "");
  EXPECT_EQ(limited, 1);
}

TEST_F(PeersHandshake, the_address_of_a_configured_member_has_its_own_limit_of_handshakes) {
  auto two = with_tls(2, ours);
  two.handshakes.per_second = {.total_max = 0, .each_max = 0};
  two.timeouts.handshake = std::chrono::hours(1);
  initiator = std::make_unique<TestPeer>(with_tls(1, ours));
  acceptor = std::make_unique<TestPeer>(two);
  acceptor->set_members({{1, initiator->address()}});
  initiator->set_members({{2, acceptor->address()}});

  expect_connection();

  RawPeer elsewhere(acceptor->port(), 2);
  EXPECT_EQ(elsewhere.read(1), "") << "the limit of other addresses is exhausted";
}

TEST_F(PeersHandshake, the_address_of_a_member_that_connected_has_its_own_limit_of_handshakes) {
  auto two = with_tls(2, ours);
  two.member_handshakes.per_second = {.total_max = 0, .each_max = 0};
  two.timeouts.handshake = std::chrono::hours(1);
  begin(with_tls(1, ours), two);  // Member 2 has no configured address of member 1.
  expect_connection();

  RawPeer same(acceptor->port());
  RawPeer elsewhere(acceptor->port(), 2);
  elsewhere.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");

  EXPECT_EQ(same.read(1), "") << "the limit of members is exhausted";
  EXPECT_TRUE(
      eventually([&] { return acceptor->reports_about("peer_rejected address=127.0.0.2"); }));
  EXPECT_FALSE(acceptor->reports_about("peer_rejected address=127.0.0.1"));
}

// The handshake thread keeps a reference to the loop, and the loop one to that thread.
TEST_F(PeersHandshake, a_member_stops_during_a_handshake) {
  auto options = with_tls(2, ours);
  options.timeouts.handshake = std::chrono::hours(1);
  auto end = std::make_unique<TestPeer>(options);
  RawPeer raw_peer(end->port());
  // Header of a handshake record whose content does not come.
  raw_peer.write(std::string("\x16\x03\x01\x02\x00", 5));

  end.reset();

  EXPECT_EQ(raw_peer.read(1), "");
}

}  // namespace
}  // namespace tenure::server::peers
