#include "server/raft/versions.hpp"

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "support/raft/group.hpp"

namespace tenure::server::raft {
namespace {

using core::version_1;
using core::version_2;
using test::RaftGroup;
using namespace std::chrono_literals;

constexpr Versions older{.newest = version_1, .wanted = version_1};
constexpr Versions newer{.newest = version_2, .wanted = version_2};
constexpr Versions cautious{.newest = version_2, .wanted = version_1};

std::optional<core::ClusterVersion> next(core::ClusterVersion present,
                                         const std::vector<MemberVersions>& members) {
  return next_version(present, members);
}

TEST(RaftVersions, the_version_is_raised_to_the_lowest_that_a_member_wants) {
  EXPECT_EQ(next(version_1, {{.announced = newer}, {.announced = newer}}), version_2);
  EXPECT_EQ(next(version_1, {{.announced = newer}, {.announced = older}}), std::nullopt);
  EXPECT_EQ(next(version_1, {{.announced = newer}, {.announced = cautious}}), std::nullopt);
}

// A learner receives log entries, too, so it must be able to read the version.
TEST(RaftVersions, a_disconnected_member_or_learner_delays_the_raise) {
  EXPECT_EQ(next(version_1, {{.announced = newer}, {}}), std::nullopt);
  EXPECT_EQ(
      next(version_1, {{.announced = newer}, {.role = MemberRole::learner, .announced = older}}),
      std::nullopt);
}

TEST(RaftVersions, a_voter_that_can_read_the_version_can_lower_it) {
  EXPECT_EQ(next(version_2, {{.announced = newer}, {.announced = cautious}}), version_1);
  EXPECT_EQ(next(version_2, {{.announced = newer}, {.announced = cautious}, {}}), version_1);
  EXPECT_EQ(next(version_2, {{.announced = newer}, {.announced = older}}), std::nullopt);
  EXPECT_EQ(
      next(version_2, {{.announced = newer}, {.role = MemberRole::learner, .announced = cautious}}),
      std::nullopt);
}

RaftStoreOptions with(Versions versions) {
  RaftStoreOptions options;
  options.versions = versions;
  return options;
}

void restart(RaftGroup& group, std::uint64_t id, Versions versions) {
  group.crash(id);
  group.at(id).set_versions(versions);
  group.boot(id);
  group.elect();
}

/// Whether all running members use this version.
bool use(RaftGroup& group, core::ClusterVersion version, std::uint64_t members = 3) {
  for (std::uint64_t id = 1; id <= members; ++id) {
    if (!group.at(id).is_up() || group.at(id).state().version != version) {
      return false;
    }
  }
  return true;
}

/// Whether all log entries after the snapshot have this version.
bool has_entries_of(RaftGroup::Machine& machine, core::ClusterVersion version) {
  const auto& durable = machine.durable();
  const auto applied = durable.snapshot.has_value() ? durable.snapshot->mark.index : raft::Index{};
  auto index = durable.first;
  for (const auto& entry : durable.entries) {
    if (entry.type == EntryType::command && index > applied &&
        core::version_of_batch(*entry.payload) != version) {
      return false;
    }
    index = raft::next(index);
  }
  return true;
}

TEST(RaftVersions, a_group_of_one_raises_its_version_when_it_starts) {
  RaftGroup group(1);
  EXPECT_TRUE(group.eventually([&] { return use(group, version_2, 1); }));
}

TEST(RaftVersions, a_cluster_raises_its_version_when_the_last_member_is_upgraded) {
  RaftGroup group(3, 0, with(older));
  group.elect();
  for (const auto id : {1U, 2U}) {
    restart(group, id, newer);
    group.pass(10s);
    EXPECT_TRUE(use(group, version_1));
  }

  restart(group, 3, newer);

  EXPECT_TRUE(group.eventually([&] { return use(group, version_2); }));
}

// A disconnected member may run an older program.
TEST(RaftVersions, a_disconnected_member_delays_the_raise) {
  RaftGroup group(3, 0, with(older));
  group.elect();
  for (const auto id : {1U, 2U, 3U}) {
    group.crash(id);
    group.at(id).set_versions(newer);
  }
  group.boot(1);
  group.boot(2);
  auto& leader = group.elect();
  group.pass(10s);
  EXPECT_EQ(leader.state().version, version_1);

  group.boot(3);

  EXPECT_TRUE(group.eventually([&] { return use(group, version_2); }));
}

TEST(RaftVersions, a_leader_with_an_older_program_changes_nothing) {
  RaftGroup group(3, 0, with(older));
  group.elect();
  restart(group, 1, newer);
  restart(group, 2, newer);
  auto& leader = group.elect();
  if (leader.id() != MemberId{3}) {
    ASSERT_TRUE(group.transfer(leader, 3).has_value());
  }
  ASSERT_TRUE(group.eventually([&] { return group.at(3).leads(); }));

  EXPECT_TRUE(group.propose(group.at(3), core::Tick{}).has_value());
  group.pass(10s);

  EXPECT_TRUE(use(group, version_1));
  for (const auto id : {1U, 2U, 3U}) {
    EXPECT_TRUE(has_entries_of(group.at(id), version_1));
  }
}

// Afterwards every member can be replaced by a program that cannot read the newer version.
TEST(RaftVersions, a_voter_that_wants_less_lowers_the_version_and_all_members_take_snapshots) {
  RaftGroup group(3);
  ASSERT_TRUE(group.eventually([&] { return use(group, version_2); }));
  EXPECT_TRUE(group.propose(group.elect(), core::Tick{}).has_value());

  restart(group, 2, cautious);

  ASSERT_TRUE(group.eventually([&] { return use(group, version_1); }));
  EXPECT_TRUE(group.propose(group.elect(), core::Tick{}).has_value());
  EXPECT_TRUE(group.eventually([&] {
    return has_entries_of(group.at(1), version_1) && has_entries_of(group.at(2), version_1) &&
           has_entries_of(group.at(3), version_1);
  }));
  for (const auto id : {1U, 2U, 3U}) {
    ASSERT_TRUE(group.at(id).durable().snapshot.has_value());
    EXPECT_EQ(core::decode(*group.at(id).durable().snapshot->body)->version, version_1);
  }
}

// Each entry is written in the version of the state that it is applied to.
TEST(RaftVersions, requests_are_decided_while_the_version_changes) {
  RaftGroup group(3, 0, with(cautious));
  group.elect();
  int decided = 0;
  int proposed = 0;
  for (const auto id : {1U, 2U, 3U}) {
    restart(group, id, newer);
    for (int i = 0; i < 500; ++i) {
      auto* leader = group.leader();
      if (leader != nullptr) {
        ++proposed;
        leader->propose(core::Tick{},
                        [&](const Result<Decided>& result) { decided += result ? 1 : 0; });
      }
      group.pass(1ms);
    }
    ASSERT_TRUE(group.eventually([&] { return decided == proposed; }));
  }

  EXPECT_TRUE(group.eventually([&] { return use(group, version_2); }));
  EXPECT_GT(proposed, 500);
}

TEST(RaftVersions, limits_of_a_newer_version_follow_the_raise) {
  auto options = with(older);
  options.limits.leases_max = 77;
  options.limits.state_bytes_max = 12345;
  RaftGroup group(3, 0, options);
  ASSERT_TRUE(group.eventually([&] { return group.at(1).state().limits.leases_max == 77; }));
  EXPECT_NE(group.at(1).state().limits.state_bytes_max, 12345U);

  for (const auto id : {1U, 2U, 3U}) {
    restart(group, id, newer);
  }

  EXPECT_TRUE(group.eventually([&] { return group.at(1).state().limits == options.limits; }));
}

// Such a member could not read the entries, and would stop.
TEST(RaftVersions, a_member_with_an_older_program_gets_no_entries_and_cannot_be_added) {
  RaftGroup group(3, 1);
  ASSERT_TRUE(group.eventually([&] { return use(group, version_2); }));
  group.crash(4);
  group.at(4).set_versions(older);
  group.boot(4);
  auto& leader = group.elect();

  const auto added = group.change(leader, RaftGroup::addition(4));

  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error(), Errc::invalid_argument);
  EXPECT_NE(added.error().detail.find("newest cluster version is 1"), std::string::npos)
      << added.error().detail;
  EXPECT_TRUE(group.at(4).durable().entries.empty());

  group.crash(4);
  group.at(4).set_versions(newer);
  group.boot(4);
  EXPECT_TRUE(group.change(leader, RaftGroup::addition(4)).has_value());
  EXPECT_EQ(group.at(4).state().version, version_2);
}

}  // namespace
}  // namespace tenure::server::raft
