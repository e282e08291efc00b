#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/raft/group.hpp"
#include "support/raft/leases.hpp"

namespace tenure::server::raft {
namespace {

using core::LeaseId;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ann;
using test::bob;
using test::RaftGroup;

core::Command grant(LeaseId lease, milliseconds ttl = std::chrono::minutes(10)) {
  return core::GrantLease{.id = lease, .ttl = ttl};
}

core::Command acquire(LeaseId lease, std::string name, std::uint64_t request = 1) {
  return core::Acquire{.lease = lease,
                       .request = core::RequestId{request},
                       .items = {{.name = std::move(name), .claim = core::Whole{}}}};
}

bool is_granted(const Result<Decided>& decided) {
  return decided.has_value() && std::holds_alternative<core::Granted>(decided->outcome);
}

/// Whether all running members have the same state.
bool agree(RaftGroup& group, std::size_t members) {
  std::optional<std::string> state;
  for (std::uint64_t id = 1; id <= members; ++id) {
    if (!group.at(id).is_up()) {
      continue;
    }
    const auto bytes = group.at(id).state_bytes();
    if (bytes != state.value_or(bytes)) {
      return false;
    }
    state = bytes;
  }
  return true;
}

// 002.095
TEST(RaftStore, three_members_elect_a_leader_and_apply_the_same_commands) {
  RaftGroup group(3);
  auto& leader = group.elect();

  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());
  EXPECT_TRUE(is_granted(group.propose(leader, acquire(ann, "a"))));

  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
  EXPECT_EQ(leader.state().revision, group.at(1).state().revision);
  EXPECT_GT(leader.state().revision.get(), 0U);
}

// R9: the first member whose timer fires is elected, without the slower half. With the default
// timeout of 300 ms a timer fires after at most 600 ms.
TEST(RaftStore, a_new_leader_is_there_within_two_election_timeouts) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    RaftGroup group(3);
    group.pass(milliseconds(seed * 7));
    auto& leader = group.elect();
    group.pass(milliseconds(100 + seed));

    const auto before = group.now();
    group.crash(leader.id().get());
    group.elect();

    EXPECT_LE(group.now() - before, milliseconds(620)) << "seed " << seed;
  }
}

// 002.107
TEST(RaftStore, an_acknowledged_command_survives_the_leader) {
  RaftGroup group(3);
  auto& first = group.elect();
  ASSERT_TRUE(group.propose(first, grant(ann)).has_value());
  const auto granted = group.propose(first, acquire(ann, "a"));
  ASSERT_TRUE(is_granted(granted));

  group.crash(first.id().get());
  auto& second = group.elect();

  EXPECT_NE(&second, &first);
  const auto again = group.propose(second, acquire(ann, "a"));
  ASSERT_TRUE(is_granted(again));
  EXPECT_EQ(std::get<core::Granted>(again->outcome).token,
            std::get<core::Granted>(granted->outcome).token)
      << "the remembered outcome";
  group.boot(first.id().get());
  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
}

// A thread that reads the clock, pauses for 5 s and then finds a new grant must not stamp it with
// the old time: the lease would expire 5 s early.
TEST(RaftStore, a_grant_that_arrives_during_a_drain_lasts_from_its_arrival) {
  RaftGroup group(3);
  auto& leader = group.elect();
  const auto deadline_of = [](const Result<Decided>& decided) {
    return std::get<core::LeaseGranted>(decided.value().outcome).deadline;
  };
  const auto before = deadline_of(group.propose(leader, grant(ann, seconds(10))));
  std::optional<Result<Decided>> decided;
  leader.when_asked_for_disk = [&] {
    group.jump(seconds(5));
    Proposal late{.command = grant(bob, seconds(10)),
                  .decided = [&](Result<Decided> result) { decided = std::move(result); }};
    static_cast<void>(leader.store().proposal_queue().push(late));
  };

  leader.store().drain(group.now());

  ASSERT_TRUE(group.eventually([&] { return decided.has_value(); }));
  EXPECT_GE(deadline_of(*decided) - before, seconds(5));
}

