#include "support/core/cost.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/deadlock.hpp"
#include "core/deadlock_set.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

/// Large states, in which a step that looks at every pair would be seen at once: each step may
/// visit only a few times as much as there is.
class CoreCost : public CoreTest, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr LeaseId holder{1'000'001};
  static constexpr LeaseId other{1'000'002};
  static constexpr LeaseId start{1'000'003};
  static constexpr std::uint64_t factor = 8;

  static LeaseId waiter(std::uint64_t i) { return LeaseId{i + 1}; }

  void SetUp() override {
    for (std::uint64_t i = 0; i < GetParam(); ++i) {
      run(GrantLease{.id = waiter(i), .ttl = seconds(30)});
    }
    for (const auto lease : {holder, other, start}) {
      run(GrantLease{.id = lease, .ttl = seconds(60)});
    }
  }

  Applied run(const Command& command, ClusterTime after = {}) {
    return big.apply(command, {.time = big.state().now + after});
  }
  Applied want(LeaseId lease, std::vector<Item> items,
               SelfConflict self_conflict = SelfConflict::refuse) {
    return run(Acquire{.lease = lease,
                       .request = fresh(),
                       .items = std::move(items),
                       .self_conflict = self_conflict});
  }
  /// `other` waits for `start`, so that a wait of `start` leads to a search.
  void make_start_waited_for() {
    ASSERT_TRUE(std::holds_alternative<Granted>(want(start, {lock("z")}).outcome));
    ASSERT_TRUE(is_queued(want(other, {lock("z")}).outcome));
  }
  void expect_linear(const Applied& step) const {
    EXPECT_LE(step.visits, factor * size_of(big.state(), step));
    EXPECT_GT(step.visits, 0U);
  }
  void expect_sound() const {
    EXPECT_EQ(invariants::check(big.state()), std::vector<std::string>{});
  }

  static std::string key(std::uint64_t i) {
    auto digits = std::to_string(i);
    return std::string(8 - digits.size(), '0') + digits;
  }
  static Item span(std::uint64_t first, std::uint64_t last, LockMode mode = LockMode::exclusive) {
    return keys("space", key(first), key(last), mode);
  }

  StateMachine big;
};

