#include "support/core_cost.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/deadlock.hpp"
#include "support/core_machine.hpp"

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
  Applied want(LeaseId lease, std::vector<Item> items, Again again = Again::refuse) {
    return run(
        Acquire{.lease = lease, .request = fresh(), .items = std::move(items), .again = again});
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
TEST_P(CoreCost, claims_behind_a_wait_are_not_visited_again_and_again) {
  const auto waiters = GetParam() / 10;
  want(holder, {span(0, 2 * waiters)});
  for (std::uint64_t i = 0; i < waiters; ++i) {
    want(waiter(i), {i % 2 == 0 ? span(i, i + 1) : span(i, 2 * waiters)}, Again::wait);
  }
  // Each waiter waits for a lock of the next one, too: they are reached in the order of the queue.
  for (std::uint64_t i = 1; i < waiters; ++i) {
    want(waiter(i), {lock("own " + key(i))});
  }
  for (std::uint64_t i = 0; i < waiters / 2; ++i) {
    expect_linear(want(waiter(2 * i), {lock("own " + key((2 * i) + 1))}, Again::wait));
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
    expect_linear(want(start, {lock("name")}, Again::wait));
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
  EXPECT_GT(step.visits, 2 * GetParam()) << "there was no search for stuck leases";
  expect_linear(step);
}

TEST_P(CoreCost, readers_of_a_name_are_admitted_in_linear_time) {
  const auto token = token_of(want(holder, {lock("name")}).outcome);
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    want(waiter(i), {lock("name", LockMode::shared)});
    want(waiter(i), {lock("own " + key(i))});
  }
  // All of them wait elsewhere, too.
  want(other, {lock("busy")});
  for (std::uint64_t i = 0; i < GetParam() / 2; ++i) {
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

  expect_linear(run(ForceRelease{.place = place("name")}));
  expect_linear(run(ForceRelease{.place = {.name = "space", .kind = PlaceKind::space}}));
}

TEST_P(CoreCost, a_renewal_visits_each_lease_once) {
  RenewLeases renewal;
  for (std::uint64_t i = 0; i < GetParam(); ++i) {
    renewal.leases.push_back(waiter(i));
  }

  EXPECT_EQ(run(renewal).visits, GetParam());
}

// The hard limit of one search, and a lease whose cycles cannot all be ended one by one.
class CoreSearchLimit : public CoreTest {
 protected:
  void SetUp() override {
    apply(SetClusterVersion{.version = version_2});
    grant_leases({ann, bob, cid});
  }

  /// 64 ranges in each of 4,000 holds, all of which a wait for the whole space conflicts with.
  static StateMachine with_many_holds(ClusterVersion version) {
    StateMachine big;
    big.apply(SetClusterVersion{.version = version}, {});
    for (const auto lease : {ann, bob, cid}) {
      big.apply(GrantLease{.id = lease, .ttl = seconds(30)}, {});
    }
    RequestId request{1};
    const auto next = [&] { return request = RequestId{request.get() + 1}; };
    for (std::uint64_t i = 0; i < 4000; ++i) {
      big.apply(GrantLease{.id = LeaseId{10 + i}, .ttl = seconds(30)}, {});
      Acquire command{.lease = LeaseId{10 + i}, .request = next()};
      for (std::uint64_t j = 0; j < 64; ++j) {
        const auto start = std::to_string((i * 64) + j + 1'000'000);
        command.items.push_back(keys("space", start, start + "0"));
      }
      big.apply(command, {});
    }
    big.apply(Acquire{.lease = ann, .request = next(), .items = {lock("a")}}, {});
    big.apply(Acquire{.lease = bob, .request = next(), .items = {lock("a")}}, {});
    return big;
  }
};

TEST_F(CoreSearchLimit, a_search_beyond_the_limit_refuses_the_wait_and_changes_nothing) {
  auto big = with_many_holds(version_2);
  const Acquire command{.lease = ann, .request = RequestId{1}, .items = {keys("space", "1", "2")}};

  const auto step = big.apply(command, {});

  EXPECT_EQ(code_of(step.outcome), Errc::resource_exhausted);
  EXPECT_LE(step.visits, deadlock_visits_max + 10);
  EXPECT_EQ(big.state().locks.waits().size(), 1U);
  EXPECT_TRUE(step.events.empty());
  EXPECT_EQ(invariants::check(big.state()), std::vector<std::string>{});
}

// Members of the older version have no limit, and all members must decide alike.
TEST_F(CoreSearchLimit, the_limit_does_not_exist_in_version_1) {
  auto big = with_many_holds(oldest_version);
  const Acquire command{.lease = ann, .request = RequestId{1}, .items = {keys("space", "1", "2")}};

  EXPECT_TRUE(is_queued(big.apply(command, {}).outcome));
}

// An upgrade past the queue makes all of them wait for a lease that waits for all of them.
TEST_F(CoreSearchLimit, an_upgrade_that_closes_too_many_cycles_ends_the_waits_of_its_lease) {
  acquire(ann, {lock("a", LockMode::intention_shared)});
  acquire(cid, {lock("a", LockMode::shared)});
  constexpr std::uint64_t cycles = 20;
  for (std::uint64_t i = 0; i < cycles; ++i) {
    const LeaseId lease{100 + i};
    grant_leases({lease});
    acquire(lease, {lock("b", LockMode::shared)});
  }
  acquire(ann, {lock("b")});
  for (std::uint64_t i = 0; i < cycles; ++i) {
    acquire(LeaseId{100 + i}, {lock("a", LockMode::intention_exclusive)});
  }

  token_of(acquire(ann, {lock("a", LockMode::shared)}, Again::reenter));

  std::size_t deadlocks = 0;
  std::size_t exhausted = 0;
  for (const auto& notice : applied.notices) {
    const auto code = std::get<Refused>(notice.end).error.code;
    deadlocks += code == Errc::deadlock ? 1 : 0;
    exhausted += code == Errc::resource_exhausted && notice.lease == ann ? 1 : 0;
  }
  EXPECT_EQ(deadlocks, 16U);
  EXPECT_EQ(exhausted, 1U);
  EXPECT_TRUE(machine.state().locks.owned(ann).waits.empty());
}

}  // namespace
}  // namespace tenure::core
