#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class RedisBarging : public ::testing::Test {
 protected:
  /// First line of redis-cli's reply, as of a client that knows nothing about Tenure.
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
  Client ann = connect(server.url(), {.request_timeout = test_timeout}).value();
  Mutex mutex = ann.mutex("lock:orders", {.fairness = Fairness::barging});
};

// 000.070-073: compatible with the plain key of other clients.
TEST_F(RedisBarging, a_held_barging_lock_rejects_redis_cli) {
  auto guard = mutex.lock().value();

  EXPECT_EQ(redis_cli("SET lock:orders me NX PX 30000"), "");
  EXPECT_GT(guard.token(), FencingToken{});
  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(guard.unlock());

  EXPECT_EQ(redis_cli("SET lock:orders me NX PX 30000"), "OK");
}

TEST_F(RedisBarging, a_key_set_by_redis_cli_rejects_the_client) {
  ASSERT_EQ(redis_cli("SET lock:orders me NX PX 300000"), "OK");

  EXPECT_EQ(mutex.try_lock().error(), Errc::would_block);
  EXPECT_EQ(mutex.try_lock_for(10ms).error(), Errc::timed_out);
  EXPECT_EQ(redis_cli("GET lock:orders"), "me");
}

TEST_F(RedisBarging, a_waiter_acquires_after_redis_cli_deletes_the_key) {
  ASSERT_EQ(redis_cli("SET lock:orders me NX PX 300000"), "OK");
  std::jthread waiter([&] { EXPECT_TRUE(mutex.lock()); });

  ASSERT_EQ(redis_cli("DEL lock:orders"), "1");

  waiter.join();
}

TEST_F(RedisBarging, a_waiter_acquires_after_the_key_of_a_dead_holder_expires) {
  ASSERT_EQ(redis_cli("SET lock:orders me NX PX 50"), "OK");

  EXPECT_TRUE(mutex.lock());
}

// The key is renewed, and its loss is detected.
TEST_F(RedisBarging, an_overwritten_key_is_reported_as_lost) {
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

// Two kinds of lock with one name would not exclude each other, so this is an error.
TEST_F(RedisBarging, a_fair_lock_of_the_same_name_is_an_error) {
  {
    const auto guard = mutex.lock().value();
    EXPECT_EQ(ann.mutex("lock:orders").lock().error(), Errc::invalid_argument);
  }
  EXPECT_TRUE(eventually([&] { return redis_cli("EXISTS lock:orders") == "0"; }));
  const auto fair = ann.mutex("lock:orders").lock().value();

  EXPECT_EQ(mutex.lock().error(), Errc::invalid_argument);
  EXPECT_EQ(redis_cli("EXISTS lock:orders"), "0");
}

TEST_F(RedisBarging, barging_is_supported_by_redis_mutexes_only) {
  const LockOptions barging{.fairness = Fairness::barging};

  EXPECT_EQ(ann.rw_lock("r", barging).lock_shared().error(), Errc::unsupported);
  EXPECT_EQ(ann.semaphore("s", {.capacity = 2}, barging).try_acquire().error(), Errc::unsupported);
  EXPECT_EQ(connect("memory://").value().mutex("a", barging).lock().error(), Errc::unsupported);
}

// The record that a fair lock leaves for a minute after its holder has died is not a lock.
TEST_F(RedisBarging, an_expired_fair_lock_does_not_block_a_barging_lock) {
  const std::string head = "{tenure:lock:orders}";
  const std::string dead = "H 5 00000000000000ff.1 L X client dead\n 0000000000000";
  ASSERT_EQ(server.command({"SET", head, dead, "PX", "60000"}), "OK");

  auto guard = mutex.lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(ann.mutex("lock:orders").try_lock().error(), Errc::invalid_argument);
  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(ann.mutex("lock:orders").try_lock());
}

// PERSIST by some tool: the lock is held for one more minute, and not forever.
TEST_F(RedisBarging, a_persisted_fair_lock_expires_after_a_minute) {
  const auto held = ann.mutex("lock:orders").lock().value();
  ASSERT_EQ(server.command({"PERSIST", "{tenure:lock:orders}"}), "1");

  EXPECT_EQ(mutex.try_lock().error(), Errc::invalid_argument);

  EXPECT_GT(std::stoll(server.command({"PTTL", "{tenure:lock:orders}"})), 60'000);
}

}  // namespace
}  // namespace tenure::test
