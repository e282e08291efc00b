#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

constexpr ResourceId extra(std::uint64_t number) {
  return ResourceId{1000 + number};
}

void hold_extra(const LockManager& locks, TxnId txn, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t number = from; number < from + count; ++number) {
    locks.try_acquire(txn, extra(number), exclusive).value();
  }
}

// 004.033, 004.053, 004-B16
TEST(VictimPolicies, the_youngest_is_the_victim_by_default) {
  EXPECT_TRUE(gives_way(close_cycle(LockManager(), t1, t2), t2));
  EXPECT_TRUE(gives_way(close_cycle(LockManager(), t2, t1), t2));
}

// 004.053, 004-B16
TEST(VictimPolicies, the_oldest_is_the_victim_if_the_manager_is_configured_so) {
  const LockManagerOptions options{.victim = VictimPolicy::oldest};

  EXPECT_TRUE(gives_way(close_cycle(LockManager(options), t1, t2), t1));
  EXPECT_TRUE(gives_way(close_cycle(LockManager(options), t2, t1), t1));
}

// 004-B15
TEST(VictimPolicies, the_member_with_the_fewest_locks_is_the_victim) {
  const LockManager locks({.victim = VictimPolicy::fewest_locks});
  hold_extra(locks, t2, 0, 5);

  EXPECT_TRUE(gives_way(close_cycle(locks), t1));
}

// 004-B15
TEST(VictimPolicies, the_member_with_the_most_locks_is_the_victim) {
  const LockManager locks({.victim = VictimPolicy::most_locks});
  hold_extra(locks, t1, 0, 5);

  EXPECT_TRUE(gives_way(close_cycle(locks), t1));
}

// 004-B15: t1 holds no more than t2, but it held more before.
TEST(VictimPolicies, the_member_with_the_least_work_is_the_victim) {
  const LockManager locks({.victim = VictimPolicy::least_work});
  const Transaction one = locks.begin({.id = t1});
  const Transaction two = locks.begin({.id = t2});
  hold_extra(locks, t2, 0, 5);
  two.unlock_all();

  EXPECT_TRUE(gives_way(close_cycle(locks), t1));
}

// 004-B15
TEST(VictimPolicies, the_member_with_the_lowest_priority_is_the_victim) {
  const LockManager locks({.victim = VictimPolicy::lowest_priority});
  const Transaction one = locks.begin({.id = t1, .priority = -5});
  const Transaction two = locks.begin({.id = t2, .priority = 3});

  EXPECT_TRUE(gives_way(close_cycle(locks), t1));
}

// 004-B15
TEST(VictimPolicies, ties_are_broken_towards_the_youngest) {
  for (const VictimPolicy policy : {VictimPolicy::fewest_locks, VictimPolicy::most_locks,
                                    VictimPolicy::least_work, VictimPolicy::lowest_priority}) {
    EXPECT_TRUE(gives_way(close_cycle(LockManager({.victim = policy})), t2)) << to_string(policy);
  }
}

// 004-B16: the document hard-wired Youngest. t1 would park if it were ignored.
TEST(VictimPolicies, the_policy_of_the_wait_overrides_that_of_the_manager) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  WaitOptions wait = with_test_timeout();
  wait.victim = VictimPolicy::oldest;

  EXPECT_TRUE(refused(locks.acquire(t1, row_b, exclusive, wait), Errc::deadlock));
  EXPECT_EQ(locks.waiting_count(), 1U);
}

// 004-B15: a manager's own choice; here the one in the middle.
TEST(VictimPolicies, a_custom_policy_can_choose_any_member) {
  LockManagerOptions options{.victim = VictimPolicy::oldest};
  options.choose_victim = [](std::span<const DeadlockMember>) { return t2; };
  const LockManager locks(options);
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  locks.try_acquire(t3, row_c, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t2, row_c, exclusive).is_waiting());

  EXPECT_TRUE(gives_way(locks.request(t3, row_a, exclusive), t2));
}

// 004-B15: a wrong answer must not leave the deadlock standing.
TEST(VictimPolicies, a_chosen_transaction_that_is_no_member_means_the_youngest) {
  LockManagerOptions options{.victim = VictimPolicy::oldest};
  options.choose_victim = [](std::span<const DeadlockMember>) { return TxnId{4711}; };

  EXPECT_TRUE(gives_way(close_cycle(LockManager(options)), t2));
}

// 004-B15: what a policy is shown.
TEST(VictimPolicies, a_policy_sees_age_locks_work_priority_and_wait_of_each_member) {
  const auto seen = std::make_shared<std::vector<DeadlockMember>>();
  LockManagerOptions options;
  options.choose_victim = [seen](std::span<const DeadlockMember> members) {
    seen->assign(members.begin(), members.end());
    return members.front().txn;
  };
  const LockManager locks(options);
  const Transaction one = locks.begin({.id = t1, .age = 77, .priority = 9});
  hold_extra(locks, t1, 0, 2);
  locks.release(t1, extra(0)).value();

  (void)close_cycle(locks);

  ASSERT_EQ(seen->size(), 2U);
  const DeadlockMember& member = (*seen)[0].txn == t1 ? (*seen)[0] : (*seen)[1];
  EXPECT_EQ(member.txn, t1);
  EXPECT_EQ(member.age, 77U);
  EXPECT_EQ(member.priority, 9);
  EXPECT_EQ(member.locks, 2U);
  EXPECT_EQ(member.work, 3U);
  EXPECT_EQ(member.waits_for, "X on resource 102");
}

