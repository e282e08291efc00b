#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/fence_redis.hpp>

#include "fence/connections.hpp"
#include "fence/databases.hpp"
#include "support/refusals.hpp"

namespace tenure::test {
namespace {

using Reason = FenceError::Reason;

constexpr FencingToken ann{100};
constexpr FencingToken bob{101};

class RedisFenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    database("redis").wipe();
    connection_ = connect_redis(database("redis").address());
  }
  RedisFence fence() { return RedisFence::on(*connection_).value(); }
  std::string value_of(const std::string& key) {
    const auto answer = run(*connection_, {"GET", key});
    return answer->type == REDIS_REPLY_NIL ? "" : std::string(answer->str, answer->len);
  }
  /// What a script of the user's answers; errors too.
  RedisAnswer evaluate(const std::string& script, const std::vector<std::string>& rest) {
    std::vector<const char*> words{"EVAL", script.c_str()};
    for (const auto& word : rest) {
      words.push_back(word.c_str());
    }
    return RedisAnswer(static_cast<redisReply*>(redisCommandArgv(
        connection_.get(), static_cast<int>(words.size()), words.data(), nullptr)));
  }

  Redis connection_;
};

TEST_F(RedisFenceTest, executes_all_writes_in_order_or_none) {
  auto fence = this->fence();
  ASSERT_TRUE(fence.admit(
      "x", bob, {{"SET", "{x}:a", {"1"}}, {"INCR", "{x}:a"}, {"HSET", "{x}:b", {"f", "1"}}}));

  EXPECT_FALSE(fence.admit("x", ann, {{"SET", "{x}:a", {"9"}}, {"DEL", "{x}:b"}}));

  EXPECT_EQ(value_of("{x}:a"), "2");
  EXPECT_EQ(run(*connection_, {"EXISTS", "{x}:b"})->integer, 1);
}

TEST_F(RedisFenceTest, rejects_older_tokens_after_an_admission_without_a_write) {
  auto fence = this->fence();

  EXPECT_TRUE(fence.admit("x", bob));
  EXPECT_EQ(reason_of(fence.admit("x", ann)), Reason::stale);
  EXPECT_EQ(reason_of(fence.admit_once("x", bob)), Reason::reused);
}

// A cluster hashes the text in the first braces, so writes can be in the slot of their fence.
TEST_F(RedisFenceTest, stores_the_token_under_a_key_with_the_resource_in_braces) {
  auto fence = this->fence();
  ASSERT_TRUE(fence.admit("accounts/42", ann));

  EXPECT_EQ(fence.key_of("accounts/42"), "tenure:fence:{accounts/42}");
  EXPECT_EQ(value_of("tenure:fence:{accounts/42}"), "100");
}

TEST_F(RedisFenceTest, two_prefixes_are_two_fences_and_must_not_contain_braces) {
  auto fence = this->fence();
  auto other = RedisFence::on(*connection_, {.key_prefix = "other:"}).value();
  ASSERT_TRUE(fence.admit("x", bob));

  EXPECT_TRUE(other.admit("x", ann));
  EXPECT_EQ(code_of(RedisFence::on(*connection_, {.key_prefix = "{a}"})), Errc::invalid_argument);
  EXPECT_EQ(code_of(RedisFence::on(*connection_, {.key_prefix = std::string(1025, 'a')})),
            Errc::invalid_argument);
}

constexpr std::string_view own_script = R"(
local verdict, highest = tenure_admit(KEYS[1], ARGV[1], ARGV[3] == 'once')
if verdict == 'admitted' then
  redis.call('APPEND', KEYS[2], ARGV[2])
end
return {verdict, highest}
)";

// 002.054-056
TEST_F(RedisFenceTest, works_inside_a_custom_script) {
  const auto script = std::string(RedisFence::lua()) + std::string(own_script);
  auto fence = this->fence();
  const auto ask = [&](FencingToken token, const std::string& way) {
    const auto answer =
        evaluate(script, {"2", fence.key_of("x"), "{x}:a", std::to_string(token.get()), "a", way});
    return RedisFence::read(answer.get(), token);
  };

  EXPECT_TRUE(ask(bob, "again"));
  EXPECT_TRUE(ask(bob, "again"));
  EXPECT_EQ(reason_of(ask(bob, "once")), Reason::reused);
  const auto stale = ask(ann, "again");
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, Reason::stale);
  EXPECT_EQ(stale.error().highest, bob);
  EXPECT_EQ(value_of("{x}:a"), "aa");
  EXPECT_EQ(reason_of(fence.admit("x", ann)), Reason::stale);  // one fence for both
}

TEST_F(RedisFenceTest, a_script_without_a_token_is_rejected) {
  const auto script = std::string(RedisFence::lua()) + std::string(own_script);
  for (const auto* token : {"", "0", "007", "-1", "1.5", "1e3", "abc", "99999999999999999999"}) {
    const auto answer = evaluate(script, {"2", "tenure:fence:{x}", "{x}:a", token, "a", "again"});
    const auto admitted = RedisFence::read(answer.get(), ann);
    ASSERT_FALSE(admitted) << token;
    EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
  }
  EXPECT_EQ(value_of("{x}:a"), "");
}

