#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/peers/peer_transport.hpp"
#include "support/peers/fake_peer.hpp"
#include "support/peers/pair.hpp"
#include "support/peers/tcp_proxy.hpp"
#include "support/peers/test_peer.hpp"
#include "support/rpc/certificates.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::peers {
namespace {

using test::eventually;
using test::RawPeer;
using test::TestPeer;

using PeersRefusal = test::TwoPeers;

TEST_F(PeersRefusal, another_cluster_is_refused_by_name) {
  auto one = TestPeer::options(1);
  one.self.cluster = raft::ClusterId{0xabc};

  begin(one, TestPeer::options(2));

  expect_refusal("belongs to cluster 0000000000000abc", "belongs to cluster 0000000000000abc");
}

TEST_F(PeersRefusal, a_connection_to_the_wrong_member_is_refused) {
  begin(TestPeer::options(1), TestPeer::options(3));

  expect_refusal("connected to member 2, but this is member 3",
                 "connected to member 2, but this is member 3");
}

TEST_F(PeersRefusal, two_connections_of_one_member_id_are_refused) {
  begin(TestPeer::options(2), TestPeer::options(2));
  initiator->set_members({{5, acceptor->address()}});

  expect_refusal("both ends claim to be member 2", "both ends claim to be member 2");
}

TEST_F(PeersRefusal, another_secret_is_refused_and_the_same_is_not) {
  auto one = TestPeer::options(1);
  auto two = TestPeer::options(2);
  one.self.secret = "right";
  two.self.secret = "wrong";
  begin(one, two);
  // The acceptor sends its proof first, so the initiator closes the connection.
  EXPECT_TRUE(eventually([&] { return initiator->reports_about("secret mismatch"); }));
  EXPECT_FALSE(initiator->is_connected_to(2));

  two.self.secret = "right";
  begin(one, two);
  expect_connection();
}

// Catches a vote that is accepted without the secret.
TEST_F(PeersRefusal, an_initiator_without_the_secret_is_refused_after_its_proof) {
  auto two = TestPeer::options(2);
  two.self.secret = "secret";
  TestPeer end(two);
  RawPeer raw_peer(end.port());

  raw_peer.write(encode(Hello{.cluster = raft::ClusterId{77},
                              .initiator = raft::MemberId{1},
                              .acceptor = raft::MemberId{2},
                              .nonce = make_nonce()})
                     .head);
  EXPECT_FALSE(raw_peer.read(1).empty());
  raw_peer.write(encode(Proof{.proof = std::string(32, 'x')}).head);
  raw_peer.write(encode(raft::Message(raft::RequestVote{.term = raft::Term{99}})).head);

  EXPECT_TRUE(eventually([&] { return end.reports_about("secret mismatch with member 1"); }));
  EXPECT_EQ(end.received_count(), 0U);
}

TEST_F(PeersRefusal, a_version_before_the_oldest_is_refused_with_both_numbers) {
  TestPeer end(TestPeer::options(2));
  RawPeer raw_peer(end.port());

  raw_peer.write(encode(Hello{.version = 1, .cluster = raft::ClusterId{77}}).head);

  EXPECT_NE(raw_peer.read(60).find("version 1"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return end.reports_about("supports versions 2 to 3"); }));
}

// An initial member that lost its directory has lost the record of its votes.
TEST_F(PeersRefusal, a_voter_with_a_new_incarnation_is_refused_at_both_ends) {
  auto one = TestPeer::options(1);
  auto two = TestPeer::options(2);
  one.self.incarnation = raft::Incarnation{11};
  two.self.incarnation = raft::Incarnation{12};
  begin(one, two);
  acceptor->set_members({{1, initiator->address()}, {2, acceptor->address()}});
  expect_connection();
  const auto port = initiator->port();
  initiator.reset();

  one.self.incarnation = raft::Incarnation{13};
  initiator = std::make_unique<TestPeer>(one, port);
  initiator->set_members({{2, acceptor->address()}});

  EXPECT_TRUE(eventually([&] {
    return initiator->reports_about("rejected by the peer: member 1 has a new incarnation");
  }));
  EXPECT_TRUE(
      eventually([&] { return acceptor->reports_about("member 1 has a new incarnation"); }));
  EXPECT_FALSE(acceptor->is_connected_to(1));
  EXPECT_TRUE(eventually([&] { return acceptor->reports_about("peer_unreachable peer=1"); }))
      << "the acceptor does not connect to it, either";
}