INSTANTIATE_TEST_SUITE_P(Waiters, CoreCost, ::testing::Values(2000, 6000, 10'000));

TEST_P(CoreCost, a_search_through_the_waiters_of_one_range_is_linear) {
  want(holder, {span(0, 9)});
  for (std::uint64_t i = 0; i + 1 < GetParam(); ++i) {
    expect_linear(want(waiter(i), {span(0, 9)}));
  }
  make_start_waited_for();

  const auto step = want(start, {span(0, 9)});

  EXPECT_TRUE(is_queued(step.outcome));
  EXPECT_GT(step.visits, GetParam()) << "there was no search";
  expect_linear(step);
}

// Each waiter has a range of its own, and half of the others overlap it.
TEST_P(CoreCost, a_search_through_the_waiters_of_overlapping_ranges_is_linear) {
  want(holder, {span(0, 2 * GetParam())});
  for (std::uint64_t i = 0; i + 1 < GetParam(); ++i) {
    const auto first = (i * 7919) % GetParam();
    want(waiter(i), {span(first, first + (GetParam() / 2),
                          i % 3 == 0 ? LockMode::shared : LockMode::exclusive)});
  }
  make_start_waited_for();

  const auto step = want(start, {span(0, 2 * GetParam())});

  EXPECT_TRUE(is_queued(step.outcome));
  expect_linear(step);
}

// The search begins in the middle of the queue, where most of what overlaps is behind. Each of
// these waits takes a search, so there are fewer.
TEST_P(CoreCost, claims_behind_a_wait_are_not_visited_repeatedly) {
  const auto waiters = GetParam() / 10;
  want(holder, {span(0, 2 * waiters)});
  for (std::uint64_t i = 0; i < waiters; ++i) {
    want(waiter(i), {i % 2 == 0 ? span(i, i + 1) : span(i, 2 * waiters)}, SelfConflict::wait);
  }
  // Each waiter waits for a lock of the next one, too: they are reached in the order of the queue.
  for (std::uint64_t i = 1; i < waiters; ++i) {
    want(waiter(i), {lock("own " + key(i))});
  }
  for (std::uint64_t i = 0; i < waiters / 2; ++i) {
    expect_linear(want(waiter(2 * i), {lock("own " + key((2 * i) + 1))}, SelfConflict::wait));
  }
  make_start_waited_for();
  want(waiter(0), {lock("first")});

  expect_linear(want(start, {lock("first")}));
}

TEST_P(CoreCost, a_search_through_the_waiters_of_one_name_is_linear) {
  want(holder, {lock("name")});
  for (std::uint64_t i = 0; i + 1 < GetParam(); ++i) {
    want(waiter(i), {lock("name")});
  }
  make_start_waited_for();

  const auto step = want(start, {lock("name")});

  EXPECT_TRUE(is_queued(step.outcome));
  expect_linear(step);
}

// One lease waits for the same name many times, between waits of others.
TEST_P(CoreCost, a_search_from_many_waits_of_one_lease_is_linear) {
  want(holder, {lock("name")});
  make_start_waited_for();
  for (std::uint64_t i = 0; i < GetParam() / 10; ++i) {
    want(waiter(i), {lock("name")});
    expect_linear(want(start, {lock("name")}, SelfConflict::wait));
  }
}

TEST_P(CoreCost, a_search_through_the_waiters_of_a_semaphore_is_linear) {
  want(holder, {permits("semaphore", 2, 2)});
  make_start_waited_for();
  for (std::uint64_t i = 0; i + 2 < GetParam(); ++i) {
    want(waiter(i), {permits("semaphore", 1, 2)});
  }
  // A cycle, but no deadlock: the holder of the permits does not wait.
  want(waiter(0), {lock("z")});

  const auto step = want(start, {permits("semaphore", 1, 2)});

  EXPECT_TRUE(is_queued(step.outcome));
  EXPECT_GT(step.visits, 2 * GetParam()) << "there was no search for deadlocked leases";
  expect_linear(step);
}

// The leases turn out not to be deadlocked one by one, and each releases a permit of one semaphore.
// A search that visits the semaphore after each of them is quadratic.
TEST_P(CoreCost, a_search_for_deadlocked_leases_visits_the_holders_of_a_semaphore_once) {
  const auto capacity = static_cast<std::uint32_t>(GetParam());
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {permits("semaphore", 1, capacity), lock("own " + key(i))});
  }
  want(holder, {lock("own " + key(GetParam()))});
  for (auto i = GetParam(); i-- > 0;) {
    want(waiter(i), {lock("own " + key(i + 1))});
  }
  want(start, {lock("z")});
  want(waiter(0), {lock("z")});

  const auto step = want(start, {permits("semaphore", 1, capacity)});

  EXPECT_TRUE(is_queued(step.outcome)) << "waiter 0 waits for it, but the others do not";
  EXPECT_GT(step.visits, 2 * GetParam()) << "there was no search for deadlocked leases";
  expect_linear(step);
}

// decode() rejects a snapshot that contains a deadlock, so it searches the whole state.
TEST_P(CoreCost, a_search_for_deadlocked_leases_in_the_whole_state_is_linear) {
  const auto capacity = static_cast<std::uint32_t>(GetParam());
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {permits("semaphore", 1, capacity), span(i, i + 1), lock("own " + key(i))});
  }
  want(holder, {span(GetParam(), GetParam() + 1), lock("own " + key(GetParam()))});
  for (auto i = GetParam(); i-- > 0;) {
    want(waiter(i), {span(i + 1, i + 2), lock("own " + key(i + 1))});
  }
  std::set<LeaseId> all;
  for (const auto& [ticket, wait] : big.state().locks.waits()) {
    all.insert(wait->lease);
  }
  Visits visits;
  VisitBudget budget(visits, std::numeric_limits<std::uint64_t>::max());

  const auto deadlocked = find_deadlocked(big.state().locks, all, budget);

  ASSERT_TRUE(deadlocked);
  EXPECT_TRUE(deadlocked->leases.empty());
  EXPECT_EQ(all.size(), GetParam());
  EXPECT_LE(visits.total(), factor * size_of(big.state(), {}));
}

