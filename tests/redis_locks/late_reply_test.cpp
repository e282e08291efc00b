#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/net/tcp_relay.hpp"
#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A client whose replies can be delayed, so that the server executes its commands long before the
/// client knows. The lease is renewed in between; the client must not count a hold for longer than
/// the server does.
class RedisLateReply : public ::testing::Test {
 protected:
  static constexpr auto ttl = 3s;
  static constexpr long memory_ms = 60'000;  // time that a head outlives its holder

  /// Lower bound of the time until which the server counts its only member.
  [[nodiscard]] Clock::time_point counted_until() {
    const auto head = server.command({"GET", "{tenure:a}"});
    if (head.starts_with("H ")) {
      const auto left = std::stol(server.command({"PTTL", "{tenure:a}"})) - memory_ms;
      return Clock::now() + std::chrono::milliseconds(left);
    }
    const auto entry = server.command({"ZRANGE", "{tenure:a}:e", "0", "0", "WITHSCORES"});
    const auto now = server.command({"TIME"});
    const auto now_ms = std::stoll(now) * 1000 + std::stoll(now.substr(now.find(' '))) / 1000;
    return Clock::now() +
           std::chrono::milliseconds(std::stoll(entry.substr(entry.find(' '))) - now_ms);
  }
  /// Less than half of the member's TTL is left, so its lease has been renewed.
  [[nodiscard]] bool is_half_over(const std::string& member) {
    const auto score = server.command({"ZSCORE", "{tenure:a}:e", member});
    const auto now = server.command({"TIME"});
    const auto now_ms = std::stoll(now) * 1000 + std::stoll(now.substr(now.find(' '))) / 1000;
    return score != "(nil)" && std::stoll(score) - now_ms < ttl / 2ms;
  }

  RedisServer server;
  TcpRelay proxy{server.port()};
  Client far = connect("redis://127.0.0.1:" + std::to_string(proxy.port()),
                       {.request_timeout = test_timeout})
                   .value();
  Client near = connect(server.url(), {.request_timeout = test_timeout}).value();
};

// L2, L3: the reply to an acquire is late, and the lease was renewed in between. The renewal did
// not reach the server, because the client knew of no hold yet; it then counted the hold for too
// long.
TEST_F(RedisLateReply, a_grant_with_a_late_reply_is_renewed_before_it_is_reported) {
  proxy.hold_replies();
  std::optional<Guard> guard;
  std::jthread asker([&] { guard = far.mutex("a", {.ttl = ttl}).lock().value(); });
  ASSERT_TRUE(eventually([&] {
    const auto left = std::stol(server.command({"PTTL", "{tenure:a}"}));
    return left > 0 && left - memory_ms < ttl / 2ms;
  }));

  proxy.pass_replies();
  asker.join();

  const auto believed = guard->valid_until();
  EXPECT_LE(believed, counted_until());
  EXPECT_TRUE(guard->unlock());
}

// The same for a position in the queue and the hand-over that follows.
TEST_F(RedisLateReply, a_wait_with_a_late_reply_is_renewed_before_its_grant_is_reported) {
  auto first = near.mutex("a").lock().value();
  proxy.hold_replies();
  std::optional<Guard> guard;
  std::jthread asker([&] { guard = far.mutex("a", {.ttl = ttl}).lock().value(); });
  ASSERT_TRUE(eventually([&] { return server.command({"ZCARD", "{tenure:a}:q"}) == "1"; }));
  const auto member = server.command({"ZRANGE", "{tenure:a}:q", "0", "0"});
  ASSERT_TRUE(eventually([&] { return is_half_over(member); }));

  proxy.pass_replies();
  EXPECT_TRUE(first.unlock());
  asker.join();

  const auto believed = guard->valid_until();
  EXPECT_LE(believed, counted_until());
  EXPECT_TRUE(guard->unlock());
}

// A longer TTL that is requested before the reply applies once the server knows it.
TEST_F(RedisLateReply, a_ttl_change_before_the_reply_applies_to_the_grant) {
  const auto lease = far.lease({.ttl = ttl}).value();
  proxy.hold_replies();
  std::optional<Guard> guard;
  std::jthread asker([&] { guard = far.mutex("a", {.lease = lease}).lock().value(); });
  ASSERT_TRUE(eventually([&] { return server.command({"EXISTS", "{tenure:a}"}) == "1"; }));

  EXPECT_TRUE(lease.renew(60s));
  proxy.pass_replies();
  asker.join();

  const auto believed = guard->valid_until();
  EXPECT_GT(believed, Clock::now() + 30s);
  EXPECT_LE(believed, counted_until());
  EXPECT_TRUE(guard->unlock());
}

// A request that is cancelled before the reply leaves nothing behind, even if it was granted.
TEST_F(RedisLateReply, a_late_grant_of_a_cancelled_request_is_released) {
  proxy.hold_replies();
  std::jthread asker([&] {
    auto late = far.mutex("a", {.ttl = ttl}).try_lock_for(2s);
    // It can succeed only if the lease was not renewed in time.
    EXPECT_TRUE(late ? late->unlock().has_value() : late.error() == Errc::timed_out);
  });
  ASSERT_TRUE(eventually([&] {
    const auto left = std::stol(server.command({"PTTL", "{tenure:a}"}));
    return left > 0 && left - memory_ms < (ttl - 2'200ms) / 1ms;
  }));

  proxy.pass_replies();
  asker.join();

  EXPECT_TRUE(near.mutex("a").try_lock_for(test_timeout));
}

}  // namespace
}  // namespace tenure::test
