#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

using namespace std::string_view_literals;

constexpr std::array user_42{"db"sv, "users"sv, "42"sv};

// 004-B22: the document left the protocol to the caller.
TEST(Paths, a_writer_of_a_leaf_holds_ix_above_it) {
  const LockManager locks;
  const Transaction txn = locks.begin();

  EXPECT_TRUE(succeeded(txn.lock_path({"db", "users", "42"}, exclusive)));

  EXPECT_EQ(txn.mode_held("db"), intention_exclusive);
  EXPECT_EQ(txn.mode_held("db/users"), intention_exclusive);
  EXPECT_EQ(txn.mode_held("db/users/42"), exclusive);
  EXPECT_EQ(txn.lock_count(), 3U);
}

// 004.079, 004-B22
TEST(Paths, every_mode_holds_its_ancestor_mode_above_it) {
  for (const LockMode mode : all_lock_modes) {
    const LockManager locks;
    const Transaction txn = locks.begin();

    txn.lock_path({"db", "users"}, mode).value();

    EXPECT_EQ(txn.mode_held("db"), ancestor_mode(mode));
    EXPECT_EQ(txn.mode_held("db/users"), mode);
  }
}

// 004.081, 004-B22
TEST(Paths, writers_of_different_leaves_do_not_conflict_and_a_reader_of_the_root_does) {
  const LockManager locks;
  const Transaction one = locks.begin();
  const Transaction two = locks.begin();
  one.lock_path({"db", "users", "42"}, exclusive).value();

  EXPECT_TRUE(succeeded(two.try_lock_path(std::array{"db"sv, "users"sv, "43"sv}, exclusive)));
  EXPECT_TRUE(refused(two.try_lock_path(user_42, shared), Errc::would_block));
  EXPECT_TRUE(refused(locks.begin().try_lock_path(std::array{"db"sv, "users"sv}, shared),
                      Errc::would_block));
}

// 004-B22: ancestors that are never released would bar a reader of the root for ever.
TEST(Paths, a_failed_path_releases_all_its_nodes) {
  const LockManager locks;
  const Transaction one = locks.begin();
  const Transaction two = locks.begin();
  one.lock("db/users/42", exclusive).value();

  EXPECT_TRUE(refused(two.try_lock_path(user_42, exclusive), Errc::would_block));
  EXPECT_TRUE(refused(two.lock_path(user_42, exclusive, within(std::chrono::milliseconds::zero())),
                      Errc::timed_out));

  EXPECT_EQ(two.lock_count(), 0U);
  EXPECT_EQ(locks.holder_count("db"), 0U);
}

// 004-B13, 004-B22
TEST(Paths, a_failed_path_releases_only_its_own_acquisitions) {
  const LockManager locks;
  const Transaction one = locks.begin();
  const Transaction two = locks.begin();
  one.lock("db/users/42", exclusive).value();
  two.lock_path({"db", "orders"}, exclusive).value();

  ASSERT_TRUE(refused(two.try_lock_path(user_42, exclusive), Errc::would_block));

  EXPECT_EQ(two.mode_held("db"), intention_exclusive);
  EXPECT_EQ(two.mode_held("db/orders"), exclusive);
  EXPECT_EQ(two.mode_held("db/users"), std::nullopt);
}

// 004.080, 004-B22
TEST(Paths, unlock_path_releases_the_acquisitions_of_one_lock_path) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock_path(user_42, exclusive).value();
  txn.lock_path({"db", "users", "43"}, exclusive).value();

  EXPECT_TRUE(succeeded(txn.unlock_path(user_42)));

  EXPECT_EQ(txn.mode_held("db/users/42"), std::nullopt);
  EXPECT_EQ(txn.mode_held("db/users/43"), exclusive);
  EXPECT_EQ(txn.mode_held("db/users"), intention_exclusive);
}

// 004-B22
TEST(Paths, a_path_that_is_not_held_cannot_be_unlocked) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock_path({"db", "users", "43"}, exclusive).value();

  EXPECT_TRUE(refused(txn.unlock_path(user_42), Errc::not_held));

  EXPECT_EQ(txn.mode_held("db/users"), intention_exclusive) << "the ancestors belong to 43";
}

// 004-B22
TEST(Paths, a_path_is_the_name_of_its_steps_with_slashes_between) {
  const LockManager locks;
  const Transaction one = locks.begin();
  one.lock_path(user_42, exclusive).value();

  EXPECT_TRUE(refused(locks.begin().try_lock("db/users/42", shared), Errc::would_block));
}

