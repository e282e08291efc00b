#include <string>

#include <gtest/gtest.h>

#include "support/redis/scripts.hpp"

namespace tenure::test {
namespace {

using MutexScripts = RedisScripts;

// 000.071, 000.111, 001.001, 001.004, 001.006, 001.010, 001.011: at most one member holds the lock.
TEST_F(MutexScripts, acquire_exclusion) {
  EXPECT_TRUE(is_granted(acquire({.member = "ann"})));

  EXPECT_EQ(try_acquire({.member = "bob"}), "0");
  EXPECT_TRUE(holds("ann"));
  EXPECT_FALSE(holds("bob"));
}

// 000.072, 000.112: only the holder renews, and a renewal extends the expiry.
TEST_F(MutexScripts, only_the_holder_extends_the_key_expiry) {
  acquire({.member = "ann", .ttl = 10'000});
  const auto before = std::stoll(server.command({"PTTL", head}));

  EXPECT_EQ(renew("bob", 90'000), "0");
  EXPECT_LE(std::stoll(server.command({"PTTL", head})), before);
  EXPECT_EQ(renew("ann", 90'000), "1");

  EXPECT_GT(std::stoll(server.command({"PTTL", head})), before + 70'000);
}

// 000-B4: a renewal with a short TTL never shortens the expiry.
TEST_F(MutexScripts, a_renewal_never_shortens_the_ttl) {
  acquire({.member = "ann", .ttl = 90'000});

  EXPECT_EQ(renew("ann", 1000), "1");

  EXPECT_GT(std::stoll(server.command({"PTTL", head})), 140'000);
}

// 000.073, 000.113, 001.021, 001.028, 001-B7: a release by another member has no effect and reports
// that.
TEST_F(MutexScripts, owner_gated_release) {
  acquire({.member = "ann"});

  EXPECT_EQ(release("bob"), "0");
  EXPECT_EQ(release("ann", 7), "0") << "another acquisition of the same owner";
  EXPECT_TRUE(holds("ann"));
  EXPECT_EQ(release("ann"), "1");

  EXPECT_FALSE(holds("ann"));
}

// 000.114
TEST_F(MutexScripts, re_acquire_after_release) {
  const auto first = acquire({.member = "ann"});
  release("ann");
  const auto second = acquire({.member = "bob"});

  EXPECT_TRUE(is_granted(second));
  EXPECT_GT(second, first);
}

// 000.069, 000.087, 000.115, 001.002, 001.009, 001.024: the lock of a crashed holder becomes free.
TEST_F(MutexScripts, lease_expiry_frees_the_key) {
  acquire({.member = "ann", .ttl = 5});

  EXPECT_TRUE(eventually([&] { return is_granted(try_acquire({.member = "bob"})); }));
  EXPECT_EQ(renew("ann"), "0");
  EXPECT_EQ(release("ann"), "0");
  EXPECT_TRUE(holds("bob"));
}

// 000-B22, 001.014, 001-B2: a reply was lost. The retry finds its own hold and its own position.
TEST_F(MutexScripts, a_repeated_request_finds_the_result_of_the_first) {
  const auto token = acquire({.member = "ann"});
  EXPECT_EQ(acquire({.member = "ann"}), "1 " + token + " 0 1");
  EXPECT_TRUE(is_queued(acquire({.member = "bob"})));
  EXPECT_TRUE(is_queued(acquire({.member = "cid"})));

  EXPECT_TRUE(acquire({.member = "bob"}).starts_with("2 1 "));

  EXPECT_EQ(waiting(), "bob cid");
  EXPECT_EQ(release("ann"), "1");
  EXPECT_EQ(release("ann"), "3") << "a repeated release finds its result, too";
}

// 001.003, 001.007, 001.012, 001.013, 001.016, 001.018-020, 001-B1, 001-B4: a request is queued
// from its first attempt, and release hands over.
TEST_F(MutexScripts, release_grants_the_first_waiter) {
  subscribe();
  acquire({.member = "ann"});
  EXPECT_TRUE(acquire({.member = "bob"}).starts_with("2 1 "));
  EXPECT_TRUE(acquire({.member = "cid"}).starts_with("2 2 "));

  EXPECT_EQ(release("ann"), "1");

  EXPECT_TRUE(holds("bob"));
  EXPECT_TRUE(server.next_message().starts_with("g bob 1 "));
  EXPECT_EQ(try_acquire({.member = "dan"}), "0");
  EXPECT_EQ(release("bob"), "1");
  EXPECT_TRUE(holds("cid"));
}

// 001.025, 001-B3: at the head, in the middle and at the tail; a dead waiter delays no other.
TEST_F(MutexScripts, expired_waiters_are_skipped) {
  subscribe();
  acquire({.member = "ann"});
  acquire({.member = "bob", .ttl = 1});
  acquire({.member = "cid"});
  acquire({.member = "dan", .ttl = 1});
  acquire({.member = "eve"});
  acquire({.member = "fay", .ttl = 1});
  EXPECT_TRUE(eventually([&] { return expire() != "0" && waiting() == "cid eve"; }));

  release("ann");
  EXPECT_TRUE(holds("cid"));
  release("cid");

  EXPECT_TRUE(holds("eve"));
}

// 001.025, 001.027, 001-B3: nor does a waiter whose process is gone before its TTL is over. It
// keeps its position.
TEST_F(MutexScripts, an_unreachable_waiter_is_skipped_and_keeps_its_position) {
  acquire({.member = "ann"});
  acquire({.member = "bob"});
  release("ann");
  EXPECT_FALSE(holds("bob"));

  EXPECT_TRUE(is_queued(acquire({.member = "cid", .queue = "wait"})) || holds("cid"));
  EXPECT_TRUE(holds("cid")) << "the only reachable member";
  EXPECT_EQ(waiting(), "bob");
  release("cid");

  EXPECT_TRUE(is_granted(acquire({.member = "bob"}))) << "the first waiter has returned";
}

// 001.026, 001-B10, 000-B5, 000-B13: leave affects the member's own position only.
TEST_F(MutexScripts, a_waiter_that_leaves_leaves_no_trace) {
  subscribe();
  acquire({.member = "ann"});
  acquire({.member = "bob", .request = 2});
  acquire({.member = "cid"});

  EXPECT_EQ(leave("bob", 9), "0") << "another request of the member";
  EXPECT_EQ(waiting(), "bob cid");
  EXPECT_EQ(leave("bob", 2), "0");
  EXPECT_EQ(leave("bob", 2), "0");
  release("ann");

  EXPECT_TRUE(holds("cid"));
  EXPECT_EQ(server.command({"HEXISTS", head + ":m", "bob"}), "0");
  EXPECT_TRUE(leave("cid").starts_with("1 ")) << "granted before: reported and kept";
  EXPECT_TRUE(holds("cid"));
}

// 001-B8, 000-B20, 000.173: only the last token remains, for one minute.
TEST_F(MutexScripts, a_free_lock_is_one_small_key_that_expires) {
  subscribe();
  acquire({.member = "ann"});
  acquire({.member = "bob"});
  release("ann");
  release("bob");

  EXPECT_EQ(server.command({"KEYS", "{tenure:a}*"}), head);
  EXPECT_EQ(server.command({"DBSIZE"}), "2") << "and the last token of all locks";
  EXPECT_LE(std::stoll(server.command({"PTTL", head})), 60'000);
  EXPECT_GT(std::stoll(server.command({"PTTL", head})), 0);
}

// 001-B8: also if all clients died.
TEST_F(MutexScripts, every_key_of_a_lock_expires_without_renewal) {
  acquire({.member = "ann"});
  acquire({.member = "bob"});

  for (const auto* suffix : {"", ":m", ":e", ":q"}) {
    EXPECT_GT(std::stoll(server.command({"PTTL", head + suffix})), 60'000) << suffix;
  }
}

// 000-B26, 001-B14: also if the clock steps back, simulated by a token from the future.
TEST_F(MutexScripts, tokens_grow_though_the_clock_steps_back) {
  acquire({.member = "ann"});
  release("ann");
  server.command({"SET", head, "T 8000000000000000 -"});

  EXPECT_EQ(acquire({.member = "bob"}), "8000000000000001");
  acquire({.member = "cid"});
  subscribe();
  release("bob");
  EXPECT_EQ(server.next_message(), "g cid 1 8000000000000002 1");
  release("cid");
  EXPECT_EQ(acquire({.member = "dan"}), "8000000000000003");
}

// The head of an idle lock expires together with the last token of this lock.
TEST_F(MutexScripts, tokens_of_an_expired_record_grow_though_the_clock_steps_back) {
  server.command({"SET", last_token, "8000000000000000"});

  EXPECT_EQ(acquire({.member = "ann"}), "8000000000000001");
  EXPECT_EQ(server.command({"GET", last_token}), "8000000000000001");
  EXPECT_EQ(server.command({"PTTL", last_token}), "-1") << "it never expires";
}

TEST_F(MutexScripts, every_grant_records_its_token) {
  subscribe();
  const auto recorded = [&] { return server.command({"GET", last_token}); };
  auto granted = acquire({.member = "ann", .want = "S"});
  EXPECT_EQ(granted, recorded());
  const auto word_of = [](const std::string& words, std::size_t which) {
    std::size_t from = 0;
    for (; which > 0; --which) {
      from = words.find(' ', from) + 1;
    }
    return words.substr(from, words.find(' ', from) - from);
  };

  granted = acquire({.member = "bob", .want = "S"});
  EXPECT_EQ(word_of(granted, 1), recorded()) << "beside another";
  acquire({.member = "cid"});
  release("ann");
  release("bob");
  EXPECT_EQ(word_of(server.next_message(), 3), recorded()) << "handed over";
  acquire({.member = "dan"});
  const auto token = word_of(server.command({"HGET", head + ":m", "cid"}), 1);
  run(Script::release, {"cid", "1", "-", token, "9"});
  EXPECT_EQ(word_of(server.next_message(), 3), recorded()) << "handed over on the short path";

  server.command({"SET", last_token, "8000000000000000"});
  release("dan");
  ASSERT_TRUE(is_granted(acquire({.member = "eve"})));
  EXPECT_EQ(recorded(), "8000000000000000") << "it never decreases";
}

// 000-B19: more expired members than Lua can unpack.
TEST_F(MutexScripts, ten_thousand_expired_waiters_are_removed) {
  acquire({.member = "ann", .ttl = 1});
  std::string fill =
      "for n = 1, 10000 do redis.call('HSET', KEYS[2], 'dead' .. n, 'X 1 1 x y') "
      "redis.call('ZADD', KEYS[3], 1, 'dead' .. n) redis.call('ZADD', KEYS[4], n, 'dead' .. n) end";
  acquire({.member = "bob"});
  server.command({"EVAL", fill, "4", head, head + ":m", head + ":e", head + ":q"});

  EXPECT_TRUE(eventually([&] { return is_granted(acquire({.member = "bob"})); }));

  EXPECT_TRUE(
      eventually([&] { return expire() != "0" && server.command({"HLEN", head + ":m"}) == "1"; }));
}

// 000-B21: one record with a kind.
TEST_F(MutexScripts, a_semaphore_of_the_same_name_is_an_error) {
  acquire({.member = "ann"});

  EXPECT_TRUE(acquire({.member = "bob", .want = "P1", .kind = "P3"}).starts_with("-2 "));
  release("ann");
  EXPECT_TRUE(is_granted(acquire({.member = "bob", .want = "P1", .kind = "P3"})));
  EXPECT_TRUE(acquire({.member = "ann"}).starts_with("-2 "));
  EXPECT_TRUE(acquire({.member = "cid", .want = "P1", .kind = "P4"}).starts_with("-2 "));
  EXPECT_TRUE(is_granted(acquire({.member = "dan", .want = "P2", .kind = "P3"})));
}

// A foreign value of the key is reported and not overwritten.
TEST_F(MutexScripts, a_key_of_another_type_is_an_error_and_stays) {
  server.command({"LPUSH", head, "mine"});
  EXPECT_TRUE(acquire({.member = "ann"}).starts_with("WRONGTYPE"));
  EXPECT_EQ(server.command({"LRANGE", head, "0", "-1"}), "mine");

  server.command({"DEL", head});
  server.command({"SET", head, "mine"});
  EXPECT_TRUE(acquire({.member = "ann"}).starts_with("TENURE"));
  EXPECT_EQ(server.command({"GET", head}), "mine");
}

// 001.003, 001.022, 001.029: the lock is free and the first waiter has not reconnected: a try does
// not pass the queue.
TEST_F(MutexScripts, a_newcomer_does_not_pass_a_queue_though_the_lock_is_free) {
  acquire({.member = "ann"});
  for (const auto* who : {"bob", "cid", "dan"}) {
    acquire({.member = who});
  }
  release("ann");  // no client receives the notification

  EXPECT_EQ(try_acquire({.member = "eve"}), "0");
  EXPECT_EQ(waiting(), "bob cid dan");
  subscribe();
  expire();

  EXPECT_TRUE(holds("bob"));
  release("bob");
  EXPECT_TRUE(holds("cid"));
}

// PERSIST by some tool neither releases the lock nor keeps it forever.
TEST_F(MutexScripts, a_persisted_key_is_held_and_expires_after_a_minute) {
  ASSERT_TRUE(is_granted(acquire({.member = "ann"})));
  ASSERT_EQ(server.command({"PERSIST", head}), "1");

  EXPECT_TRUE(holds("ann"));
  EXPECT_EQ(renew("ann"), "1");
  EXPECT_NE(server.command({"PTTL", head}), "-1");
  ASSERT_EQ(server.command({"PERSIST", head}), "1");
  EXPECT_EQ(expire(), "60000");
  EXPECT_EQ(try_acquire({.member = "bob"}), "0");
  EXPECT_EQ(renew("ann"), "1");
  EXPECT_NE(server.command({"PTTL", head}), "-1");
}

TEST_F(MutexScripts, only_an_exact_renewal_shortens_the_ttl) {
  ASSERT_TRUE(is_granted(acquire({.member = "ann", .ttl = 60'000})));
  const auto left = [&] { return std::stoll(server.command({"PTTL", head})) - 60'000; };

  EXPECT_EQ(renew("ann", 1000), "1");
  EXPECT_GT(left(), 50'000);
  EXPECT_EQ(run(Script::renew, {"=1000", "ann"}), "1");
  EXPECT_LE(left(), 1000);
}

TEST_F(MutexScripts, a_queue_holds_at_most_a_hundred_thousand_waiters) {
  ASSERT_TRUE(is_granted(acquire({.member = "ann"})));
  ASSERT_TRUE(is_queued(acquire({.member = "bob"})));
  const std::string many = R"(for n = 3, 100000 do
      redis.call('ZADD', KEYS[1], n, 'member ' .. n)
    end)";
  server.command({"EVAL", many, "1", head + ":q"});

  EXPECT_TRUE(is_queued(acquire({.member = "cid"}))) << "one more";
  EXPECT_EQ(acquire({.member = "dan"}), "-3 100000 requests are waiting already");

  EXPECT_EQ(server.command({"ZCARD", head + ":q"}), "100000");
  EXPECT_EQ(server.command({"HEXISTS", head + ":m", "dan"}), "0");
}

TEST_F(MutexScripts, reentries_of_a_hold_are_limited) {
  std::string answer;
  int entries = 0;
  do {
    answer = acquire({.member = "ann", .request = 100'000 + entries, .reentry = "reenter"});
    ++entries;
  } while (is_granted(answer) && entries < 10'000);

  EXPECT_EQ(answer, "-3 too many reentries of the hold");
  EXPECT_GT(entries, 500);
  EXPECT_TRUE(holds("ann"));
}

}  // namespace
}  // namespace tenure::test
