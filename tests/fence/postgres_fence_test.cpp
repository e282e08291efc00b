#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/fence_postgresql.hpp>

#include "fence/connections.hpp"
#include "fence/databases.hpp"
#include "support/refusals.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using Reason = FenceError::Reason;

constexpr FencingToken ann{100};
constexpr FencingToken bob{101};

class PostgresFenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    database("postgresql").wipe();
    first_ = connect();
    second_ = connect();
    ASSERT_TRUE(PostgresFence::create_table(*first_));
  }
  static Postgres connect() { return connect_postgres(database("postgresql").address()); }

  /// The second connection asks on a thread of its own while the first has not ended its
  /// transaction; that one ends as soon as the second stands still at the row.
  FenceResult ask_behind(FencingToken token, const std::string& end_of_first) {
    FenceResult admitted;
    std::jthread asking([&] {
      run(*second_, "BEGIN");
      admitted = PostgresFence::on(*second_).value().admit("x", token);
    });
    const auto observer = connect();
    EXPECT_TRUE(eventually(
        [&] { return !run(*observer, "SELECT 1 FROM pg_locks WHERE NOT granted").empty(); }));
    run(*first_, end_of_first);
    return asking.join(), admitted;
  }

  Postgres first_;
  Postgres second_;
};

// 002-B12: an admitted writer blocks other checks until its write is committed.
TEST_F(PostgresFenceTest, an_older_token_waits_for_the_newer_transaction_and_is_rejected) {
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", bob));

  const auto admitted = ask_behind(ann, "COMMIT");

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::stale);
  EXPECT_EQ(admitted.error().highest, bob);
}

TEST_F(PostgresFenceTest, an_older_token_is_admitted_when_the_newer_transaction_was_rolled_back) {
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", bob));

  EXPECT_TRUE(ask_behind(ann, "ROLLBACK"));
}

// Otherwise the older write could be committed after the newer one.
TEST_F(PostgresFenceTest, a_newer_token_waits_until_the_older_write_is_committed) {
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", ann));

  EXPECT_TRUE(ask_behind(bob, "COMMIT"));
}

// The same for an existing row whose token does not change.
TEST_F(PostgresFenceTest, a_newer_token_also_waits_for_the_second_write_of_a_holder) {
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", ann));
  run(*first_, "COMMIT");
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", ann));

  EXPECT_TRUE(ask_behind(bob, "COMMIT"));
}

TEST_F(PostgresFenceTest, writers_of_different_resources_do_not_wait_for_each_other) {
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", bob));

  run(*second_, "BEGIN");
  EXPECT_TRUE(PostgresFence::on(*second_).value().admit("y", ann));
}

// A snapshot from before the newer commit must not admit the older token.
TEST_F(PostgresFenceTest, does_not_trust_an_outdated_snapshot) {
  for (const auto* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    run(*first_, "DELETE FROM tenure_fence");
    run(*second_, std::string("BEGIN ISOLATION LEVEL ") + level);
    EXPECT_EQ(PostgresFence::on(*second_).value().highest("x"), FencingToken{0});
    run(*first_, "BEGIN");
    ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", bob));
    run(*first_, "COMMIT");

    const auto admitted = PostgresFence::on(*second_).value().admit("x", ann);

    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().error, Errc::would_block);
    run(*second_, "ROLLBACK");
  }
}

TEST_F(PostgresFenceTest, requires_an_open_transaction_that_has_not_failed) {
  auto fence = PostgresFence::on(*first_).value();

  const auto outside = fence.admit("x", ann);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().error, Errc::invalid_argument);

  run(*first_, "BEGIN");
  EXPECT_THROW(run(*first_, "SELECT 1 / 0"), std::runtime_error);
  const auto failed = fence.admit("x", ann);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().error, Errc::invalid_argument);
  EXPECT_NE(failed.error().error.detail.find("roll back"), std::string::npos);
  run(*first_, "ROLLBACK");
  EXPECT_EQ(fence.highest("x"), FencingToken{0});
}

