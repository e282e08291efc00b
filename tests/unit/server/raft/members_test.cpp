#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/raft/group.hpp"

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::RaftGroup;

std::vector<std::uint64_t> voters(RaftGroup::Machine& machine) {
  std::vector<std::uint64_t> ids;
  for (const auto& member : machine.store().members()) {
    if (member.is_voter) {
      ids.push_back(member.id);
    }
  }
  return ids;
}

std::uint64_t follower_of(RaftGroup::Machine& leader) {
  return leader.id().get() % 3 + 1;
}

TEST(RaftMembers, addresses_travel_in_the_configuration) {
  const std::vector<Member> members{RaftGroup::founder(1), RaftGroup::founder(2)};

  EXPECT_EQ(decode_members(encode_members(members)), members);
}

// As written by the first version: bytes of libraft's own encoding, the id for an address.
TEST(RaftMembers, a_list_without_addresses_is_still_read) {
  const std::vector<Member> old{{.id = MemberId{1}},
                                {.id = MemberId{12}, .role = MemberRole::learner}};

  const auto bytes = encode_members(old);

  EXPECT_EQ(decode_members(bytes), old);
  EXPECT_NE(bytes.find(std::string("\x31\0", 2)), std::string::npos)
      << "the id is encoded as the address";
}

TEST(RaftMembers, invalid_member_lists_are_not_encoded) {
  auto twice = RaftGroup::founder(1);
  auto longer = RaftGroup::founder(2);
  longer.peer = std::string(700, 'x');

  EXPECT_EQ(encode_members({twice, twice}), "");
  EXPECT_EQ(encode_members({longer}), "");
}

TEST(RaftMembers, all_members_see_the_same_list_and_the_leader_their_progress) {
  RaftGroup group(3);
  auto& leader = group.elect();
  group.pass(milliseconds(100));

  const auto members = leader.store().members();

  ASSERT_EQ(members.size(), 3U);
  for (const auto& member : members) {
    EXPECT_EQ(member.peer_address, "peer" + std::to_string(member.id) + ":7420");
    EXPECT_TRUE(member.is_voter);
    EXPECT_EQ(member.match_index, leader.store().position().last_index);
    EXPECT_LE(member.silent, milliseconds(60));
  }
  EXPECT_EQ(group.at(follower_of(leader)).known.size(), 3U) << "the transport has the new list";
}

TEST(RaftMembers, a_new_member_catches_up_and_votes) {
  RaftGroup group(3, 1);
  auto& leader = group.elect();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(group.propose(leader, core::Tick{}).has_value());
  }

  const auto added = group.change(leader, RaftGroup::addition(4));

  ASSERT_TRUE(added.has_value()) << added.error().detail;
  EXPECT_EQ(voters(leader), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(group.eventually([&] { return group.at(4).state_bytes() == leader.state_bytes(); }));
  EXPECT_EQ(voters(group.at(4)), voters(leader));
}

TEST(RaftMembers, a_new_member_can_begin_with_a_snapshot) {
  RaftGroup group(3, 1, {.peer_entries_max = 4, .trailing_entries = 8});
  auto& leader = group.elect();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(group.propose(leader, core::Tick{}).has_value());
  }
  ASSERT_TRUE(group.take_snapshot(leader).has_value());

  const auto added = group.change(leader, RaftGroup::addition(4));

  ASSERT_TRUE(added.has_value()) << added.error().detail;
  EXPECT_GE(group.snapshots_sent, 1U);
  EXPECT_EQ(group.at(4).state_bytes(), leader.state_bytes());
}

TEST(RaftMembers, a_stopped_member_stays_a_learner_and_can_be_added_again) {
  RaftGroup group(3, 1);
  auto& leader = group.elect();
  group.crash(4);

  const auto first = group.change(leader, RaftGroup::addition(4));
  group.boot(4);
  const auto second = group.change(leader, RaftGroup::addition(4));

  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().code, Errc::timed_out);
  EXPECT_TRUE(second.has_value()) << second.error().detail;
  EXPECT_EQ(voters(leader).size(), 4U);
}

TEST(RaftMembers, a_dead_member_is_replaced_by_a_new_one) {
  RaftGroup group(3, 1);
  auto& leader = group.elect();
  const auto dead = follower_of(leader);
  group.crash(dead);

  ASSERT_TRUE(group.change(leader, RaftGroup::addition(4)).has_value());
  const auto removed = group.change(leader, RemoveMember{.id = dead});

  ASSERT_TRUE(removed.has_value()) << removed.error().detail;
  EXPECT_EQ(voters(leader).size(), 3U);
  EXPECT_EQ(std::ranges::count(voters(leader), dead), 0);
  group.crash(leader.id().get());
  EXPECT_TRUE(group.propose(group.elect(), core::Tick{}).has_value())
      << "two of three members are a majority";
}

