#include <cstdint>
#include <latch>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/scripts.hpp"

// The lock of a dead holder is free when its TTL is over: neither earlier nor later.

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class RedisExpiry : public RedisScripts {
 protected:
  /// Time that the record of a lock outlives its holder's TTL.
  static constexpr std::int64_t memory_ms = 60'000;

  [[nodiscard]] std::int64_t server_ms() {
    std::istringstream words(server.command({"TIME"}));
    std::int64_t seconds = 0;
    std::int64_t micros = 0;
    words >> seconds >> micros;
    return seconds * 1000 + micros / 1000;
  }
  /// A token is the time of its grant in microseconds.
  [[nodiscard]] static std::int64_t granted_ms(std::uint64_t token) {
    return static_cast<std::int64_t>(token / 1000);
  }
  /// Tries to acquire the lock until it is free. The holder's TTL ends between these two times.
  void expect_free_between(std::int64_t earliest_ms, std::int64_t latest_ms) {
    ASSERT_TRUE(eventually([&] {
      const auto before = server_ms();
      const auto answer = try_acquire({.member = "bob"});
      const auto after = server_ms();
      EXPECT_TRUE(is_granted(answer) || before <= latest_ms) << "later than its TTL";
      EXPECT_TRUE(!is_granted(answer) || after >= earliest_ms) << "before its TTL";
      return is_granted(answer);
    }));
  }
};

// 001.024
TEST_F(RedisExpiry, the_lock_of_a_dead_holder_is_free_at_its_ttl) {
  constexpr int ttl = 300;
  const auto token = acquire({.member = "ann", .ttl = ttl});
  const auto latest = server_ms() + ttl;

  expect_free_between(granted_ms(std::stoull(token)) + ttl, latest);
}

TEST_F(RedisExpiry, a_renewed_lock_of_a_dead_holder_is_free_at_its_ttl) {
  constexpr int ttl = 1500;
  acquire({.member = "ann", .ttl = 1000});
  const auto earliest = server_ms() + ttl;
  ASSERT_EQ(renew("ann", ttl), "1");

  expect_free_between(earliest, server_ms() + ttl);
}

// The form F of a record: members with an expiry each.
TEST_F(RedisExpiry, the_share_of_a_dead_holder_is_free_at_its_ttl) {
  constexpr int ttl = 300;
  acquire({.member = "ann", .want = "S", .ttl = 10});
  const auto earliest = server_ms() + ttl;
  acquire({.member = "cid", .want = "S", .ttl = ttl});

  expect_free_between(earliest, server_ms() + ttl);
}

// With any number of locks that a client acquires and renews at the same time.
TEST_F(RedisExpiry, every_lock_of_many_threads_expires_one_ttl_after_it_was_granted_or_renewed) {
  constexpr int threads_count = 32;
  constexpr auto ttl = 20s;
  constexpr std::int64_t ttl_ms = ttl / 1ms;
  const auto client = connect(server.url(), {.request_timeout = test_timeout}).value();
  std::latch holding(threads_count);
  std::latch checked(1);
  std::vector<std::uint64_t> tokens(threads_count);
  std::vector<std::jthread> threads;
  for (std::size_t n = 0; n < threads_count; ++n) {
    threads.emplace_back([&, n] {
      const auto mutex = client.mutex(std::to_string(n), {.ttl = ttl});
      for (int round = 0; round < 10; ++round) {
        const auto guard = mutex.lock();
        EXPECT_TRUE(guard) << to_string(guard.error());
      }
      const auto guard = mutex.lock();
      tokens[n] = guard ? guard->token().get() : 0;
      holding.count_down();
      checked.wait();
    });
  }
  holding.wait();

  for (std::size_t n = 0; n < threads_count; ++n) {
    const auto key = "{tenure:" + std::to_string(n) + "}";
    const auto end = std::stoll(server.command({"PEXPIRETIME", key})) - memory_ms;
    EXPECT_GE(end, granted_ms(tokens[n]) + ttl_ms) << n;
    EXPECT_LE(end, server_ms() + ttl_ms) << n;
  }
  checked.count_down();
}

}  // namespace
}  // namespace tenure::test