// A policy that calls the manager must not deadlock on a latch of it.
TEST(VictimPolicies, a_policy_may_call_the_manager) {
  const auto table = std::make_shared<std::optional<LockManager>>();
  const auto waiting = std::make_shared<std::size_t>(0);
  LockManagerOptions options;
  options.choose_victim = [table, waiting](std::span<const DeadlockMember> members) {
    *waiting = (*table)->snapshot().locks.size() + (*table)->waiting_count();
    return members.back().txn;
  };
  table->emplace(options);

  EXPECT_NE(close_cycle(**table).deadlock(), nullptr);

  EXPECT_GT(*waiting, 0U);
  table->reset();
}

// 004-B15: the document's victim came back as the youngest, to be the victim again.
TEST(Ages, a_restarted_transaction_keeps_its_age) {
  const LockManager locks;
  const Transaction old = locks.begin();
  const Transaction young = locks.begin();
  const std::uint64_t age = old.age();

  old.restart();

  EXPECT_EQ(old.age(), age);
  EXPECT_LT(old.age(), young.age());
  EXPECT_TRUE(gives_way(close_cycle(locks, old.id(), young.id()), young.id()));
}

// 004-B15: a successor with a larger id and the age of the first try is not the youngest.
TEST(Ages, a_successor_inherits_the_age_it_is_given) {
  const LockManager locks;
  const Transaction successor = locks.begin({.id = TxnId{900}, .age = 1});
  const Transaction other = locks.begin({.id = TxnId{500}});

  EXPECT_TRUE(gives_way(close_cycle(locks, successor.id(), other.id()), other.id()));
}

// 004.055
TEST(Ages, the_id_is_the_default_age) {
  const LockManager locks;

  EXPECT_EQ(locks.begin({.id = TxnId{42}}).age(), 42U);
}

// 004-B15: the work done before a restart still counts.
TEST(Ages, the_work_survives_a_restart) {
  const LockManager locks({.victim = VictimPolicy::least_work});
  const Transaction one = locks.begin({.id = t1});
  const Transaction two = locks.begin({.id = t2});
  hold_extra(locks, t2, 0, 3);
  two.restart();

  EXPECT_TRUE(gives_way(close_cycle(locks), t1));
}

// 004-B8
TEST(RecentDeadlocks, a_report_contains_the_waits_and_the_time_of_resolution) {
  const LockManager locks;
  const auto before = std::chrono::system_clock::now();
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  const auto reports = locks.recent_deadlocks();

  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].deadlock.victim, t2);
  ASSERT_EQ(reports[0].members.size(), 2U);
  EXPECT_EQ(reports[0].members[0].txn, reports[0].deadlock.cycle[0]);
  EXPECT_EQ(reports[0].members[1].txn, reports[0].deadlock.cycle[1]);
  EXPECT_GE(reports[0].resolved_at, before);
  EXPECT_LE(reports[0].resolved_at, std::chrono::system_clock::now());
}

TEST(RecentDeadlocks, a_report_prints_as_a_readable_sentence) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  const std::string text = to_string(locks.recent_deadlocks().at(0));

  EXPECT_NE(text.find("X on resource 102"), std::string::npos) << text;
  EXPECT_NE(text.find("X on resource 101"), std::string::npos) << text;
  EXPECT_NE(text.find("victim: 2"), std::string::npos) << text;
}

/// One deadlock after another, each between `pair` and `pair` + 1.
void resolve_deadlocks(const LockManager& locks, std::uint64_t count) {
  for (std::uint64_t pair = 10; pair < 10 + 2 * count; pair += 2) {
    ASSERT_TRUE(gives_way(close_cycle(locks, TxnId{pair}, TxnId{pair + 1}), TxnId{pair + 1}));
    locks.release_all(TxnId{pair + 1});
    locks.release_all(TxnId{pair});
  }
}

// A ring without a limit would eat the memory of a busy server.
TEST(RecentDeadlocks, the_last_reports_are_kept_oldest_first) {
  const LockManager locks({.deadlocks_kept = 2});

  resolve_deadlocks(locks, 3);

  const auto reports = locks.recent_deadlocks();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].deadlock.victim, TxnId{13});
  EXPECT_EQ(reports[1].deadlock.victim, TxnId{15});
}

TEST(RecentDeadlocks, the_last_64_reports_are_kept_by_default) {
  const LockManager locks;

  resolve_deadlocks(locks, 70);

  EXPECT_EQ(locks.recent_deadlocks().size(), 64U);
}

TEST(RecentDeadlocks, no_reports_are_kept_with_a_limit_of_zero) {
  const LockManager locks({.deadlocks_kept = 0});

  resolve_deadlocks(locks, 1);

  EXPECT_TRUE(locks.recent_deadlocks().empty());
}

}  // namespace
}  // namespace tenure::test