// Regression (`make chaos`, seed 500): the failed member could not be removed, because three
// members must remain, and no other could be added, because this leader had never had contact with
// it.
TEST(RaftMembers, a_later_leader_can_replace_the_newest_of_three_members) {
  RaftGroup group(3, 2);
  auto& first = group.elect();
  const auto replaced = follower_of(first);
  group.crash(replaced);
  ASSERT_TRUE(group.change(first, RaftGroup::addition(4)).has_value());
  ASSERT_TRUE(group.change(first, RemoveMember{.id = replaced}).has_value());
  const auto other = 6 - replaced - first.id().get();
  group.pass(milliseconds(200));
  group.crash(4);
  ASSERT_TRUE(group.transfer(first, other).has_value());
  auto& next = group.elect();
  ASSERT_EQ(next.id().get(), other);

  const auto added = group.change(next, RaftGroup::addition(5));
  const auto removed = group.change(next, RemoveMember{.id = 4});

  ASSERT_TRUE(added.has_value()) << added.error().detail;
  ASSERT_TRUE(removed.has_value()) << removed.error().detail;
  EXPECT_EQ(voters(next).size(), 3U);
  EXPECT_EQ(std::ranges::count(voters(next), 4U), 0);
}

// With more than three members, the removal may come before the addition.
TEST(RaftMembers, a_later_leader_can_remove_the_newest_of_four_members) {
  RaftGroup group(3, 1);
  auto& first = group.elect();
  ASSERT_TRUE(group.change(first, RaftGroup::addition(4)).has_value());
  group.pass(milliseconds(200));
  group.crash(4);
  const auto to = follower_of(first);
  ASSERT_TRUE(group.transfer(first, to).has_value());
  auto& next = group.elect();

  const auto another = group.change(next, RemoveMember{.id = first.id().get()});
  const auto itself = group.change(next, RemoveMember{.id = 4});

  ASSERT_FALSE(another.has_value());
  EXPECT_EQ(another.error().code, Errc::would_block);
  EXPECT_NE(another.error().detail.find("start it, or remove it"), std::string::npos)
      << another.error().detail;
  EXPECT_TRUE(itself.has_value()) << itself.error().detail;
}

TEST(RaftMembers, impossible_member_changes_are_refused) {
  RaftGroup group(3, 1);
  auto& leader = group.elect();
  auto& follower = group.at(follower_of(leader));
  auto stolen = RaftGroup::addition(4);
  stolen.peer_address = "peer1:7420";
  auto homeless = RaftGroup::addition(4);
  homeless.client_address = "";

  EXPECT_EQ(group.change(leader, RemoveMember{.id = 1}).error().code, Errc::invalid_argument)
      << "at least three voters must remain";
  EXPECT_EQ(group.change(leader, RemoveMember{.id = 9}).error().code, Errc::invalid_argument);
  EXPECT_EQ(group.change(leader, RaftGroup::addition(1)).error().code, Errc::invalid_argument);
  EXPECT_EQ(group.change(leader, stolen).error().code, Errc::invalid_argument);
  EXPECT_EQ(group.change(leader, homeless).error().code, Errc::invalid_argument);
  EXPECT_EQ(group.change(follower, RaftGroup::addition(4)).error().code, Errc::unavailable);
  EXPECT_EQ(voters(leader).size(), 3U);
}

TEST(RaftMembers, a_second_member_change_is_refused_during_the_first) {
  RaftGroup group(3, 2);
  auto& leader = group.elect();
  std::optional<Result<void>> first;
  leader.store().change_members(
      RaftGroup::addition(4), [&](Result<void> result) { first = std::move(result); }, group.now());

  const auto second = group.change(leader, RaftGroup::addition(5));

  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::would_block);
  ASSERT_TRUE(group.eventually([&] { return first.has_value(); }));
  EXPECT_TRUE(first->has_value());
}