TEST_F(PostgresFenceTest, requires_a_connection_without_a_command_in_progress) {
  run(*first_, "BEGIN");
  ASSERT_EQ(PQsendQuery(first_.get(), "SELECT 1"), 1);

  const auto admitted = PostgresFence::on(*first_).value().admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
}

TEST_F(PostgresFenceTest, stops_waiting_at_the_timeouts_of_the_session) {
  run(*first_, "BEGIN");
  ASSERT_TRUE(PostgresFence::on(*first_).value().admit("x", ann));

  for (const auto& [setting, code] : {std::pair("lock_timeout", Errc::would_block),
                                      std::pair("statement_timeout", Errc::timed_out)}) {
    run(*second_, "BEGIN");
    run(*second_, std::string("SET LOCAL ") + setting + " = 1");
    const auto admitted = PostgresFence::on(*second_).value().admit("x", bob);
    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().error, code);
    run(*second_, "ROLLBACK");
  }
}

TEST_F(PostgresFenceTest, a_missing_table_is_reported_with_the_remedy) {
  run(*first_, "BEGIN");

  const auto admitted = PostgresFence::on(*first_, {.table = "nowhere"}).value().admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
  EXPECT_NE(admitted.error().error.detail.find("create_table()"), std::string::npos);
}

TEST_F(PostgresFenceTest, accepts_only_table_names_that_need_no_quotes) {
  for (const auto* name : {"", "a b", "1a", "a;DROP TABLE a", "A", "a\"b"}) {
    EXPECT_EQ(code_of(PostgresFence::create_table(*first_, {.table = name})),
              Errc::invalid_argument);
    EXPECT_EQ(code_of(PostgresFence::on(*first_, {.table = name})), Errc::invalid_argument);
  }
}

// IF NOT EXISTS alone sometimes fails with a duplicate key in pg_type.
TEST_F(PostgresFenceTest, create_table_may_run_concurrently) {
  for (int round = 0; round < 5; ++round) {
    run(*first_, "DROP TABLE IF EXISTS others");
    std::vector<std::jthread> makers;
    for (int maker = 0; maker < 4; ++maker) {
      makers.emplace_back([] {
        const auto made = PostgresFence::create_table(*connect(), {.table = "others"});
        EXPECT_TRUE(made) << to_string(made.error());
      });
    }
  }
}

TEST_F(PostgresFenceTest, rejects_every_token_if_nothing_can_be_written) {
  run(*first_, "BEGIN READ ONLY");

  const auto admitted = PostgresFence::on(*first_).value().admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
}

// A token that is not stored cannot reject smaller ones.
TEST_F(PostgresFenceTest, rejects_a_token_that_a_trigger_discards) {
  run(*first_,
      "CREATE OR REPLACE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN RETURN NULL; END'");
  run(*first_,
      "CREATE TRIGGER swallow BEFORE INSERT ON tenure_fence FOR EACH ROW "
      "EXECUTE FUNCTION swallow()");
  run(*first_, "BEGIN");

  const auto admitted = PostgresFence::on(*first_).value().admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::not_checked);
  EXPECT_EQ(admitted.error().error, Errc::unavailable);
}

TEST_F(PostgresFenceTest, a_broken_connection_is_unavailable) {
  auto fence = PostgresFence::on(*first_).value();
  run(*first_, "BEGIN");
  run(*second_,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
      "WHERE state = 'idle in transaction'");

  const auto noticed = fence.admit("x", ann);
  ASSERT_FALSE(noticed);
  EXPECT_EQ(noticed.error().error, Errc::unavailable);
  const auto known = fence.admit("x", ann);
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().error, Errc::unavailable);
  EXPECT_EQ(code_of(fence.highest("x")), Errc::unavailable);
}

}  // namespace
}  // namespace tenure::test
