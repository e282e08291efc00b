#include <gtest/gtest.h>

#include "support/model/reference.hpp"

// The reference is tested too, by the examples of the documentation: a model that grants
// everything would agree with a manager that grants everything.

namespace tenure::model {
namespace {

constexpr TxnId first{1};
constexpr TxnId second{2};
constexpr TxnId third{3};
const Thing row = ResourceId{7};

// 004-B2
TEST(Reference, a_request_queues_behind_a_conflicting_waiter) {
  Reference reference;
  ASSERT_EQ(reference.request(first, row, LockMode::shared), Answer::granted);
  ASSERT_EQ(reference.request(second, row, LockMode::exclusive), Answer::waiting);

  EXPECT_EQ(reference.try_acquire(third, row, LockMode::shared), Answer::would_block);
}

// 004-B1
TEST(Reference, a_release_hands_over_to_compatible_neighbours) {
  Reference reference;
  ASSERT_EQ(reference.request(first, row, LockMode::exclusive), Answer::granted);
  ASSERT_EQ(reference.request(second, row, LockMode::shared), Answer::waiting);
  ASSERT_EQ(reference.request(third, row, LockMode::shared), Answer::waiting);

  ASSERT_EQ(reference.release(first, row), Answer::granted);

  EXPECT_EQ(reference.holder_count(row), 2U);
  EXPECT_EQ(reference.request(third, row, LockMode::shared), Answer::granted);
}

// 004-B2
TEST(Reference, an_upgrade_precedes_requests_of_non_holders) {
  Reference reference;
  ASSERT_EQ(reference.request(first, row, LockMode::shared), Answer::granted);
  ASSERT_EQ(reference.request(second, row, LockMode::shared), Answer::granted);
  ASSERT_EQ(reference.request(third, row, LockMode::exclusive), Answer::waiting);
  ASSERT_EQ(reference.request(first, row, LockMode::exclusive), Answer::waiting);

  ASSERT_EQ(reference.release(second, row), Answer::granted);

  EXPECT_EQ(reference.mode_held(first, row), LockMode::exclusive);
  EXPECT_EQ(reference.mode_held(third, row), std::nullopt);
}

// 004-B18
TEST(Reference, two_upgrades_are_a_cycle_of_holders) {
  Reference reference;
  ASSERT_EQ(reference.request(first, row, LockMode::shared), Answer::granted);
  ASSERT_EQ(reference.request(second, row, LockMode::shared), Answer::granted);
  ASSERT_EQ(reference.request(first, row, LockMode::exclusive), Answer::waiting);
  EXPECT_FALSE(has_cycle(reference.waits_for()));

  ASSERT_EQ(reference.request(second, row, LockMode::exclusive), Answer::waiting);

  EXPECT_TRUE(has_cycle(reference.waits_for()));
  EXPECT_TRUE(is_on_cycle(reference.waits_for(), first));
  EXPECT_TRUE(is_cycle(reference.waits_for(), {second, first}));
}

// 004-B7
TEST(Reference, a_victim_gets_deadlock_errors_until_it_releases_everything) {
  Reference reference;
  ASSERT_EQ(reference.request(first, row, LockMode::shared), Answer::granted);
  reference.make_victim(first);

  EXPECT_EQ(reference.try_acquire(first, row, LockMode::shared), Answer::deadlock);
  EXPECT_EQ(reference.release_all(first), 1U);
  EXPECT_EQ(reference.try_acquire(first, row, LockMode::shared), Answer::granted);
}

// 004-B7
TEST(Reference, a_victim_whose_locks_others_released_still_gets_the_error) {
  Reference reference;
  ASSERT_EQ(reference.request(first, row, LockMode::shared), Answer::granted);
  reference.make_victim(first);

  EXPECT_EQ(reference.release_all(first), 1U);
  EXPECT_EQ(reference.try_acquire(first, row, LockMode::shared), Answer::deadlock);
  EXPECT_EQ(reference.release_all(first), 0U);
  EXPECT_EQ(reference.try_acquire(first, row, LockMode::shared), Answer::granted);
}

// 004.026, 004.067
TEST(Reference, ranges_meet_only_in_their_space_and_where_they_share_a_key) {
  const auto keys = [](std::uint64_t space, std::uint64_t start, std::uint64_t end) -> Thing {
    return KeysOf{ResourceId{space}, KeyRange::of(start, end).value()};
  };

  EXPECT_TRUE(share_a_key(keys(1, 1, 5), keys(1, 5, 9)));
  EXPECT_FALSE(share_a_key(keys(1, 1, 5), keys(1, 6, 9)));
  EXPECT_FALSE(share_a_key(keys(1, 1, 5), keys(2, 1, 5)));
  EXPECT_FALSE(share_a_key(keys(1, 1, 5), BytesOf{ResourceId{1}, BytesRange::all()}));
}

}  // namespace
}  // namespace tenure::model