TEST_P(CoreCost, a_search_for_deadlocked_leases_visits_the_waiters_of_a_space_once) {
  const auto capacity = static_cast<std::uint32_t>(GetParam());
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {permits("semaphore", 1, capacity), span(i, i + 1)});
  }
  want(holder, {span(GetParam(), GetParam() + 1)});
  for (auto i = GetParam(); i-- > 0;) {
    want(waiter(i), {span(i + 1, i + 2)});
  }
  want(start, {lock("z")});
  want(waiter(0), {lock("z")});

  const auto step = want(start, {permits("semaphore", 1, capacity)});

  EXPECT_TRUE(is_queued(step.outcome));
  EXPECT_GT(step.visits, 2 * GetParam()) << "there was no search for deadlocked leases";
  expect_linear(step);
}

TEST_P(CoreCost, readers_of_a_name_are_admitted_in_linear_time) {
  const auto token = token_of(want(holder, {lock("name")}).outcome);
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {lock("name", LockMode::shared)});
    want(waiter(i), {lock("own " + key(i))});
  }
  // Some of them wait elsewhere, too. Not all: each such wait searches the whole graph.
  want(other, {lock("busy")});
  for (std::uint64_t i = 0; i < 200; ++i) {
    want(waiter(i), {lock("busy")});
  }

  const auto step = run(Release{.lease = holder, .request = fresh(), .what = token});

  EXPECT_EQ(step.notices.size(), GetParam());
  expect_linear(step);
  expect_sound();
}

TEST_P(CoreCost, readers_of_one_range_are_admitted_in_linear_time) {
  const auto token = token_of(want(holder, {span(0, 9)}).outcome);
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {span(0, 9, LockMode::shared)});
  }

  const auto step = run(Release{.lease = holder, .request = fresh(), .what = token});

  EXPECT_EQ(step.notices.size(), GetParam());
  expect_linear(step);
}

TEST_P(CoreCost, readers_of_overlapping_ranges_are_admitted_in_linear_time) {
  const auto token = token_of(want(holder, {span(0, 2 * GetParam())}).outcome);
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i),
         {span(i, i + (GetParam() / 2), i % 100 == 99 ? LockMode::exclusive : LockMode::shared)});
  }

  const auto step = run(Release{.lease = holder, .request = fresh(), .what = token});

  EXPECT_GE(step.notices.size(), 99U);
  expect_linear(step);
  expect_sound();
}

// Each waits at a second place, where the queue is as long.
TEST_P(CoreCost, waiters_of_two_names_are_admitted_in_linear_time) {
  const auto token = token_of(want(holder, {lock("a")}).outcome);
  want(other, {lock("b", LockMode::intention_exclusive)});
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {lock("a", LockMode::intention_shared), lock("b", LockMode::shared)});
  }

  const auto step = run(Release{.lease = holder, .request = fresh(), .what = token});

  EXPECT_TRUE(step.notices.empty());
  expect_linear(step);
}

// Each freed lock has a waiter that waits in one common queue, too. A search of that queue for each
// freed lock is quadratic.
TEST_P(CoreCost, the_common_queue_of_the_waiters_of_many_freed_names_is_read_once) {
  want(other, {lock("common", LockMode::shared)});
  want(start, {lock("common", LockMode::intention_exclusive)});
  for (std::uint64_t i = 0; i + 1 < GetParam(); ++i) {
    want(holder, {lock("own " + key(i))});
    want(waiter(i), {lock("common", LockMode::shared), lock("own " + key(i))});
  }

  const auto step = run(RevokeLease{holder});

  EXPECT_TRUE(step.notices.empty());
  EXPECT_EQ(step.losses.size(), GetParam() - 1);
  expect_linear(step);
  expect_sound();
}

// Fewer, because each of these requests looks at the ranges of all others.
TEST_P(CoreCost, the_common_space_of_the_waiters_of_many_freed_names_is_read_once) {
  want(other, {span(0, 9, LockMode::shared)});
  want(start, {span(5, 9)});
  for (std::uint64_t i = 0; i < GetParam() / 4; ++i) {
    want(holder, {lock("own " + key(i))});
    want(waiter(i), {span(0, 9, LockMode::shared), lock("own " + key(i))});
  }

  const auto step = run(RevokeLease{holder});

  EXPECT_TRUE(step.notices.empty());
  expect_linear(step);
  expect_sound();
}

