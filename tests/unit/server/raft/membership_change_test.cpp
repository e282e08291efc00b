#include "server/raft/membership_change.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;

Member member(std::uint64_t id, MemberRole role = MemberRole::voter) {
  return {.id = MemberId{id},
          .role = role,
          .peer = "peer" + std::to_string(id) + ":1",
          .client = "client" + std::to_string(id) + ":1"};
}

AddMember addition(std::uint64_t id) {
  return {.id = id, .peer_address = member(id).peer, .client_address = member(id).client};
}

/// A membership change in a group of four, at the leader, member 1.
class RaftMembershipChange : public ::testing::Test {
 protected:
  using Group = MembershipChange::Group;

  RaftMembershipChange() { set_members({member(1), member(2), member(3), member(4)}, 1); }

  void set_members(const std::vector<Member>& list, std::uint64_t index) {
    members.set_newest(list, Index{index}, now);
  }
  void begin(const MemberChange& what) {
    ASSERT_TRUE(MembershipChange::check(what, members).has_value());
    change.begin(what, [this](Result<void> end) { result = std::move(end); }, now);
  }
  /// A group in which the change can proceed.
  [[nodiscard]] Group group() {
    return {.members = members,
            .applied = Index{50},
            .last = Index{50},
            .has_committed_own_term = true,
            .subject_versions = Versions{.newest = core::version_2, .wanted = core::version_2},
            .version = core::version_2};
  }
  template <class Step>
  [[nodiscard]] std::optional<Step> step(const Group& group) {
    auto next = change.next_step(group, now);
    const auto* found = next.has_value() ? std::get_if<Step>(&*next) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  /// The list that the change submits next, or an empty one.
  [[nodiscard]] std::vector<Member> submission(const Group& group) {
    auto found = step<MembershipChange::SubmitMembers>(group);
    return found.has_value() ? found->members : std::vector<Member>();
  }
  void accept(std::uint64_t index, const std::vector<Member>& list) {
    change.submitted(Index{index}, now);
    set_members(list, index);
  }
  [[nodiscard]] Errc error() const { return result.value().error().code; }

  Time now{std::chrono::seconds(1000)};
  Membership members{{.self = MemberId{1}}};
  MembershipChange change{{.self = MemberId{1}, .timeout = milliseconds(100)}};
  std::optional<Result<void>> result;
};

TEST_F(RaftMembershipChange, a_new_member_is_a_learner_catches_up_and_becomes_a_voter) {
  begin(addition(5));
  const auto learner = submission(group());
  ASSERT_EQ(learner.size(), 5U);
  EXPECT_EQ(learner.back().role, MemberRole::learner);
  accept(51, learner);
  EXPECT_EQ(change.next_step(group(), now), std::nullopt) << "51 is not applied";

  auto view = group();
  view.applied = view.last = Index{51};
  EXPECT_TRUE(step<MembershipChange::WatchLearner>(view).has_value());
  change.catching_up({});
  view.catch_up = CatchUp::running;
  EXPECT_FALSE(change.next_step(view, now).has_value());
  view.catch_up = CatchUp::finished;
  const auto voters = submission(view);
  ASSERT_EQ(voters.size(), 5U);
  EXPECT_EQ(voters.back().role, MemberRole::voter);
  accept(52, voters);

  view.applied = Index{52};
  EXPECT_FALSE(change.next_step(view, now).has_value());
  EXPECT_FALSE(result.has_value()) << "the voter does not know of its promotion";
  view.subject_match = Index{52};
  EXPECT_FALSE(change.next_step(view, now).has_value());
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->has_value());
}

TEST_F(RaftMembershipChange, a_learner_that_has_the_whole_log_is_promoted_at_once) {
  set_members({member(1), member(2), member(3), member(5, MemberRole::learner)}, 9);
  begin(addition(5));
  auto view = group();
  view.subject_match = view.last;

  const auto voters = submission(view);

  ASSERT_EQ(voters.size(), 4U);
  EXPECT_EQ(voters.back().role, MemberRole::voter);
}

TEST_F(RaftMembershipChange, a_learner_that_does_not_catch_up_ends_the_change) {
  set_members({member(1), member(2), member(3), member(5, MemberRole::learner)}, 9);
  begin(addition(5));
  ASSERT_TRUE(step<MembershipChange::WatchLearner>(group()).has_value());
  change.catching_up({});
  auto view = group();
  view.catch_up = CatchUp::aborted;

  EXPECT_FALSE(change.next_step(view, now).has_value());

  EXPECT_EQ(error(), Errc::timed_out);
}

