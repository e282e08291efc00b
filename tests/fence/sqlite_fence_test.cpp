#include <string>

#include <gtest/gtest.h>

#include <tenure/fence_sqlite.hpp>

#include "fence/connections.hpp"
#include "fence/databases.hpp"
#include "support/refusals.hpp"

namespace tenure::test {
namespace {

using Reason = FenceError::Reason;

constexpr FencingToken ann{100};
constexpr FencingToken bob{101};

class SqliteFenceTest : public ::testing::Test {
 protected:
  void SetUp() override { database("sqlite").wipe(); }
  static Sqlite connect() { return connect_sqlite(database("sqlite").address()); }
};

// 002-B12
TEST_F(SqliteFenceTest, a_rollback_removes_the_token_with_the_write) {
  const auto connection = connect();
  ASSERT_TRUE(SqliteFence::create_table(*connection));
  auto fence = SqliteFence::on(*connection).value();

  run(*connection, "BEGIN IMMEDIATE");
  ASSERT_TRUE(fence.admit("x", bob));
  EXPECT_EQ(fence.highest("x"), bob);
  run(*connection, "ROLLBACK");

  EXPECT_EQ(fence.highest("x"), FencingToken{0});
  run(*connection, "BEGIN IMMEDIATE");
  EXPECT_TRUE(fence.admit("x", ann));
  run(*connection, "COMMIT");
}

// Without a transaction, the token would be stored even if the following write fails.
TEST_F(SqliteFenceTest, requires_an_open_transaction) {
  const auto connection = connect();
  ASSERT_TRUE(SqliteFence::create_table(*connection));
  auto fence = SqliteFence::on(*connection).value();

  const auto admitted = fence.admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::not_checked);
  EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
  EXPECT_EQ(fence.highest("x"), FencingToken{0});
}

TEST_F(SqliteFenceTest, a_writer_that_conflicts_with_another_gets_would_block) {
  const auto first = connect();
  const auto second = connect();
  ASSERT_TRUE(SqliteFence::create_table(*first));
  auto fence_of_first = SqliteFence::on(*first).value();
  auto fence_of_second = SqliteFence::on(*second).value();
  run(*first, "BEGIN");
  run(*second, "BEGIN");
  ASSERT_TRUE(fence_of_first.admit("x", bob));

  const auto busy = fence_of_second.admit("x", ann);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().error, Errc::would_block);
  run(*second, "ROLLBACK");
  run(*first, "COMMIT");

  run(*second, "BEGIN");
  EXPECT_EQ(reason_of(fence_of_second.admit("x", ann)), Reason::stale);
  EXPECT_EQ(fence_of_second.highest("x"), bob);
  run(*second, "ROLLBACK");
}

// A plain read of a snapshot from before the other commit would see the old token.
TEST_F(SqliteFenceTest, does_not_trust_an_outdated_snapshot) {
  const auto first = connect();
  const auto second = connect();
  run(*first, "PRAGMA journal_mode = WAL");
  ASSERT_TRUE(SqliteFence::create_table(*first));
  auto fence_of_first = SqliteFence::on(*first).value();
  auto fence_of_second = SqliteFence::on(*second).value();
  run(*second, "BEGIN");
  EXPECT_EQ(fence_of_second.highest("x"), FencingToken{0});  // the snapshot is taken here
  run(*first, "BEGIN IMMEDIATE");
  ASSERT_TRUE(fence_of_first.admit("x", bob));
  run(*first, "COMMIT");

  const auto admitted = fence_of_second.admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::would_block);
  run(*second, "ROLLBACK");
  run(*second, "BEGIN");
  EXPECT_EQ(reason_of(fence_of_second.admit("x", ann)), Reason::stale);
  run(*second, "ROLLBACK");
}

TEST_F(SqliteFenceTest, a_missing_table_is_reported_with_the_remedy) {
  const auto connection = connect();

  const auto fence = SqliteFence::on(*connection);

  ASSERT_FALSE(fence);
  EXPECT_EQ(fence.error(), Errc::invalid_argument);
  EXPECT_NE(fence.error().detail.find("create_table()"), std::string::npos);
}

TEST_F(SqliteFenceTest, create_table_keeps_an_existing_table) {
  const auto connection = connect();
  ASSERT_TRUE(SqliteFence::create_table(*connection));
  auto fence = SqliteFence::on(*connection).value();
  run(*connection, "BEGIN IMMEDIATE");
  ASSERT_TRUE(fence.admit("x", bob));
  run(*connection, "COMMIT");

  EXPECT_TRUE(SqliteFence::create_table(*connection));
  EXPECT_EQ(fence.highest("x"), bob);
}

TEST_F(SqliteFenceTest, two_tables_are_two_fences_and_need_plain_names) {
  const auto connection = connect();
  const SqliteFenceOptions others{.table = "others"};
  ASSERT_TRUE(SqliteFence::create_table(*connection));
  ASSERT_TRUE(SqliteFence::create_table(*connection, others));
  auto fence = SqliteFence::on(*connection).value();
  auto other = SqliteFence::on(*connection, others).value();
  run(*connection, "BEGIN IMMEDIATE");

  EXPECT_TRUE(fence.admit("x", bob));
  EXPECT_TRUE(other.admit("x", ann));
  run(*connection, "COMMIT");
  for (const auto* name : {"", "a b", "1a", "a;DROP TABLE a", "A", "a\"b"}) {
    EXPECT_EQ(code_of(SqliteFence::create_table(*connection, {.table = name})),
              Errc::invalid_argument);
    EXPECT_EQ(code_of(SqliteFence::on(*connection, {.table = name})), Errc::invalid_argument);
  }
  EXPECT_FALSE(SqliteFence::create_table(*connection, {.table = std::string(64, 'a')}));
  EXPECT_TRUE(SqliteFence::create_table(*connection, {.table = std::string(63, 'a')}));
}

TEST_F(SqliteFenceTest, rejects_every_token_if_nothing_can_be_written) {
  ASSERT_TRUE(SqliteFence::create_table(*connect()));
  sqlite3* raw = nullptr;
  sqlite3_open_v2(database("sqlite").address().c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  const Sqlite connection(raw);
  auto fence = SqliteFence::on(*connection).value();
  run(*connection, "BEGIN");

  const auto admitted = fence.admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
}

// A token that is not stored cannot reject smaller ones.
TEST_F(SqliteFenceTest, rejects_a_token_that_a_trigger_discards) {
  const auto connection = connect();
  ASSERT_TRUE(SqliteFence::create_table(*connection));
  run(*connection,
      "CREATE TRIGGER swallow BEFORE INSERT ON tenure_fence BEGIN "
      "SELECT RAISE(IGNORE); END");
  auto fence = SqliteFence::on(*connection).value();
  run(*connection, "BEGIN IMMEDIATE");

  const auto admitted = fence.admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::not_checked);
  run(*connection, "ROLLBACK");
}

}  // namespace
}  // namespace tenure::test