// Otherwise two of three members with lost directories would form a majority without the log.
TEST_F(PeersRefusal, an_initial_member_with_a_new_incarnation_is_quarantined) {
  auto one = TestPeer::options(1);
  one.self.incarnation = raft::Incarnation{11};
  one.self.origin = raft::origin_of_nothing;
  begin(one, TestPeer::options(2));
  acceptor->set_members({{1, initiator->address()}, {2, acceptor->address()}});
  expect_connection();
  initiator.reset();
  TestPeer third(TestPeer::options(3));

  one.self.incarnation = raft::Incarnation{13};
  initiator = std::make_unique<TestPeer>(one);
  initiator->set_members({{3, third.address()}});
  EXPECT_TRUE(eventually([&] {
    initiator->send(3, raft::AppendResult{});
    return third.received_count() > 0;
  }));
  initiator->set_members({{2, acceptor->address()}, {3, third.address()}});

  EXPECT_TRUE(eventually([&] { return initiator->reports_about("member_quarantined"); }));
  const auto sent = initiator->counts(3).messages_sent;
  initiator->send(3, raft::AppendResult{});
  EXPECT_EQ(initiator->counts(3).messages_sent, sent);
}

TEST_F(PeersRefusal, members_with_different_origins_are_refused) {
  auto one = TestPeer::options(1);
  auto two = TestPeer::options(2);
  one.self.origin = raft::Origin{5};
  two.self.origin = raft::Origin{6};

  begin(one, two);

  expect_refusal("started with different states", "started with different states");
}

TEST_F(PeersRefusal, a_joined_member_has_no_origin) {
  auto one = TestPeer::options(1);
  one.self.origin = raft::Origin{5};

  begin(one, TestPeer::options(2));

  expect_connection();
}

TEST_F(PeersRefusal, bytes_that_are_no_handshake_are_refused) {
  TestPeer end(TestPeer::options(2));

  RawPeer(end.port()).write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");

  EXPECT_TRUE(eventually([&] { return end.reports_about("peer_rejected address=127.0.0.1"); }));
}

TEST_F(PeersRefusal, messages_before_the_handshake_are_refused) {
  TestPeer end(TestPeer::options(2));
  RawPeer raw_peer(end.port());

  raw_peer.write(encode(raft::Message(raft::RequestVote{.term = raft::Term{99}})).head);

  EXPECT_TRUE(eventually([&] { return end.reports_about("invalid handshake"); }));
  EXPECT_EQ(end.received_count(), 0U);
}

// Catches idle connections that keep a member from its handshake.
TEST_F(PeersRefusal, idle_unauthenticated_connections_are_limited_and_evicted) {
  auto options = TestPeer::options(2);
  options.unauthenticated_max = 4;
  acceptor = std::make_unique<TestPeer>(options);
  std::vector<std::unique_ptr<RawPeer>> connections;
  for (int i = 0; i < 10; ++i) {
    connections.push_back(std::make_unique<RawPeer>(acceptor->port()));
  }
  EXPECT_EQ(connections.front()->read(1), "") << "the connection was closed";

  initiator = std::make_unique<TestPeer>(TestPeer::options(1));
  initiator->set_members({{2, acceptor->address()}});
  expect_connection();
}

Hello hello_of(std::uint64_t initiator) {
  return {.cluster = raft::ClusterId{77},
          .initiator = raft::MemberId{initiator},
          .acceptor = raft::MemberId{2},
          .nonce = make_nonce()};
}