TEST_F(RaftMembershipChange, a_learner_that_cannot_read_the_log_is_refused) {
  set_members({member(1), member(2), member(3), member(5, MemberRole::learner)}, 9);
  begin(addition(5));
  auto view = group();
  view.subject_versions.reset();
  EXPECT_FALSE(change.next_step(view, now).has_value()) << "the learner still has time to connect";
  view.subject_versions = Versions{.newest = core::version_1, .wanted = core::version_1};

  EXPECT_FALSE(change.next_step(view, now).has_value());

  EXPECT_EQ(error(), Errc::invalid_argument);
}

// Two lists that differ in two members can have disjoint quorums (Ongaro, 2015).
TEST_F(RaftMembershipChange, a_change_waits_for_an_entry_of_the_leaders_own_term) {
  begin(RemoveMember{.id = 4});
  auto view = group();
  view.has_committed_own_term = false;

  EXPECT_TRUE(step<MembershipChange::CommitOwnTerm>(view).has_value());
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(change.deadline(now), now + milliseconds(100));
  now += milliseconds(100);
  EXPECT_FALSE(change.next_step(view, now).has_value());

  EXPECT_EQ(error(), Errc::would_block);
}

// R8: a group whose only voter does not know of its promotion has no leader.
TEST_F(RaftMembershipChange, a_removal_waits_for_the_newest_voter_and_an_addition_does_not) {
  set_members({member(1), member(2), member(3), member(4), member(5)}, 40);
  auto view = group();
  view.fresh_voter_match = Index{39};
  begin(RemoveMember{.id = 2});
  EXPECT_TRUE(step<MembershipChange::CommitOwnTerm>(view).has_value());
  change.end({});

  begin(addition(6));
  EXPECT_EQ(submission(view).size(), 6U);
  change.end({});
  begin(RemoveMember{.id = 5});
  EXPECT_EQ(submission(view).size(), 4U) << "the newest voter itself can be removed";
  change.end({});

  begin(RemoveMember{.id = 2});
  view.fresh_voter_match = Index{40};
  EXPECT_EQ(submission(view).size(), 4U);
}

TEST_F(RaftMembershipChange, a_removal_ends_when_it_is_committed) {
  begin(RemoveMember{.id = 4});
  const auto rest = submission(group());
  EXPECT_EQ(rest.size(), 3U);
  accept(51, rest);
  EXPECT_FALSE(change.next_step(group(), now).has_value());
  EXPECT_TRUE(change.is_active());
  auto view = group();
  view.applied = Index{51};

  EXPECT_FALSE(change.next_step(view, now).has_value());

  EXPECT_TRUE(result.value().has_value());
}

TEST_F(RaftMembershipChange, a_leader_transfers_the_leadership_once_before_its_removal) {
  begin(RemoveMember{.id = 1});

  EXPECT_TRUE(step<MembershipChange::HandOver>(group()).has_value());

  EXPECT_FALSE(change.next_step(group(), now).has_value());
  EXPECT_TRUE(change.is_active()) << "the loss of the leadership ends the change";
}

TEST_F(RaftMembershipChange, a_submission_that_fails_ends_the_change) {
  begin(RemoveMember{.id = 4});
  static_cast<void>(submission(group()));

  change.submitted(fail(Errc::unavailable, "deposed"), now);

  EXPECT_EQ(error(), Errc::unavailable);
  EXPECT_FALSE(change.is_active());
}

// R2: at least three voters must remain.
TEST_F(RaftMembershipChange, impossible_changes_are_refused) {
  const auto refused = [this](const MemberChange& what) {
    return !MembershipChange::check(what, members).has_value();
  };
  auto stolen = addition(5);
  stolen.peer_address = member(2).peer;
  auto without_address = addition(5);
  without_address.client_address = "";

  EXPECT_TRUE(refused(addition(2)));
  EXPECT_TRUE(refused(stolen));
  EXPECT_TRUE(refused(without_address));
  EXPECT_TRUE(refused(RemoveMember{.id = 9}));
  EXPECT_FALSE(refused(RemoveMember{.id = 4}));
  set_members({member(1), member(2), member(3)}, 9);
  EXPECT_TRUE(refused(RemoveMember{.id = 3}));
}

}  // namespace
}  // namespace tenure::server::raft
