#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

// What the random suites have found, as the shrunk commands. See tests/track_record.md.

namespace tenure {
namespace {

constexpr TxnId first{1};
constexpr TxnId second{2};
constexpr TxnId third{3};
constexpr TxnId fourth{4};

void expect_that_release_all_frees_it(const Target& target) {
  const LockManager locks;
  ASSERT_TRUE(locks.try_acquire(first, target, LockMode::exclusive).has_value());
  ASSERT_TRUE(locks.request(second, target, LockMode::exclusive).is_waiting());
  ASSERT_TRUE(locks.release(first, target).has_value());  // the second has it, but did not claim
  ASSERT_TRUE(locks.try_acquire(second, target, LockMode::exclusive).has_value());

  EXPECT_EQ(locks.release_all(second), 1U);

  EXPECT_EQ(locks.holder_count(target), 0U);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B11, 004.022: the second acquisition was counted on a lock that stood in no list yet, and
// undoing the first left it there for ever.
TEST(TrackRecord, release_all_frees_a_number_that_was_granted_unclaimed_and_taken_again) {
  expect_that_release_all_frees_it(ResourceId{7});
}

// 004-B11, 004-B19: the same lost the name of a lock that was still held.
TEST(TrackRecord, release_all_frees_a_name_that_was_granted_unclaimed_and_taken_again) {
  expect_that_release_all_frees_it("seven");
}

// 004-B18, 004-B10: to resolve the cycle of the first and the third, the third is granted 7 before
// the second, which it waits for at 4: that closes another cycle, which must not stay.
TEST(TrackRecord, a_grant_out_of_turn_leaves_no_new_deadlock) {
  const LockManager locks;
  const ResourceId four{4};
  const ResourceId seven{7};
  ASSERT_TRUE(locks.try_acquire(second, four, LockMode::exclusive).has_value());
  ASSERT_TRUE(locks.try_acquire(fourth, seven, LockMode::shared).has_value());
  ASSERT_TRUE(locks.request(second, seven, LockMode::exclusive).is_waiting());
  ASSERT_TRUE(locks.request(first, seven, LockMode::exclusive).is_waiting());
  ASSERT_TRUE(locks.request(third, four, LockMode::exclusive).is_waiting());
  ASSERT_TRUE(locks.request(third, seven, LockMode::shared).is_waiting());

  const RequestResult closing = locks.request(first, four, LockMode::exclusive);

  EXPECT_FALSE(closing.is_granted());
  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
}

}  // namespace
}  // namespace tenure
