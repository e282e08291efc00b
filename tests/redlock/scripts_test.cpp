#include "backends/redlock/scripts.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using backends::redlock::Script;

/// Fixture that runs the scripts with EVAL on one real server.
class RedlockScripts : public ::testing::Test {
 protected:
  std::string run(Script script, std::vector<std::string> keys, std::vector<std::string> words) {
    std::vector<std::string> all{"EVAL", std::string(text_of(script).text),
                                 std::to_string(keys.size())};
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), words.begin(), words.end());
    return server.command(all);
  }
  /// Reply without its last word, the server's time.
  std::string vote(const std::string& member, const std::string& client = "-",
                   const std::string& not_after = "0", const std::string& token = "0",
                   const std::string& ttl = "30000") {
    const auto answer = run(Script::vote, {"{tenure:a}", "a", "{tenure:a}:w"},
                            {"R " + member + " " + ttl + " 0 " + token + " - me owner\n", token,
                             std::to_string(std::stoll(ttl) + 60'000),
                             client == "-" ? client : "+" + client, not_after});
    const auto space = answer.rfind(' ');
    return space == std::string::npos ? "1 " + token : answer.substr(0, space);
  }
  /// `begin`: expected prefix of the head.
  std::string unvote(const std::string& member, const std::string& begin = "-") {
    return run(Script::withdraw_vote, {"{tenure:a}", "{tenure:a}:w"},
               {"T 0 " + member, begin, "-"});
  }
  std::string extend(const std::string& member, const std::string& ttl,
                     const std::string& change = "0") {
    return run(Script::extend, {"{tenure:a}"}, {member, ttl, change});
  }
  [[nodiscard]] std::int64_t micros() {
    const auto time = server.command({"TIME"});
    return std::stoll(time) * 1'000'000 + std::stoll(time.substr(time.find(' ')));
  }
  [[nodiscard]] static std::int64_t token_in(const std::string& answer) {
    return std::stoll(answer.substr(2));
  }

  RedisServer server;
};

// 003.011, 003.012, 003.030: one vote at a time, and only its owner withdraws it.
TEST_F(RedlockScripts, a_vote_belongs_to_one_acquisition_until_it_is_withdrawn) {
  EXPECT_TRUE(vote("x.1").starts_with("1 "));

  EXPECT_TRUE(vote("y.1").starts_with("0 "));
  EXPECT_EQ(unvote("y.1"), "0");
  EXPECT_TRUE(vote("x.1").starts_with("1 ")) << "a retry";
  EXPECT_EQ(unvote("x.1"), "1");
  EXPECT_EQ(unvote("x.1"), "3") << "a retry";
  EXPECT_TRUE(vote("y.1").starts_with("1 "));
}

// 003-B9: a late vote would block the server for a whole TTL.
TEST_F(RedlockScripts, a_vote_after_its_deadline_changes_nothing) {
  const auto early = std::to_string(micros() - 1);
  const auto later = std::to_string(micros() + 60'000'000);

  EXPECT_EQ(vote("x.1", "-", early), "-1");
  EXPECT_EQ(server.command({"DBSIZE"}), "0");
  EXPECT_TRUE(vote("x.1", "-", later).starts_with("1 "));
}

