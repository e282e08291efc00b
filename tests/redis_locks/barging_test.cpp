#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client.hpp>

#include "support/redis_server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class RedisBarging : public ::testing::Test {
 protected:
  /// What redis-cli, which knows nothing of us, answers.
  std::string redis_cli(const std::string& command) const {
    const auto line = "redis-cli -p " + std::to_string(server.port()) + " " + command;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    std::string answer;
    for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) {
      answer.push_back(static_cast<char>(byte));
    }
    ::pclose(pipe);
    return answer.substr(0, answer.find('\n'));
  }

  RedisServer server;
  Client ann = connect(server.url(), {.request_timeout = patience}).value();
  Mutex mutex = ann.mutex("lock:orders", {.fairness = Fairness::barging});
};

// 000.070-073: the plain key, as everybody has it.
TEST_F(RedisBarging, what_we_hold_is_refused_to_redis_cli) {
  auto guard = mutex.lock().value();

  EXPECT_EQ(redis_cli("SET lock:orders me NX PX 30000"), "");
  EXPECT_GT(guard.token(), FencingToken{});
  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(guard.unlock());

  EXPECT_EQ(redis_cli("SET lock:orders me NX PX 30000"), "OK");
}

TEST_F(RedisBarging, what_redis_cli_holds_is_refused_to_us) {
  ASSERT_EQ(redis_cli("SET lock:orders me NX PX 300000"), "OK");

  EXPECT_EQ(mutex.try_lock().error(), Errc::would_block);
  EXPECT_EQ(mutex.try_lock_for(10ms).error(), Errc::timed_out);
  EXPECT_EQ(redis_cli("GET lock:orders"), "me");
}

TEST_F(RedisBarging, who_waits_gets_it_when_redis_cli_lets_go) {
  ASSERT_EQ(redis_cli("SET lock:orders me NX PX 300000"), "OK");
  std::jthread waiter([&] { EXPECT_TRUE(mutex.lock()); });

  ASSERT_EQ(redis_cli("DEL lock:orders"), "1");

  waiter.join();
}

TEST_F(RedisBarging, who_waits_gets_it_when_the_other_dies) {
  ASSERT_EQ(redis_cli("SET lock:orders me NX PX 50"), "OK");

  EXPECT_TRUE(mutex.lock());
}

// It is renewed, and its loss is found out.
TEST_F(RedisBarging, a_key_that_somebody_deletes_is_lost) {
  auto guard = ann.mutex("lock:b", {.ttl = 300ms, .fairness = Fairness::barging}).lock().value();
  const auto lost = guard.lost();
  const auto later = std::chrono::steady_clock::now() + 400ms;
  EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > later; }));
  EXPECT_TRUE(guard.owns_lock());

  redis_cli("SET lock:b thief");

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
  EXPECT_EQ(redis_cli("GET lock:b"), "thief");
}

// Two kinds of lock by one name would not exclude each other: told instead.
TEST_F(RedisBarging, a_fair_lock_of_the_same_name_is_an_error_and_not_a_second_lock) {
  {
    const auto guard = mutex.lock().value();
    EXPECT_EQ(ann.mutex("lock:orders").lock().error(), Errc::invalid_argument);
  }
  EXPECT_TRUE(eventually([&] { return redis_cli("EXISTS lock:orders") == "0"; }));
  const auto fair = ann.mutex("lock:orders").lock().value();

  EXPECT_EQ(mutex.lock().error(), Errc::invalid_argument);
  EXPECT_EQ(redis_cli("EXISTS lock:orders"), "0");
}

TEST_F(RedisBarging, is_for_a_mutex_on_redis) {
  const LockOptions barging{.fairness = Fairness::barging};

  EXPECT_EQ(ann.rw_lock("r", barging).lock_shared().error(), Errc::unsupported);
  EXPECT_EQ(ann.semaphore("s", {.capacity = 2}, barging).try_acquire().error(), Errc::unsupported);
  EXPECT_EQ(connect("memory://").value().mutex("a", barging).lock().error(), Errc::unsupported);
}

// What is left of a fair lock for a minute after its holder died is no lock.
TEST_F(RedisBarging, a_fair_lock_whose_time_is_over_is_in_nobodys_way) {
  const std::string head = "{tenure:lock:orders}";
  const std::string dead = "H 5 00000000000000ff.1 L X nobody dead\n 0000000000000";
  ASSERT_EQ(server.ask({"SET", head, dead, "PX", "60000"}), "OK");

  auto guard = mutex.lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(ann.mutex("lock:orders").try_lock().error(), Errc::invalid_argument);
  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(ann.mutex("lock:orders").try_lock());
}

// Somebody's tool made it persist: it is held for another minute, and not for ever.
TEST_F(RedisBarging, a_fair_lock_that_was_made_to_persist_has_a_minute) {
  const auto held = ann.mutex("lock:orders").lock().value();
  ASSERT_EQ(server.ask({"PERSIST", "{tenure:lock:orders}"}), "1");

  EXPECT_EQ(mutex.try_lock().error(), Errc::invalid_argument);

  EXPECT_GT(std::stoll(server.ask({"PTTL", "{tenure:lock:orders}"})), 60'000);
}

}  // namespace
}  // namespace tenure::test
