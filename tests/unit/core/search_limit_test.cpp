#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/deadlock.hpp"
#include "support/core/cost.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

/// Requests whose searches for deadlocks would visit more than the limits of a command and a batch.
class CoreSearchLimit : public CoreTest {
 protected:
  void SetUp() override {
    apply(SetClusterVersion{.version = version_2});
    grant_leases({ann, bob, cid});
  }

  /// 64 ranges in each hold, all of which a wait for the whole space conflicts with.
  static StateMachine with_many_holds(ClusterVersion version, std::uint64_t holds = 4000) {
    StateMachine big;
    big.apply(SetClusterVersion{.version = version}, {});
    for (const auto lease : {ann, bob, cid}) {
      big.apply(GrantLease{.id = lease, .ttl = seconds(30)}, {});
    }
    RequestId request{1000};
    const auto next = [&] { return request = RequestId{request.get() + 1}; };
    for (std::uint64_t i = 0; i < holds; ++i) {
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
  EXPECT_EQ(step.reached_limit, "deadlock_visits_max");
  EXPECT_LE(step.visits, deadlock_visits_per_command_max + 10);
  EXPECT_EQ(big.state().locks.waits().size(), 1U);
  EXPECT_TRUE(step.events.empty());
  EXPECT_EQ(invariants::check(big.state()), std::vector<std::string>{});
}

// Each search of the batch stays below the limit of a command.
TEST_F(CoreSearchLimit, the_searches_of_a_batch_share_a_limit) {
  auto big = with_many_holds(version_2, 1000);
  const auto wait = [](std::uint64_t i) {
    return Acquire{.lease = ann,
                   .request = RequestId{1 + i},
                   .items = {keys("space", "1", "2")},
                   .self_conflict = SelfConflict::wait};
  };
  Batch batch{.version = version_2};
  for (std::uint64_t i = 0; i < 40; ++i) {
    batch.commands.emplace_back(wait(i));
  }
  std::vector<std::optional<Errc>> codes;
  std::uint64_t visits = 0;

  big.apply(batch, [&](std::size_t, const Applied& step) {
    codes.push_back(code_of(step.outcome));
    visits += step.visits;
  });

  ASSERT_EQ(codes.size(), batch.commands.size());
  EXPECT_EQ(codes.front(), std::nullopt);
  EXPECT_EQ(codes.back(), Errc::resource_exhausted);
  EXPECT_TRUE(std::ranges::is_sorted(codes)) << "a search after one that was refused";
  EXPECT_LE(visits, deadlock_visits_per_batch_max + (100 * batch.commands.size()));
  EXPECT_EQ(invariants::check(big.state()), std::vector<std::string>{});
  EXPECT_TRUE(is_queued(big.apply(wait(100), {}).outcome)) << "the next batch has its own limit";
}

// Else a batch could begin any number of searches, each of which looks at all holds of its lease.
TEST_F(CoreSearchLimit, a_search_after_the_limit_of_its_batch_stops_early) {
  auto big = with_many_holds(version_2, 1000);
  RequestId request{1};
  const auto want = [&](LeaseId lease, std::vector<Item> items) {
    return Acquire{.lease = lease,
                   .request = request = RequestId{request.get() + 1},
                   .items = std::move(items),
                   .self_conflict = SelfConflict::wait};
  };
  // A search for waiters of cid takes 2000 visits.
  for (std::uint64_t i = 0; i < 2000; ++i) {
    big.apply(want(cid, {lock("own " + std::to_string(i))}), {});
  }
  Batch batch{.version = version_2};
  for (std::uint64_t i = 0; i < 40; ++i) {
    batch.commands.emplace_back(want(ann, {keys("space", "1", "2")}));
  }
  batch.commands.emplace_back(want(cid, {lock("a")}));
  std::vector<Applied> steps;

  big.apply(batch, [&](std::size_t, const Applied& step) { steps.push_back(step); });

  ASSERT_EQ(steps.size(), batch.commands.size());
  EXPECT_EQ(code_of(steps[39].outcome), Errc::resource_exhausted);
  EXPECT_EQ(code_of(steps[40].outcome), Errc::resource_exhausted);
  EXPECT_LE(steps[40].search_visits, deadlock_visits_always + 1);
}

TEST_F(CoreSearchLimit, a_cheap_search_after_the_limit_of_its_batch_is_made) {
  auto big = with_many_holds(version_2, 1000);
  const auto wait = [](LeaseId lease, std::uint64_t request, Item item) {
    return Acquire{.lease = lease,
                   .request = RequestId{request},
                   .items = {std::move(item)},
                   .self_conflict = SelfConflict::wait};
  };
  Batch batch{.version = version_2};
  for (std::uint64_t i = 0; i < 40; ++i) {
    batch.commands.emplace_back(wait(ann, 1 + i, keys("space", "1", "2")));
  }
  batch.commands.emplace_back(wait(cid, 1, lock("a")));
  std::vector<Outcome> outcomes;

  big.apply(batch, [&](std::size_t, const Applied& step) { outcomes.push_back(step.outcome); });

  ASSERT_EQ(outcomes.size(), batch.commands.size());
  EXPECT_EQ(code_of(outcomes[39]), Errc::resource_exhausted);
  EXPECT_TRUE(is_queued(outcomes[40]));
}

// Each search looks at the 64,000 ranges that ann waits for, and ends one of ten deadlocks.
TEST_F(CoreSearchLimit, the_searches_of_one_command_share_a_limit) {
  auto big = with_many_holds(version_2, 1000);
  RequestId request{1};
  const auto want = [&](LeaseId lease, std::vector<Item> items,
                        SelfConflict self_conflict = SelfConflict::refuse) {
    return big.apply(Acquire{.lease = lease,
                             .request = request = RequestId{request.get() + 1},
                             .items = std::move(items),
                             .self_conflict = self_conflict},
                     {});
  };
  constexpr std::uint64_t cycles = 10;
  want(ann, {lock("c", LockMode::intention_shared)});
  want(cid, {lock("c", LockMode::shared)});
  for (std::uint64_t i = 0; i < cycles; ++i) {
    want(LeaseId{10 + i}, {lock("d", LockMode::shared)});
  }
  want(ann, {lock("d")});
  ASSERT_TRUE(is_queued(want(ann, {keys("space", "1", "2")}).outcome));
  for (std::uint64_t i = 0; i < cycles; ++i) {
    ASSERT_TRUE(
        is_queued(want(LeaseId{10 + i}, {lock("c", LockMode::intention_exclusive)}).outcome));
  }

  const auto step = want(ann, {lock("c", LockMode::shared)}, SelfConflict::reenter);

  std::size_t deadlocks = 0;
  std::size_t exhausted = 0;
  for (const auto& notice : step.notices) {
    const auto code = std::get<Refused>(notice.end).error.code;
    deadlocks += code == Errc::deadlock ? 1 : 0;
    exhausted += code == Errc::resource_exhausted ? 1 : 0;
  }
  EXPECT_GT(deadlocks, 0U);
  EXPECT_LT(deadlocks, cycles);
  EXPECT_EQ(exhausted, 2U) << "both waits of ann";
  EXPECT_LE(step.search_visits, search_visits_max(big.state(), step));
  EXPECT_EQ(invariants::check(big.state()), std::vector<std::string>{});
  EXPECT_EQ(invariants::check_no_deadlock(big.state()), std::vector<std::string>{});
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

  token_of(acquire(ann, {lock("a", LockMode::shared)}, SelfConflict::reenter));

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