// Ongaro, 2015: until something of its own term is committed, a change of a former leader may be
// in a log that it does not know, and two such changes have disjoint quorums.
TEST(RaftMembers, a_new_leader_changes_no_members_before_an_entry_of_its_term_is_committed) {
  RaftGroup group(4, 1);
  auto& old = group.elect();
  ASSERT_TRUE(group.propose(old, core::Tick{}).has_value());
  group.pass(milliseconds(200));
  const auto to = old.id().get() % 4 + 1;
  ASSERT_TRUE(group.transfer(old, to).has_value());
  auto& next = group.elect();
  ASSERT_EQ(next.id().get(), to);
  group.cut_off(to);
  std::optional<Result<void>> changed;

  next.store().change_members(
      RaftGroup::addition(5), [&](Result<void> result) { changed = std::move(result); },
      group.now());
  const auto& replica = next.store().replica();
  group.pass(milliseconds(20));

  EXPECT_TRUE(next.leads());
  EXPECT_FALSE(replica.has_committed_own_term());
  EXPECT_FALSE(replica.is_changing()) << "it is not in the log";
  EXPECT_FALSE(changed.has_value()) << "the change waits and is not refused";
  group.heal();
  ASSERT_TRUE(group.eventually([&] { return changed.has_value(); }));
  EXPECT_TRUE(changed->has_value()) << changed->error().detail;
  EXPECT_EQ(voters(next).size(), 5U);
}

TEST(RaftMembers, a_new_leader_commits_an_entry_of_its_own_term) {
  RaftGroup group(3);
  auto& old = group.elect();
  group.pass(milliseconds(200));
  ASSERT_TRUE(group.transfer(old, follower_of(old)).has_value());
  auto& next = group.elect();

  EXPECT_TRUE(group.eventually([&] { return next.store().replica().has_committed_own_term(); }));
  const auto last = next.store().position().last_index;
  group.pass(seconds(5));
  EXPECT_EQ(next.store().position().last_index, last) << "once";
}

// Thesis, 4.2.2: a removed member receives no entries, so it needs a notice.
TEST(RaftMembers, a_removed_member_gets_a_notice_and_stops_elections) {
  RaftGroup group(4);
  auto& leader = group.elect();
  const auto target = leader.id().get() % 4 + 1;

  ASSERT_TRUE(group.change(leader, RemoveMember{.id = target}).has_value());
  group.pass(milliseconds(100));
  const auto term = leader.store().position().term;
  group.pass(seconds(20));

  auto& removed = group.at(target);
  EXPECT_TRUE(removed.store().is_removed());
  EXPECT_EQ(removed.store().deadline(), std::nullopt);
  EXPECT_EQ(removed.store().position().leader, 0U) << "the removed member learns no later leader";
  EXPECT_TRUE(std::ranges::any_of(removed.reports, [](const std::string& report) {
    return report.find("removed_from_cluster") != std::string::npos;
  }));
  EXPECT_EQ(group.propose(removed, core::Tick{}).error().code, Errc::unavailable);
  EXPECT_TRUE(leader.leads());
  EXPECT_EQ(leader.store().position().term, term) << "no election was started";
  EXPECT_EQ(leader.known.size(), 3U) << "the transport removes the member eventually";
}

TEST(RaftMembers, a_member_removed_while_offline_starts_no_election_and_gets_a_notice) {
  RaftGroup group(4);
  auto& leader = group.elect();
  const auto target = leader.id().get() % 4 + 1;
  group.crash(target);
  ASSERT_TRUE(group.change(leader, RemoveMember{.id = target}).has_value());
  group.pass(seconds(5));
  const auto term = leader.store().position().term;

  group.boot(target);
  group.pass(seconds(20));

  EXPECT_TRUE(group.at(target).store().is_removed());
  EXPECT_TRUE(leader.leads());
  EXPECT_EQ(leader.store().position().term, term);
}

TEST(RaftMembers, a_leader_transfers_the_leadership_before_its_removal) {
  RaftGroup group(4);
  auto& old = group.elect();
  const auto id = old.id().get();

  const auto first = group.change(old, RemoveMember{.id = id});
  auto& next = group.elect();
  const auto second = group.change(next, RemoveMember{.id = id});

  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().code, Errc::unavailable) << first.error().detail;
  EXPECT_NE(&next, &old);
  EXPECT_TRUE(second.has_value()) << second.error().detail;
  EXPECT_EQ(voters(next).size(), 3U);
}

TEST(RaftMembers, a_leader_that_fails_during_a_member_change_leaves_the_result_unknown) {
  RaftGroup group(3, 1);
  auto& leader = group.elect();
  std::optional<Result<void>> changed;
  leader.store().change_members(
      RaftGroup::addition(4), [&](Result<void> result) { changed = std::move(result); },
      group.now());

  group.cut_off(leader.id().get());
  ASSERT_TRUE(group.eventually([&] { return changed.has_value(); }));
  auto& next = group.elect();
  group.heal();
  const auto again = group.change(next, RaftGroup::addition(4));

  EXPECT_EQ(changed->error().code, Errc::unavailable);
  EXPECT_TRUE(again.has_value()) << again.error().detail;
}

}  // namespace
}  // namespace tenure::server::raft