TEST_F(PeersRefusal, a_handshake_in_progress_is_not_evicted_by_idle_connections) {
  auto options = TestPeer::options(2);
  options.unauthenticated_max = 4;
  TestPeer end(options);
  RawPeer handshake(end.port());
  handshake.write(encode(hello_of(1)).head);
  ASSERT_FALSE(handshake.read(1).empty());

  std::vector<std::unique_ptr<RawPeer>> connections;
  for (int i = 0; i < 10; ++i) {
    connections.push_back(std::make_unique<RawPeer>(end.port()));
  }
  EXPECT_EQ(connections.front()->read(1), "") << "the connection was closed";
  handshake.write(encode(Proof{.proof = std::string(32, 'x')}).head);

  // Its connection is still open.
  EXPECT_TRUE(eventually([&] { return end.reports_about("secret mismatch with member 1"); }));
}

TEST_F(PeersRefusal, connections_from_one_address_evict_only_each_other) {
  auto options = TestPeer::options(2);
  options.unauthenticated_max = 4;
  TestPeer end(options);
  const std::string words = encode(hello_of(1)).head;
  RawPeer handshake(end.port(), 2);  // No bytes sent yet.

  std::vector<std::unique_ptr<RawPeer>> connections;
  for (int i = 0; i < 10; ++i) {
    connections.push_back(std::make_unique<RawPeer>(end.port()));
    connections.back()->write(words.substr(0, 1));
  }
  connections.back()->write(words.substr(1));
  ASSERT_FALSE(connections.back()->read(1).empty()) << "all earlier connections have been accepted";
  handshake.write(words);

  EXPECT_FALSE(handshake.read(1).empty());
}

// Catches a member that connects to itself at a wildcard address.
TEST_F(PeersRefusal, a_non_member_with_a_wildcard_address_is_called_back_at_its_source_address) {
  auto one = TestPeer::options(1);
  one.self.address = "0.0.0.0:1";  // A closed port: the event contains the address of the attempt.
  begin(one, TestPeer::options(2));

  EXPECT_TRUE(eventually([&] {
    return acceptor->reports_about("peer_unreachable peer=1 address=127.0.0.1:1");
  })) << acceptor->reports.all();
}

TEST_F(PeersRefusal, members_with_certificates_of_their_authority_are_connected) {
  begin(with_tls(1, ours), with_tls(2, ours));
  expect_connection();
}

TEST_F(PeersRefusal, a_certificate_that_names_the_member_needs_no_host) {
  begin(with_tls(1, ours, "URI:tenure:member/1"),
        with_tls(2, ours, "URI:tenure:member/2,URI:tenure:member/3,DNS:elsewhere"));
  expect_connection();
}

TEST_F(PeersRefusal, a_certificate_of_another_authority_is_refused) {
  begin(with_tls(1, theirs), with_tls(2, ours));
  expect_refusal("certificate of the peer rejected", "certificate");
}

TEST_F(PeersRefusal, a_certificate_of_another_member_is_refused_at_both_ends) {
  // The files of member 5, used by a process that claims to be member 1.
  auto thief = TestPeer::options(1);
  thief.tls = with_tls(5, ours, "URI:tenure:member/1").tls;
  begin(std::move(thief), with_tls(2, ours, "URI:tenure:member/2"));
  expect_connection();

  // At the initiator: it expects member 3, and the acceptor has the certificate of member 2.
  initiator->set_members({{3, acceptor->address()}});
  EXPECT_TRUE(eventually([&] { return initiator->reports_about("and not for member 3"); }));
}

// For example the certificate of a client of the same authority.
TEST_F(PeersRefusal, a_certificate_that_names_no_member_is_refused) {
  const auto client = ours.sign({.name = "client", .alternatives = "IP:127.0.0.1"});
  const auto made = make_contexts(files(ours, client), raft::MemberId{1});

  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().detail.find("names no member: it needs URI:tenure:member/1"),
            std::string::npos)
      << made.error().detail;
}