TEST(RaftStore, an_isolated_leader_ends_proposals_in_flight_as_unknown) {
  RaftGroup group(3);
  auto& old = group.elect();
  // The entry that sets the cluster version is written alone, before any other.
  ASSERT_TRUE(group.eventually([&] { return old.state().version == core::newest_version; }));
  group.cut_off(old.id().get());
  std::optional<Result<Decided>> decided;
  old.propose(grant(ann), [&](Result<Decided> result) { decided = std::move(result); });
  group.pass(milliseconds(10));
  ASSERT_FALSE(decided.has_value()) << "no reply without a majority";

  ASSERT_TRUE(group.eventually([&] { return decided.has_value(); }));

  ASSERT_FALSE(decided->has_value());
  EXPECT_EQ(decided->error().code, Errc::unavailable);
  EXPECT_NE(decided->error().detail.find("same request id"), std::string::npos);
  auto& next = group.elect();
  group.heal();
  ASSERT_TRUE(group.propose(next, grant(bob)).has_value());
  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
  EXPECT_EQ(next.state().leases.all().size(), 1U) << "the uncommitted entry has no effect";
}

TEST(RaftStore, a_follower_refuses_at_once_and_names_the_leader) {
  RaftGroup group(3);
  auto& leader = group.elect();
  auto& follower = group.at(leader.id().get() % 3 + 1);
  group.pass(milliseconds(100));
  const auto before = group.now();

  const auto decided = group.propose(follower, grant(ann));
  const auto read = group.read(follower);

  EXPECT_LE(group.now() - before, milliseconds(2));
  ASSERT_FALSE(decided.has_value());
  EXPECT_EQ(decided.error().code, Errc::unavailable);
  const auto address = "client" + std::to_string(leader.id().get()) + ":7420";
  EXPECT_NE(decided.error().detail.find(address), std::string::npos) << decided.error().detail;
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Errc::unavailable);
  EXPECT_EQ(follower.store().position().leader_address, address);
  EXPECT_EQ(follower.store().position().leader, leader.id().get());
}

TEST(RaftStore, reads_on_the_leader_see_what_was_acknowledged) {
  RaftGroup group(3);
  auto& leader = group.elect();
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());

  const auto read = group.read(leader);

  ASSERT_TRUE(read.has_value()) << read.error().detail;
  EXPECT_EQ(*read, leader.state_bytes());
}

// Without contact to the majority, a deposed leader is still in the role of leader.
TEST(RaftStore, a_deposed_leader_refuses_reads_and_may_still_be_peeked_at) {
  RaftGroup group(3);
  auto& old = group.elect();
  group.cut_off(old.id().get());
  bool was_read = false;
  bool was_refused = false;
  old.store().read(
      [&](const Result<View>& view) {
        was_read = view.has_value();
        was_refused = !view.has_value() && view.error() == Errc::unavailable;
      },
      group.now());

  group.pass(milliseconds(310));
  bool was_peeked = false;
  old.store().peek([&](const Result<View>& view) { was_peeked = view.has_value(); }, group.now());

  EXPECT_FALSE(was_read);
  EXPECT_TRUE(was_refused) << "within the election timeout";
  EXPECT_TRUE(was_peeked);
}

TEST(RaftStore, many_reads_share_one_round) {
  RaftGroup group(3);
  auto& leader = group.elect();
  group.pass(milliseconds(5));
  std::size_t answers = 0;

  for (int i = 0; i < 100; ++i) {
    leader.store().read([&](const Result<View>& view) { answers += view ? 1 : 0; }, group.now());
  }
  group.pass(milliseconds(5));

  EXPECT_EQ(answers, 100U) << "two rounds of two milliseconds";
}

TEST(RaftStore, too_many_reads_are_refused) {
  RaftGroup group(3, 0, {.reads_max = 2});
  auto& leader = group.elect();
  int refused = 0;

  for (int i = 0; i < 3; ++i) {
    leader.store().read(
        [&](const Result<View>& view) {
          refused += !view && view.error() == Errc::resource_exhausted ? 1 : 0;
        },
        group.now());
  }
  group.pass(milliseconds(10));

  EXPECT_EQ(refused, 1);
}

// 002-B23: cluster time continues from the last stamp, so time without a leader does not count.
TEST(RaftStore, a_leaderless_gap_never_shortens_a_lease) {
  RaftGroup group(3);
  auto& first = group.elect();
  ASSERT_TRUE(group.propose(first, grant(ann, seconds(5))).has_value());
  group.pass(milliseconds(50));
  const auto stopped = first.id().get();
  const auto other = stopped % 3 + 1;

  group.crash(stopped);
  group.crash(other);
  group.pass(seconds(60));
  group.boot(other);
  auto& second = group.elect();

  EXPECT_EQ(second.state().leases.all().size(), 1U);
  group.pass(seconds(4));
  EXPECT_EQ(second.state().leases.all().size(), 1U) << "four of five seconds";
  EXPECT_TRUE(group.eventually([&] { return second.state().leases.all().size() == 0; }));
}