// A wait is granted once, at the first of its freed locks.
TEST_P(CoreCost, waiters_of_many_freed_names_are_admitted_in_linear_time) {
  constexpr std::uint64_t names = 32;
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < names; ++i) {
    want(holder, {lock("name " + key(i))});
    items.push_back(lock("name " + key(i), LockMode::shared));
  }
  for (std::uint64_t i = 0; i < GetParam() / names; ++i) {
    want(waiter(i), items);
  }

  const auto step = run(RevokeLease{holder});

  EXPECT_EQ(step.notices.size(), GetParam() / names);
  expect_linear(step);
}

TEST_P(CoreCost, a_request_for_many_ranges_visits_each_claim_of_the_space_twice) {
  want(holder, {span(0, 10'000)});
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {span(0, 10'000, LockMode::intention_shared)});
  }
  run(RevokeLease{holder});
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < Limits{}.items_max; ++i) {
    items.push_back(span(10 * i, (10 * i) + 5, LockMode::intention_shared));
  }

  const auto granted = want(start, items);
  items.back() = span(9000, 9001);
  const auto waiting = want(other, items);

  EXPECT_TRUE(std::holds_alternative<Granted>(granted.outcome));
  expect_linear(granted);
  EXPECT_TRUE(is_queued(waiting.outcome));
  expect_linear(waiting);
  expect_sound();
}

// decode() checks the invariants of a snapshot.
TEST_P(CoreCost, the_invariants_of_overlapping_ranges_are_checked_in_linear_time) {
  want(holder, {span(0, 9)});
  for (std::uint64_t i = 0; i < GetParam() / 2; ++i) {
    want(waiter(i), {span(0, 9, LockMode::shared)});
  }
  run(RevokeLease{holder});
  for (auto i = GetParam() / 2; i < GetParam(); ++i) {
    want(waiter(i), {span(0, 9)});
  }
  Visits visits;

  EXPECT_EQ(invariants::check(big.state(), visits), std::vector<std::string>{});

  EXPECT_GE(visits.total(), GetParam()) << "the ranges were not visited";
  EXPECT_LE(visits.total(), factor * size_of(big.state(), {}));
}

// Ten leases, because each wait of a lease costs a look at its other waits.
TEST_P(CoreCost, the_expiry_of_leases_with_many_waits_is_linear) {
  constexpr std::uint64_t leases = 10;
  const auto brief = [](std::uint64_t i) { return LeaseId{2'000'000 + (i % leases)}; };
  for (std::uint64_t i = 0; i < leases; ++i) {
    run(GrantLease{.id = brief(i), .ttl = seconds(1)});
  }
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(holder, {lock("name " + key(i), LockMode::shared)});
    want(brief(i), {lock("name " + key(i))});
  }
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {lock("name " + key(i), LockMode::shared)});
  }

  const auto step = run(Tick{}, seconds(2));

  EXPECT_EQ(step.notices.size(), 2 * GetParam()) << "each end of a wait admits a reader";
  expect_linear(step);
  expect_sound();
}

// Every wait overlaps every range that comes free.
TEST_P(CoreCost, the_end_of_a_lease_with_many_ranges_is_linear) {
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(holder, {span(i, i + 1)});
  }
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {span(0, GetParam())});
  }

  const auto step = run(RevokeLease{holder});

  EXPECT_EQ(step.notices.size(), 1U);
  EXPECT_EQ(step.losses.size(), GetParam());
  expect_linear(step);
}

TEST_P(CoreCost, a_forced_release_of_many_holders_is_linear) {
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {lock("name", LockMode::shared), span(i, i + 1), span(i + 20'000, i + 20'001)});
  }
  want(other, {lock("name"), span(0, 40'000)});

  expect_linear(run(ForceRelease{.resource = resource("name")}));
  expect_linear(run(ForceRelease{.resource = {.name = "space", .kind = ResourceKind::space}}));
}

TEST_P(CoreCost, a_renewal_visits_each_lease_once) {
  RenewLeases renewal;
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    renewal.leases.push_back(waiter(i));
  }

  EXPECT_EQ(run(renewal).visits, GetParam());
}

}  // namespace
}  // namespace tenure::core
