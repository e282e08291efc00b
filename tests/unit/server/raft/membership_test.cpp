#include "server/raft/membership.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;

std::vector<Member> members(const std::vector<std::uint64_t>& ids) {
  std::vector<Member> all;
  for (const auto id : ids) {
    all.push_back({.id = MemberId{id}});
  }
  return all;
}

class RaftMembership : public ::testing::Test {
 protected:
  void set_newest(const std::vector<Member>& list, std::uint64_t index) {
    membership.set_newest(list, Index{index}, now);
  }
  bool set_committed(const std::vector<Member>& list, std::uint64_t index) {
    return membership.set_committed(list, Index{index}, now);
  }
  void set_both(const std::vector<std::uint64_t>& ids, std::uint64_t index) {
    set_newest(members(ids), index);
    EXPECT_FALSE(set_committed(members(ids), index));
  }

  Time now{std::chrono::seconds(1000)};
  Membership membership{
      {.self = MemberId{1}, .notice_for = milliseconds(100), .notice_every = milliseconds(10)}};
};

TEST_F(RaftMembership, a_removed_member_gets_notices_for_a_while) {
  set_both({1, 2, 3, 4}, 1);
  set_both({1, 2, 3}, 9);

  const auto due = membership.take_due_notices(now);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].to, MemberId{4});
  EXPECT_EQ(due[0].removed_at, Index{9});
  EXPECT_TRUE(membership.take_due_notices(now).empty());
  EXPECT_EQ(membership.deadline(), now + milliseconds(10));

  EXPECT_EQ(membership.take_due_notices(now + milliseconds(100)).size(), 1U) << "the last notice";
  EXPECT_EQ(membership.deadline(), std::nullopt);
}

// A notice can only be sent over a connection.
TEST_F(RaftMembership, a_removed_member_stays_a_peer_until_its_last_notice) {
  set_both({1, 2}, 1);
  ASSERT_TRUE(membership.changed_peers().has_value());
  set_both({1}, 9);
  EXPECT_EQ(membership.changed_peers(), std::nullopt);

  static_cast<void>(membership.take_due_notices(now + milliseconds(100)));

  EXPECT_EQ(membership.changed_peers(), members({1}));
}

TEST_F(RaftMembership, a_member_that_is_added_again_gets_no_more_notices) {
  set_both({1, 2, 3, 4}, 1);
  set_both({1, 2, 3}, 9);
  set_both({1, 2, 3, 4}, 10);

  EXPECT_TRUE(membership.take_due_notices(now).empty());
}

// R8 depends on the newest voter.
TEST_F(RaftMembership, the_newest_voter_is_the_one_that_the_last_change_made) {
  set_newest(members({1, 2, 3}), 1);
  EXPECT_FALSE(membership.fresh_voter().has_value()) << "initial voters are not new";
  auto four = members({1, 2, 3, 4});
  four.back().role = MemberRole::learner;
  set_newest(four, 5);
  EXPECT_FALSE(membership.fresh_voter().has_value());

  four.back().role = MemberRole::voter;
  set_newest(four, 6);

  ASSERT_TRUE(membership.fresh_voter().has_value());
  EXPECT_EQ(membership.fresh_voter()->id, MemberId{4});
  EXPECT_EQ(membership.fresh_voter()->index, Index{6});
}

TEST_F(RaftMembership, the_commit_of_a_configuration_without_this_member_removes_it) {
  set_both({1, 2, 3, 4}, 1);
  set_newest(members({2, 3, 4}), 9);
  EXPECT_FALSE(membership.is_removed()) << "the change may be lost";

  EXPECT_TRUE(set_committed(members({2, 3, 4}), 9));

  EXPECT_TRUE(membership.is_removed());
}

TEST_F(RaftMembership, a_member_that_was_never_in_a_configuration_is_not_removed) {
  EXPECT_FALSE(membership.is_removed());
}

TEST_F(RaftMembership, an_outdated_notice_does_not_remove_this_member) {
  set_both({1, 2, 3}, 9);
  EXPECT_FALSE(membership.receive_notice(Index{9}));
  EXPECT_FALSE(membership.is_removed());

  EXPECT_TRUE(membership.receive_notice(Index{10}));
  EXPECT_FALSE(membership.receive_notice(Index{10})) << "the notice is a duplicate";
  EXPECT_TRUE(membership.is_removed());
  set_newest(members({1, 2, 3}), 12);

  EXPECT_FALSE(membership.is_removed()) << "the member was added again";
}

TEST_F(RaftMembership, a_peer_in_no_configuration_counts_as_removed) {
  EXPECT_FALSE(membership.is_removed_peer(MemberId{4})) << "no configuration is known yet";
  set_both({1, 2, 3}, 1);

  EXPECT_TRUE(membership.is_removed_peer(MemberId{4}));
  EXPECT_FALSE(membership.is_removed_peer(MemberId{3}));
}

TEST_F(RaftMembership, the_silence_of_a_member_begins_with_its_last_message) {
  set_both({1, 2, 3}, 1);
  now += milliseconds(50);
  membership.heard(MemberId{2}, now);
  membership.heard(MemberId{9}, now);
  now += milliseconds(20);

  EXPECT_EQ(membership.silence(MemberId{2}, now), milliseconds(20));
  EXPECT_EQ(membership.silence(MemberId{3}, now), milliseconds(70));
  EXPECT_TRUE(membership.was_heard_within(milliseconds(21), MemberId{2}, now));
  EXPECT_FALSE(membership.was_heard_within(milliseconds(21), MemberId{3}, now));
  EXPECT_FALSE(membership.was_heard_within(milliseconds(21), MemberId{9}, now)) << "no member";
}

}  // namespace
}  // namespace tenure::server::raft