TEST(Paths, bad_paths_are_refused_and_lock_nothing) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  const std::vector<std::string_view> deep(path_depth_max + 1, "a");
  const std::string step(name_bytes_max, 'a');

  EXPECT_TRUE(refused(txn.lock_path({}, shared), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.lock_path({"db", "", "42"}, shared), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.lock_path({"db", "a/b"}, shared), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.lock_path(deep, shared), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.lock_path({"db", step}, shared), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.try_lock_path(deep, shared), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.unlock_path(deep), Errc::invalid_argument));

  EXPECT_EQ(txn.lock_count(), 0U);
}

TEST(Paths, the_deepest_path_has_64_steps) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  const std::vector<std::string_view> deep(path_depth_max, "a");

  EXPECT_TRUE(succeeded(txn.lock_path(deep, exclusive)));
  EXPECT_EQ(txn.lock_count(), 64U);
  EXPECT_TRUE(succeeded(txn.unlock_path(deep)));
  EXPECT_EQ(txn.lock_count(), 0U);
}

// 004.078, 004.079, 004.080, 004.081, 004.088: the document's protocol, by hand and by number.
TEST(Hierarchies, a_row_writer_and_a_reader_conflict_only_at_the_same_row) {
  const LockManager locks;
  const ResourceId database{1};
  const ResourceId table{2};
  const ResourceId page{3};
  const ResourceId row{4};
  for (const ResourceId node : {database, table, page}) {
    locks.try_acquire(t1, node, intention_exclusive).value();
  }
  locks.try_acquire(t1, row, exclusive).value();

  for (const ResourceId node : {database, table, page}) {
    EXPECT_TRUE(succeeded(locks.try_acquire(t2, node, intention_shared)));
  }
  EXPECT_TRUE(refused(locks.try_acquire(t2, row, shared), Errc::would_block));
  EXPECT_TRUE(refused(locks.try_acquire(t3, table, shared), Errc::would_block));
}

// 004.080, 004.082
TEST(Hierarchies, locks_are_released_fine_to_coarse_or_all_at_once) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_exclusive).value();
  locks.try_acquire(t1, row_b, exclusive).value();
  locks.release(t1, row_b).value();
  locks.release(t1, row_a).value();
  locks.try_acquire(t2, row_a, intention_exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();

  EXPECT_EQ(locks.release_all(t2), 2U);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B19: names are compared whole, so no two of them ever share a lock.
TEST(Names, different_names_never_collide) {
  const LockManager locks = LockManager::with_shards(1);

  for (std::uint64_t number = 0; number < 20'000; ++number) {
    const std::string name = "user/" + std::to_string(number);
    ASSERT_TRUE(succeeded(locks.try_acquire(TxnId{number}, name, exclusive))) << name;
  }
}

// 004-B19
TEST(Names, equal_names_are_one_lock_wherever_they_are_stored) {
  const LockManager locks;
  const std::string one = "db/users";
  const std::string other = "db/users";
  locks.try_acquire(t1, one, exclusive).value();

  EXPECT_TRUE(refused(locks.try_acquire(t2, other, shared), Errc::would_block));
  EXPECT_EQ(locks.holder_count("db/users"), 1U);
  EXPECT_TRUE(succeeded(locks.release(t1, other)));
}

// 004-B19: a C string would end at the zero byte.
TEST(Names, names_have_bytes_of_any_value) {
  const LockManager locks;
  locks.try_acquire(t1, "a\0b"sv, exclusive).value();

  EXPECT_TRUE(succeeded(locks.try_acquire(t2, "a\0c"sv, exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire(t2, "a"sv, exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire(t2, "\xFF\xFE"sv, exclusive)));
}

// 004-B19: the table must not keep views of the callers' strings.
TEST(Names, a_name_may_go_away_after_the_call) {
  const LockManager locks;
  std::string name = "a name that is too long for the small string optimisation";
  const std::string copy = name;
  locks.try_acquire(t1, name, exclusive).value();

  name.assign(name.size(), 'x');

  EXPECT_EQ(locks.mode_held(t1, copy), exclusive);
  EXPECT_EQ(locks.mode_held(t1, name), std::nullopt);
}

// 004-B19
TEST(Names, names_queue_like_numbers) {
  const LockManager locks;
  locks.try_acquire(t1, "name", shared).value();
  ASSERT_TRUE(locks.request(t2, "name", exclusive).is_waiting());

  EXPECT_TRUE(refused(locks.try_acquire(t3, "name", shared), Errc::would_block));
  locks.release(t1, "name").value();

  EXPECT_EQ(locks.mode_held(t2, "name"), exclusive);
}

}  // namespace
}  // namespace tenure::test