TEST_F(RedisFenceTest, a_malformed_reply_is_not_an_admission) {
  for (const auto* script :
       {"return 1", "return {'admitted'}", "return {'admitted', '101'}", "return {'stale', 'x'}",
        "return {'stale', '100'}", "return {{}, {}}", "return false"}) {
    const auto admitted = RedisFence::read(evaluate(script, {"0"}).get(), ann);
    ASSERT_FALSE(admitted) << script;
    EXPECT_NE(admitted.error().reason, Reason::stale) << script;
  }
  EXPECT_EQ(code_of(RedisFence::read(nullptr, ann)), Errc::unavailable);
}

TEST_F(RedisFenceTest, reloads_a_script_that_the_server_has_lost) {
  auto fence = this->fence();
  run(*connection_, {"SCRIPT", "FLUSH"});

  EXPECT_TRUE(fence.admit("x", ann, {{"SET", "{x}:a", {"1"}}}));
  EXPECT_EQ(value_of("{x}:a"), "1");
}

TEST_F(RedisFenceTest, rejects_a_server_that_may_evict_tokens) {
  run(*connection_, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  const auto refused = RedisFence::on(*connection_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::invalid_argument);

  run(*connection_, {"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
  EXPECT_TRUE(RedisFence::on(*connection_));
}

TEST_F(RedisFenceTest, nothing_is_written_when_the_server_is_out_of_memory) {
  auto fence = this->fence();
  run(*connection_, {"CONFIG", "SET", "maxmemory", "1"});

  const auto admitted = fence.admit("x", ann, {{"SET", "{x}:a", {"1"}}});

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::resource_exhausted);
  EXPECT_EQ(fence.highest("x"), FencingToken{0});
}

// Redis does not roll back, as the header documents.
TEST_F(RedisFenceTest, a_write_that_redis_rejects_is_reported_and_earlier_writes_remain) {
  auto fence = this->fence();

  const auto admitted = fence.admit("x", ann, {{"SET", "{x}:a", {"1"}}, {"LPUSH", "{x}:a", {"2"}}});

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::not_checked);
  EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
  EXPECT_EQ(value_of("{x}:a"), "1");
  EXPECT_EQ(fence.highest("x"), ann);
}

TEST_F(RedisFenceTest, a_foreign_value_in_the_key_of_the_token_is_not_overwritten) {
  auto fence = this->fence();
  run(*connection_, {"SET", fence.key_of("x"), "no token"});
  run(*connection_, {"LPUSH", fence.key_of("y"), "a list"});

  for (const auto* name : {"x", "y"}) {
    const auto admitted = fence.admit(name, ann);
    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
    EXPECT_EQ(code_of(fence.highest(name)), Errc::invalid_argument);
  }
  EXPECT_EQ(value_of(fence.key_of("x")), "no token");
}

TEST_F(RedisFenceTest, accepts_1000_writes_of_1000_arguments_with_any_bytes) {
  auto fence = this->fence();
  const std::vector<RedisWrite> many(RedisFence::writes_max, {"RPUSH", "{x}:a", {"1"}});
  const std::vector<RedisWrite> too_many(RedisFence::writes_max + 1, many.front());
  const std::vector<std::string> words(RedisFence::arguments_max, std::string("\0\r\n", 3));
  auto too_long = words;
  too_long.emplace_back("1");

  EXPECT_TRUE(fence.admit("x", ann, many));
  EXPECT_TRUE(fence.admit("x", ann, {{"RPUSH", "{x}:a", words}}));
  EXPECT_EQ(code_of(fence.admit("x", bob, too_many)), Errc::resource_exhausted);
  EXPECT_EQ(code_of(fence.admit("x", bob, {{"RPUSH", "{x}:a", too_long}})),
            Errc::resource_exhausted);
  EXPECT_EQ(code_of(fence.admit("x", bob, {{"", "{x}:a"}})), Errc::invalid_argument);
  EXPECT_EQ(run(*connection_, {"LLEN", "{x}:a"})->integer, 2000);
  EXPECT_EQ(fence.highest("x"), ann);
}

TEST_F(RedisFenceTest, a_broken_connection_is_unavailable) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);  // as every user of hiredis must
  auto fence = this->fence();
  const auto other = connect_redis(database("redis").address());
  run(*other, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});

  const auto admitted = fence.admit("x", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::not_checked);
  EXPECT_EQ(admitted.error().error, Errc::unavailable);
  EXPECT_EQ(code_of(fence.highest("x")), Errc::unavailable);
  EXPECT_EQ(code_of(RedisFence::on(*connection_)), Errc::unavailable);
}

}  // namespace
}  // namespace tenure::test