TEST_F(PeersRefusal, authorities_of_members_and_clients_are_compared_by_their_certificates) {
  const auto one = test::content_of(ours.file());
  const auto other = test::content_of(theirs.file());

  EXPECT_TRUE(have_common_certificate(one, other + one));
  EXPECT_FALSE(have_common_certificate(one, other));
  EXPECT_FALSE(have_common_certificate(one, "nothing"));
}

// An attacker may listen at the address of a member without the secret.
TEST_F(PeersRefusal, a_refusal_without_a_proof_does_not_stop_a_member) {
  std::atomic<int> refusals = 0;
  const test::FakePeer impostor([&](const ReceivedFrame& /*hello*/) {
    ++refusals;
    std::vector<Frame> frames;
    frames.push_back(encode(Refusal{.reason = Reason::incarnation, .text = "new incarnation"}));
    return frames;
  });
  auto one = TestPeer::options(1);
  one.self.secret = "0123456789abcdef";
  one.self.origin = raft::origin_of_nothing;
  auto two = TestPeer::options(2);
  two.self.secret = one.self.secret;
  begin(one, two);

  initiator->set_members({{2, acceptor->address()}, {3, impostor.address()}});

  EXPECT_TRUE(eventually([&] { return refusals > 1; }));
  EXPECT_TRUE(eventually(
      [&] { return initiator->reports_about("rejected by the peer: new incarnation"); }));
  EXPECT_FALSE(initiator->reports_about("member_quarantined"));
  expect_connection();
}

TEST_F(PeersRefusal, plain_against_tls_is_refused) {
  begin(TestPeer::options(1), with_tls(2, ours));
  expect_refusal("peer_unreachable peer=2", "does not use TLS 1.3");
}

TEST_F(PeersRefusal, tls_against_plain_is_refused) {
  begin(with_tls(1, ours), TestPeer::options(2));
  expect_refusal("peer_unreachable peer=2", "the peer may use TLS");
}

// Catches invalid files that only a connection to another member would reveal.
TEST_F(PeersRefusal, wrong_files_are_refused_by_the_name_of_their_setting) {
  const auto error = [](const PeerTls& tls) {
    const auto made = make_contexts(tls, raft::MemberId{1});
    return made ? std::string() : made.error().detail;
  };
  const auto right = files(ours, ours.sign({.name = "one", .alternatives = "URI:tenure:member/1"}));
  EXPECT_EQ(error(right), "");

  auto wrong = right;
  wrong.ca = test::content_of(theirs.file());
  EXPECT_NE(error(wrong).find("certificate of another cluster"), std::string::npos);
  wrong = right;
  wrong.key = test::content_of(ours.sign({.name = "two"}).key);
  EXPECT_NE(error(wrong).find("peer_tls.key"), std::string::npos);
  wrong = right;
  wrong.certificate = "nothing";
  EXPECT_NE(error(wrong).find("peer_tls.cert"), std::string::npos);
  EXPECT_NE(error(files(ours, ours.sign({.name = "old", .hours = -1}))).find("expired"),
            std::string::npos);
  EXPECT_NE(error(files(ours, ours.sign({.name = "x", .alternatives = "URI:tenure:member/2"})))
                .find("not for member 1"),
            std::string::npos);
}

TEST(PeersListening, a_port_in_use_is_found_out_at_once) {
  const auto first = ListeningSocket::bind("127.0.0.1", 0);
  ASSERT_TRUE(first);

  const auto second = ListeningSocket::bind("127.0.0.1", first->port());

  ASSERT_FALSE(second);
  EXPECT_NE(second.error().detail.find("cannot listen on 127.0.0.1:"), std::string::npos);
}

}  // namespace
}  // namespace tenure::server::peers