// Expiry is a log entry, which needs a majority.
TEST(RaftStore, a_paused_leader_can_neither_expire_nor_grant) {
  RaftGroup group(3);
  auto& old = group.elect();
  ASSERT_TRUE(group.propose(old, grant(ann, seconds(2))).has_value());
  ASSERT_TRUE(group.propose(old, grant(bob)).has_value());
  ASSERT_TRUE(is_granted(group.propose(old, acquire(ann, "a"))));
  group.cut_off(old.id().get());
  const auto revision = old.state().revision;

  // Reads at once after the pause, before any message of another member.
  bool is_decided = false;
  old.propose(acquire(bob, "b"), [&](const Result<Decided>& decided) {
    is_decided = true;
    EXPECT_FALSE(decided.has_value());
  });
  auto& next = group.elect();
  for (int i = 0; i < 40; ++i) {
    group.pass(milliseconds(50));
    ASSERT_TRUE(group.propose(next, core::RenewLeases{.leases = {ann}}).has_value());
  }

  EXPECT_TRUE(is_decided);
  EXPECT_EQ(old.state().revision, revision);
  group.pass(seconds(1));
  EXPECT_EQ(old.state().leases.all().size(), 2U) << "an isolated leader expires no lease";
  group.heal();
  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
  EXPECT_EQ(next.state().leases.all().size(), 2U) << "the lease was renewed in time";
}

TEST(RaftStore, a_lagging_member_gets_a_snapshot_and_continues) {
  RaftGroup group(3, 0, {.peer_entries_max = 4, .trailing_entries = 8});
  auto& leader = group.elect();
  const auto behind = leader.id().get() % 3 + 1;
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());
  group.crash(behind);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(group.propose(leader, acquire(ann, "lock" + std::to_string(i), i + 1)).has_value());
  }
  ASSERT_TRUE(group.take_snapshot(leader).has_value());
  ASSERT_GT(leader.store().position().first_index, 1U);

  group.boot(behind);

  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
  EXPECT_GE(group.snapshots_sent, 1U);
  EXPECT_LE(group.snapshots_sent, 2U) << "not one snapshot per heartbeat";
  EXPECT_GE(group.at(behind).durable().snapshot->mark.index.get(), 50U);
  group.crash(leader.id().get());
  auto& next = group.elect();
  EXPECT_TRUE(is_granted(group.propose(next, acquire(ann, "more", 100))));
}

// The state in memory is intact, and would be lost when the process exits.
TEST(RaftStore, a_snapshot_that_cannot_be_read_is_replaced_and_the_peer_gets_the_new_one) {
  RaftGroup group(3, 0, {.peer_entries_max = 4, .trailing_entries = 8});
  auto& leader = group.elect();
  const auto behind = leader.id().get() % 3 + 1;
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());
  group.crash(behind);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(group.propose(leader, acquire(ann, "lock" + std::to_string(i), i + 1)).has_value());
  }
  const auto bad = group.take_snapshot(leader);
  ASSERT_TRUE(bad.has_value());
  leader.is_snapshot_unreadable = true;

  group.boot(behind);

  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
  EXPECT_TRUE(leader.leads());
  EXPECT_GT(group.at(behind).durable().snapshot->mark.index.get(), *bad);
  EXPECT_EQ(std::ranges::count_if(leader.reports,
                                  [](const std::string& report) {
                                    return report.find("snapshot_unreadable") != std::string::npos;
                                  }),
            1)
      << "reported once";
}

// The reserve of the last segment is for renewals and releases; commands of the store wait.
TEST(RaftStore, limits_wait_for_space_and_are_not_forgotten) {
  core::Limits limits;
  limits.leases_max = 7;
  RaftGroup group(3, 0, {.limits = limits});
  for (std::uint64_t id = 1; id <= 3; ++id) {
    group.at(id).space = {.left = 0, .is_next_ready = false, .is_short = true};
  }
  auto& leader = group.elect();
  group.pass(seconds(5));
  ASSERT_NE(leader.state().limits, limits);

  leader.space = {.left = 1 << 20, .is_next_ready = true};

  EXPECT_TRUE(group.eventually([&] { return leader.state().limits == limits; }));
}

