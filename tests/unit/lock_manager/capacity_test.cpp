#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// Nothing here measures time, but a cost that grows with the wrong thing runs into the time limit
// of the suite.

/// Transaction i holds resource i and waits for i + 1, for i in [1, length].
void build_chain(const LockManager& locks, std::uint64_t length) {
  for (std::uint64_t number = 1; number <= length + 1; ++number) {
    locks.try_acquire(TxnId{number}, ResourceId{number}, exclusive).value();
  }
  for (std::uint64_t number = 1; number <= length; ++number) {
    ASSERT_TRUE(locks.request(TxnId{number}, ResourceId{number + 1}, exclusive).is_waiting());
  }
}

// 004.048: a recursive search overflows the stack here.
TEST(Capacity, a_chain_of_100000_waits_is_no_deadlock) {
  const LockManager locks;
  build_chain(locks, 100'000);

  EXPECT_EQ(locks.waiting_count(), 100'000U);
  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
}

// 004.048, 004.049
TEST(Capacity, the_end_of_a_chain_of_100000_that_waits_for_its_beginning_is_a_deadlock) {
  const LockManager locks;
  build_chain(locks, 100'000);

  const RequestResult answer = locks.request(TxnId{100'001}, ResourceId{1}, exclusive);

  ASSERT_TRUE(gives_way(answer, TxnId{100'001}));
  EXPECT_EQ(answer.deadlock()->cycle.size(), 100'001U);
}

// 004.048: a search without memory walks 2^40 paths here.
TEST(Capacity, a_ladder_of_diamonds_is_searched_once) {
  const LockManager locks;
  const auto reader = [](std::uint64_t rung, std::uint64_t side) {
    return TxnId{1000 + rung * 2 + side};
  };
  for (std::uint64_t rung = 1; rung <= 40; ++rung) {
    locks.try_acquire(reader(rung, 0), ResourceId{rung}, shared).value();
    locks.try_acquire(reader(rung, 1), ResourceId{rung}, shared).value();
  }

  for (std::uint64_t rung = 39; rung >= 1; --rung) {
    ASSERT_TRUE(locks.request(reader(rung, 0), ResourceId{rung + 1}, exclusive).is_waiting());
    ASSERT_TRUE(locks.request(reader(rung, 1), ResourceId{rung + 1}, exclusive).is_waiting());
  }

  EXPECT_TRUE(locks.request(t1, ResourceId{1}, exclusive).is_waiting());
}

// 004.024, 004-B12
TEST(Capacity, a_transaction_with_a_million_locks_releases_all_of_them) {
  constexpr std::uint64_t count = 1'000'000;
  const LockManager locks;
  for (std::uint64_t number = 0; number < count; ++number) {
    locks.try_acquire(t1, ResourceId{number}, exclusive).value();
  }

  EXPECT_EQ(locks.release_all(t1), count);

  for (std::uint64_t number = 0; number < count; number += 997) {
    ASSERT_EQ(locks.holder_count(ResourceId{number}), 0U);
  }
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004.024, 004-B12: a release that searches the transaction's list takes 10^10 steps here.
TEST(Capacity, locks_are_released_in_any_order) {
  std::vector<std::uint64_t> order(200'000);
  std::iota(order.begin(), order.end(), 0U);
  const LockManager locks;
  for (const std::uint64_t number : order) {
    locks.try_acquire(t1, ResourceId{number}, exclusive).value();
  }

  std::ranges::shuffle(order, std::mt19937_64{4});
  for (const std::uint64_t number : order) {
    ASSERT_TRUE(succeeded(locks.release(t1, ResourceId{number})));
  }

  EXPECT_EQ(locks.release_all(t1), 0U);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004.024, 004-B12: 200,000 x 100,000 steps if release_all walked the locks of others, or 4,096
// shards each time.
TEST(Capacity, release_all_visits_only_locks_of_its_transaction) {
  const LockManager locks = LockManager::with_shards(4096);
  for (std::uint64_t number = 0; number < 200'000; ++number) {
    locks.try_acquire(t1, ResourceId{number}, shared).value();
  }

  for (std::uint64_t round = 0; round < 100'000; ++round) {
    locks.try_acquire(t2, ResourceId{round}, shared).value();
    ASSERT_EQ(locks.release_all(t2), 1U);
  }

  EXPECT_EQ(locks.release_all(t1), 200'000U);
}

// 004-B5: 10^10 steps if every live range were looked at.
TEST(Capacity, a_range_request_visits_only_overlapping_ranges) {
  const LockManager locks;
  for (std::uint64_t number = 0; number < 100'000; ++number) {
    locks
        .try_acquire_range(t1, space_a, KeyRange::of(number * 10, number * 10 + 5).value(),
                           exclusive)
        .value();
  }

  for (std::uint64_t number = 0; number < 100'000; ++number) {
    const KeyRange gap = KeyRange::of(number * 10 + 6, number * 10 + 9).value();
    ASSERT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, gap, exclusive)));
  }

  EXPECT_TRUE(refused(locks.try_acquire_range(t2, space_a, KeyRange::point(777'005), shared),
                      Errc::would_block));
  EXPECT_EQ(locks.range_count(space_a), 200'000U);
  EXPECT_EQ(locks.release_all(t1), 100'000U);
  EXPECT_EQ(locks.release_all(t2), 100'000U);
}

// 004-B6: 5 x 10^9 steps if every wait looked at all waiters before it.
TEST(Capacity, a_new_wait_does_not_visit_unrelated_waiters) {
  constexpr std::uint64_t count = 100'000;
  const LockManager locks;
  for (std::uint64_t number = 0; number < count; ++number) {
    locks.try_acquire(t1, ResourceId{number}, exclusive).value();
  }

  for (std::uint64_t number = 0; number < count; ++number) {
    ASSERT_TRUE(locks.request(TxnId{10 + number}, ResourceId{number}, shared).is_waiting());
  }

  EXPECT_EQ(locks.waiting_count(), count);
  EXPECT_EQ(locks.release_all(t1), count);
  EXPECT_EQ(locks.waiting_count(), 0U);
}

TEST(Capacity, a_queue_of_ten_thousand_waiters_drains) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    ASSERT_TRUE(locks.request(TxnId{10 + number}, row_a, shared).is_waiting());
  }
  ASSERT_TRUE(refused(locks.request(t2, row_a, shared), Errc::resource_exhausted));

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.holder_count(row_a), 10'000U);
  EXPECT_EQ(locks.waiting_count(), 0U);
}

TEST(Capacity, a_hundred_thousand_names_are_created_and_forgotten) {
  const LockManager locks;
  for (std::uint64_t number = 0; number < 100'000; ++number) {
    locks.try_acquire(t1, "name/" + std::to_string(number), exclusive).value();
  }

  EXPECT_EQ(locks.holder_count("name/77777"), 1U);
  EXPECT_EQ(locks.release_all(t1), 100'000U);

  EXPECT_EQ(locks.holder_count("name/77777"), 0U);
}

}  // namespace
}  // namespace tenure::test
