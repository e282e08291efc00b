#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/peers/peer_registry.hpp"
#include "support/raft/folder.hpp"

namespace tenure::server::peers {
namespace {

using raft::Incarnation;
using raft::Member;
using raft::MemberId;
using raft::MemberRole;

constexpr MemberId two{2};
constexpr MemberId three{3};

Member voter(MemberId id) {
  return {.id = id};
}

Member learner(MemberId id) {
  return {.id = id, .role = MemberRole::learner};
}

class PeersRegistry : public ::testing::Test {
 protected:
  [[nodiscard]] PeerRegistry open() {
    auto opened = PeerRegistry::open(folder / "peers", reports.report());
    EXPECT_TRUE(opened.has_value()) << opened.error().detail;
    return opened ? *std::move(opened) : PeerRegistry();
  }

  test::TemporaryFolder folder;
  test::Reports reports;
};

// The former incarnation may have voted and acknowledged entries.
TEST_F(PeersRegistry, a_voter_with_a_new_incarnation_is_refused_also_after_a_restart) {
  {
    auto known = open();
    known.set_members({voter(two), voter(three)});
    EXPECT_EQ(known.verify(two, Incarnation{5}), "");
    EXPECT_EQ(known.verify(two, Incarnation{5}), "") << "the same incarnation again";
    EXPECT_NE(known.verify(two, Incarnation{6}), "");
  }
  auto known = open();
  known.set_members({voter(two), voter(three)});

  const auto error = known.verify(two, Incarnation{6});

  EXPECT_TRUE(error.contains("member 2 has a new incarnation")) << error;
  EXPECT_TRUE(error.contains("--join")) << "the remedy is part of the error";
  EXPECT_TRUE(error.contains("remove member 2")) << "the remedy is part of the error";
  EXPECT_EQ(known.verify(two, Incarnation{5}), "");
  EXPECT_EQ(known.verify(three, Incarnation{6}), "");
}

// A learner does not vote, so an interrupted attempt to join may be repeated with a new directory.
TEST_F(PeersRegistry, a_learner_may_have_a_new_incarnation) {
  auto known = open();
  known.set_members({voter(three), learner(two)});

  EXPECT_EQ(known.verify(two, Incarnation{5}), "");
  EXPECT_EQ(known.verify(two, Incarnation{6}), "");
  known.set_members({voter(three), voter(two)});

  EXPECT_EQ(known.verify(two, Incarnation{6}), "") << "the incarnation at its promotion";
  EXPECT_NE(known.verify(two, Incarnation{5}), "");
}

// The directory may be replaced again between the last handshake and the promotion.
TEST_F(PeersRegistry, a_member_promoted_while_offline_is_recorded_when_it_connects) {
  auto known = open();
  known.set_members({voter(three), learner(two)});
  EXPECT_EQ(known.verify(two, Incarnation{5}), "");
  known.forget(two);
  known.set_members({voter(three), voter(two)});

  EXPECT_EQ(known.verify(two, Incarnation{6}), "");
  EXPECT_NE(known.verify(two, Incarnation{5}), "");
}

TEST_F(PeersRegistry, a_member_removed_and_added_again_may_have_a_new_incarnation) {
  auto known = open();
  known.set_members({voter(two), voter(three)});
  EXPECT_EQ(known.verify(two, Incarnation{5}), "");
  known.set_members({voter(three)});
  EXPECT_EQ(known.verify(two, Incarnation{6}), "");
  known.set_members({voter(three), learner(two)});
  known.set_members({voter(three), voter(two)});

  EXPECT_EQ(known.verify(two, Incarnation{6}), "");
  EXPECT_NE(known.verify(two, Incarnation{5}), "");
}

// Replay starts with the member list of the snapshot, which may be older than the recorded members.
TEST_F(PeersRegistry, member_lists_during_replay_forget_no_member) {
  {
    auto known = open();
    known.set_members({voter(two), voter(three)});
    EXPECT_EQ(known.verify(two, Incarnation{5}), "");
    EXPECT_EQ(known.verify(three, Incarnation{7}), "");
  }
  auto known = open();
  known.set_members({});
  known.set_members({voter(three)});
  known.set_members({voter(two), voter(three)});

  EXPECT_NE(known.verify(two, Incarnation{6}), "");
  EXPECT_NE(known.verify(three, Incarnation{6}), "");
}

TEST_F(PeersRegistry, a_damaged_file_is_refused_by_name) {
  for (const auto* content : {"", "nonsense\n", "tenure peers 2\n", "tenure peers 1\nmember x\n"}) {
    test::write_content(folder / "peers", content);

    const auto opened = PeerRegistry::open(folder / "peers", reports.report());

    ASSERT_FALSE(opened.has_value()) << content;
    EXPECT_TRUE(opened.error().detail.contains((folder / "peers").string()));
  }
}

// A full disk must not disconnect the members.
TEST_F(PeersRegistry, a_failed_write_is_reported_once_and_repeated) {
  std::filesystem::create_directories(folder / "away");
  auto opened = PeerRegistry::open(folder / "away" / "peers", reports.report());
  ASSERT_TRUE(opened.has_value());
  std::filesystem::remove(folder / "away");
  opened->set_members({voter(two), voter(three)});

  EXPECT_EQ(opened->verify(two, Incarnation{5}), "");
  EXPECT_EQ(opened->verify(three, Incarnation{5}), "");
  EXPECT_NE(opened->verify(two, Incarnation{6}), "")
      << "the incarnation is known although the write failed";
  EXPECT_EQ(reports.warnings(), 1U);
  std::filesystem::create_directories(folder / "away");
  opened->sweep();

  EXPECT_TRUE(test::content_of(folder / "away" / "peers").contains("member 3 incarnation"));
}

}  // namespace
}  // namespace tenure::server::peers