// The servers accept a proposed token, unless the proposer's clock is wrong.
TEST_F(RedlockScripts, a_plausible_proposed_token_is_accepted) {
  const auto now = micros();
  const auto near = std::to_string(now + 5'000'000);

  EXPECT_EQ(vote("x.1", "-", "0", near), "1 " + near);
  EXPECT_EQ(unvote("x.1"), "1");
  EXPECT_EQ(vote("x.2", "-", "0", near), "1 " + std::to_string(now + 5'000'001)) << "they grow";
  EXPECT_EQ(unvote("x.2"), "1");
  EXPECT_EQ(vote("x.3", "-", "0", std::to_string(now + 3'600'000'000)),
            "1 " + std::to_string(now + 5'000'002));
}

TEST_F(RedlockScripts, a_chosen_token_is_stored_by_the_voters) {
  const auto chosen = std::to_string(micros() + 8'000'000);
  vote("x.1");

  EXPECT_EQ(run(Script::write_back, {"{tenure:a}"}, {"x.1", chosen}), "1");
  EXPECT_EQ(run(Script::write_back, {"{tenure:a}"}, {"y.1", chosen}), "0");
  EXPECT_EQ(unvote("x.1"), "1");

  EXPECT_EQ(token_in(vote("y.1")), std::stoll(chosen) + 1);
}

// 003.020, 003.038: a vote expires 60 s before the record of its token.
TEST_F(RedlockScripts, an_expired_vote_can_be_granted_again) {
  const auto first = token_in(vote("x.1", "-", "0", "0", "50"));

  ASSERT_TRUE(eventually([&] { return vote("y.1").starts_with("1 "); }));

  EXPECT_GT(token_in(vote("y.1")), first);
  EXPECT_EQ(unvote("x.1"), "0") << "the next vote is not withdrawn";
  EXPECT_EQ(extend("x.1", "1000"), "0");
}

// 003.013, 003.031, 003-B13
TEST_F(RedlockScripts, only_the_holder_of_the_vote_extends_it) {
  EXPECT_EQ(extend("x.1", "1000"), "3") << "no member has the vote";
  vote("x.1", "-", "0", "0", "1000");

  EXPECT_EQ(extend("x.1", "50000"), "1");
  EXPECT_GT(std::stoll(server.command({"PTTL", "{tenure:a}"})), 100'000);
  EXPECT_EQ(extend("x.1", "10"), "1") << "a renewal";
  EXPECT_GT(std::stoll(server.command({"PTTL", "{tenure:a}"})), 100'000) << "never shortens";
  EXPECT_EQ(extend("y.1", "50000"), "0");
}

// 003.006: and a late change does not undo a later one.
TEST_F(RedlockScripts, ttl_changes_are_applied_once_and_in_order) {
  vote("x.1");

  EXPECT_EQ(extend("x.1", "500000", "8"), "1");
  EXPECT_EQ(extend("x.1", "100", "7"), "1");

  EXPECT_GT(std::stoll(server.command({"PTTL", "{tenure:a}"})), 500'000);
}

TEST_F(RedlockScripts, the_first_reachable_waiter_is_notified) {
  server.subscribe("tenure:wake:bob");
  vote("x.1");
  vote("z.1", "dead");
  vote("y.1", "bob");
  vote("w.1", "cid");

  EXPECT_EQ(unvote("x.1", "R x.1 30000 0 0 - "), "2");

  EXPECT_EQ(server.next_message(), "f a");
  EXPECT_EQ(server.command({"ZRANGE", "{tenure:a}:w", "0", "-1"}), "cid");
}

TEST_F(RedlockScripts, a_notification_carries_the_whole_lock_name) {
  const std::string head = "{tenure:a:}b}";
  server.subscribe("tenure:wake:bob");
  server.command({"SET", head, "R x.1 30000 0 1 + me owner\n", "PX", "90000"});
  server.command({"ZADD", head + ":w", "1", "bob"});

  EXPECT_EQ(run(Script::withdraw_vote, {head, head + ":w"}, {"T 1 x.1", "R x.1 30000 0 1 - ", "-"}),
            "2");

  EXPECT_EQ(server.next_message(), "f a:}b");
}

TEST_F(RedlockScripts, a_granted_client_leaves_the_wake_list) {
  server.command({"ZADD", "{tenure:a}:w", "1", "bob", "2", "cid"});
  const auto token = std::to_string(micros());

  const auto answer =
      run(Script::vote, {"{tenure:a}", "a", "{tenure:a}:w"},
          {"R y.1 30000 0 " + token + " - bob owner\n", token, "90000", "*bob", "0"});

  EXPECT_GE(std::stoll(answer), std::stoll(token)) << answer;
  EXPECT_EQ(server.command({"ZRANGE", "{tenure:a}:w", "0", "-1"}), "cid");
}

TEST_F(RedlockScripts, the_wake_list_holds_at_most_a_thousand_clients) {
  vote("x.1");
  std::vector<std::string> many{"ZADD", "{tenure:a}:w"};
  for (int n = 0; n < 1000; ++n) {
    many.insert(many.end(), {"1", "client " + std::to_string(n)});
  }
  server.command(many);

  vote("y.1", "bob");

  EXPECT_EQ(server.command({"ZCARD", "{tenure:a}:w"}), "1000");
}

TEST_F(RedlockScripts, a_force_release_notifies_the_holder) {
  server.subscribe("tenure:wake:me");
  vote("x.1");

  EXPECT_EQ(run(Script::force_release, {"{tenure:a}"}, {"tenure:wake:", "a"}), "1");

  EXPECT_EQ(server.next_message(), "t x.1 a");
  EXPECT_EQ(run(Script::force_release, {"{tenure:a}"}, {"tenure:wake:", "a"}), "0");
  EXPECT_EQ(run(Script::holder, {"{tenure:a}"}, {}), "");
}

// Compatible with other Redlock libraries.
TEST_F(RedlockScripts, a_plain_vote_is_a_plain_key) {
  const auto plain = [&](const std::string& value) {
    return run(Script::vote_plain, {"a", "{tenure:a}"}, {value, "30000", "0"});
  };

  EXPECT_TRUE(plain("x.1").starts_with("1 0 "));
  EXPECT_EQ(server.command({"GET", "a"}), "x.1");
  EXPECT_TRUE(plain("y.1").starts_with("0 "));
  EXPECT_TRUE(vote("x.1").starts_with("-2 ")) << "a fenced lock of the same name";
  EXPECT_EQ(run(Script::extend_plain, {"a"}, {"x.1", "100", "1"}), "1");
  EXPECT_EQ(run(Script::withdraw_vote_plain, {"a"}, {"y.1"}), "0");
  EXPECT_EQ(run(Script::withdraw_vote_plain, {"a"}, {"x.1"}), "1");
  vote("x.1");
  EXPECT_TRUE(plain("x.1").starts_with("-2 "));
}

// PERSIST by some tool neither frees the vote nor keeps it forever, as with redis://.
TEST_F(RedlockScripts, a_persisted_vote_stays_and_expires_after_a_minute) {
  const std::string head = "{tenure:a}";
  const auto persist = [&] { ASSERT_EQ(server.command({"PERSIST", head}), "1"); };
  const auto left = [&] { return std::stoll(server.command({"PTTL", head})) - 60'000; };
  vote("x.1");

  persist();
  EXPECT_TRUE(run(Script::holder, {head}, {}).starts_with("x.1 "));
  EXPECT_EQ(run(Script::write_back, {head}, {"x.1", "1"}), "1");
  EXPECT_TRUE(vote("y.1").starts_with("0 "));
  EXPECT_GT(left(), 50'000);
  EXPECT_LE(left(), 60'000);
  persist();
  EXPECT_EQ(extend("y.1", "1000"), "0");
  EXPECT_GT(left(), 50'000);
  persist();
  EXPECT_EQ(extend("x.1", "90000"), "1");
  EXPECT_GT(left(), 80'000);
  persist();
  EXPECT_TRUE(run(Script::vote_plain, {"a", head}, {"y.1", "30000", "0"}).starts_with("-2 "));
  EXPECT_GT(left(), 50'000);
  persist();
  EXPECT_EQ(run(Script::force_release, {head}, {"tenure:wake:", "a"}), "1");
}

// The same for a lock of redis:// on one of the servers.
TEST_F(RedlockScripts, a_persisted_redis_lock_is_not_a_free_vote) {
  ASSERT_EQ(server.command({"SET", "{tenure:a}", "H 5 00000000000000ff.1 L X me owner\n"}), "OK");

  EXPECT_TRUE(vote("x.1").starts_with("-2 "));

  EXPECT_NE(server.command({"PTTL", "{tenure:a}"}), "-1");
}

}  // namespace
}  // namespace tenure::test