// Found by tests/fault: the member lagged until the leader changed, without any log event.
TEST(RaftStore, a_member_that_lost_entries_is_reported_and_repaired) {
  RaftGroup group(3);
  auto& leader = group.elect();
  const auto forgetful = leader.id().get() % 3 + 1;
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(group.propose(leader, acquire(ann, "lock" + std::to_string(i), i + 1)).has_value());
  }
  ASSERT_TRUE(group.eventually([&] { return agree(group, 3); }));
  group.crash(forgetful);
  group.at(forgetful).durable().entries.pop_back();
  group.at(forgetful).durable().entries.pop_back();

  group.boot(forgetful);

  EXPECT_TRUE(group.eventually([&] { return agree(group, 3); }));
  EXPECT_TRUE(std::ranges::any_of(
      leader.reports, [](const auto& event) { return event.contains("member_lost_entries"); }));
  EXPECT_TRUE(is_granted(group.propose(group.elect(), acquire(ann, "more", 100))));
}

TEST(RaftStore, a_leadership_transfer_takes_a_few_round_trips) {
  RaftGroup group(3);
  auto& old = group.elect();
  ASSERT_TRUE(group.propose(old, grant(ann)).has_value());
  const auto to = old.id().get() % 3 + 1;
  const auto before = group.now();

  const auto handed = group.transfer(old, to);
  auto& next = group.elect();

  EXPECT_TRUE(handed.has_value());
  EXPECT_EQ(next.id().get(), to);
  EXPECT_LE(group.now() - before, milliseconds(20));
  EXPECT_TRUE(is_granted(group.propose(next, acquire(ann, "a"))));
}

TEST(RaftStore, a_transfer_to_a_dead_member_is_given_up_and_the_leader_goes_on) {
  RaftGroup group(3);
  auto& leader = group.elect();
  const auto dead = leader.id().get() % 3 + 1;
  group.crash(dead);
  // The member lacks an entry, so the leader waits for it to catch up.
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());

  const auto handed = group.transfer(leader, dead);

  ASSERT_FALSE(handed.has_value());
  EXPECT_EQ(handed.error().code, Errc::timed_out);
  EXPECT_TRUE(is_granted(group.propose(leader, acquire(ann, "a"))));
}

TEST(RaftStore, a_transfer_to_an_unknown_member_is_refused) {
  RaftGroup group(3);
  auto& leader = group.elect();

  EXPECT_EQ(group.transfer(leader, 9).error().code, Errc::invalid_argument);
  EXPECT_EQ(group.transfer(leader, leader.id().get()).error().code, Errc::invalid_argument);
}

TEST(RaftStore, a_leader_transfers_the_leadership_before_it_stops) {
  RaftGroup group(3);
  auto& old = group.elect();
  ASSERT_TRUE(group.propose(old, grant(ann)).has_value());
  const auto before = group.now();
  bool is_stopped = false;

  old.store().stop([&] { is_stopped = true; }, group.now());
  ASSERT_TRUE(group.eventually([&] { return is_stopped; }));
  group.crash(old.id().get());
  auto& next = group.elect();

  EXPECT_LE(group.now() - before, milliseconds(50));
  EXPECT_TRUE(is_granted(group.propose(next, acquire(ann, "a"))));
}

TEST(RaftStore, a_leader_without_peers_can_stop) {
  RaftGroup group(3);
  auto& leader = group.elect();
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value());
  group.cut_off(leader.id().get());
  const auto before = group.now();
  bool is_stopped = false;

  leader.store().stop([&] { is_stopped = true; }, group.now());

  EXPECT_TRUE(group.eventually([&] { return is_stopped; }));
  EXPECT_LE(group.now() - before, milliseconds(500));
}

// A snapshot counts only when the log up to it is durable, which never happens here.
TEST(RaftStore, a_member_with_a_blocked_disk_can_stop) {
  RaftGroup group(3);
  auto& leader = group.elect();
  leader.is_disk_stuck = true;
  ASSERT_TRUE(group.propose(leader, grant(ann)).has_value()) << "the two others are a majority";
  const auto before = group.now();
  bool is_stopped = false;

  leader.store().stop([&] { is_stopped = true; }, group.now());

  EXPECT_TRUE(group.eventually([&] { return is_stopped; }));
  EXPECT_LE(group.now() - before, milliseconds(500));
}

TEST(RaftStore, a_group_of_one_decides_at_once_and_has_no_timer) {
  RaftGroup group(1);
  auto& alone = group.at(1);
  group.pass(milliseconds(5));

  ASSERT_TRUE(alone.leads());
  EXPECT_TRUE(group.propose(alone, core::Tick{}).has_value());
  EXPECT_TRUE(group.read(alone).has_value());
  EXPECT_EQ(alone.store().deadline(), std::nullopt);
  EXPECT_EQ(group.change(alone, RaftGroup::addition(2)).error().code, Errc::unsupported);
  EXPECT_EQ(group.transfer(alone, 0).error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace tenure::server::raft
