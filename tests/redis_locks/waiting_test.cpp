#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/coroutine.hpp"
#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class RedisWaiting : public ::testing::Test {
 protected:
  [[nodiscard]] Client connect(std::chrono::milliseconds timeout = test_timeout) {
    return tenure::connect(server.url(), {.request_timeout = timeout}).value();
  }
  [[nodiscard]] std::int64_t waiters() {
    return std::stoll(server.command({"ZCARD", "{tenure:a}:q"}));
  }
  /// Number of calls of this command on the server.
  [[nodiscard]] std::int64_t calls_of(const std::string& command) {
    const auto all = server.command({"INFO", "commandstats"});
    const auto at = all.find("cmdstat_" + command + ":calls=");
    return at == std::string::npos ? 0 : std::stoll(all.substr(at + command.size() + 15));
  }

  RedisServer server;
};

Detached take_turn(Mutex mutex, std::shared_ptr<std::atomic<int>> turns) {
  auto guard = co_await mutex.lock_async();
  if (guard) {
    const auto unlocked = co_await guard->unlock_async();
    *turns += unlocked ? 1 : 0;
  }
}

// 001.023, 000-B11, 001-B9: with 1,000 waiters each release notifies the next one only. No client
// polls.
TEST_F(RedisWaiting, each_release_notifies_one_of_a_thousand_waiters) {
  constexpr int waits = 1000;
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a").lock().value();
  const auto turns = std::make_shared<std::atomic<int>>(0);
  for (int n = 0; n < waits; ++n) {
    take_turn(bob.mutex("a"), turns);
  }
  ASSERT_TRUE(eventually([&] { return waiters() == waits; }));
  server.command({"CONFIG", "RESETSTAT"});

  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(eventually([&] { return *turns == waits; }));

  EXPECT_EQ(calls_of("publish"), waits);
  EXPECT_EQ(calls_of("evalsha"), 2 * waits + 1) << "each confirms its grant and is released";
}

// A client that may PUBLISH, but has no access to the lock's keys, must not be able to grant it.
TEST_F(RedisWaiting, a_forged_notification_grants_nothing) {
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a").lock().value();
  std::atomic<bool> is_granted = false;
  FencingToken token{};
  std::jthread waiter([&] {
    const auto granted = bob.mutex("a").lock();
    ASSERT_TRUE(granted);
    token = granted->token();
    is_granted = true;
  });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
  const auto member = server.command({"ZRANGE", "{tenure:a}:q", "0", "0"});
  const auto detail = server.command({"HGET", "{tenure:a}:m", member});
  std::istringstream words(detail);
  std::string want;
  std::string place;
  std::string request;
  std::string client;
  words >> want >> place >> request >> client;
  const auto before = calls_of("evalsha");

  const auto forged = "g " + member + " " + request + " 9000000000000000 1";
  ASSERT_EQ(server.command({"PUBLISH", "tenure:wake:" + client, forged}), "1");

  ASSERT_TRUE(eventually([&] { return calls_of("evalsha") > before; })) << "the server is asked";
  EXPECT_FALSE(is_granted);
  EXPECT_EQ(waiters(), 1);
  EXPECT_TRUE(guard.unlock());
  waiter.join();
  EXPECT_LT(token.get(), 9000000000000000U) << "the token is the server's";
}

// 001.008, 001.015, 001.027, 001-B5: a notification without a receiver is detected after the
// reconnect.
TEST_F(RedisWaiting, a_wait_survives_the_loss_of_its_subscription) {
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a").lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("a").lock()); });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));

  server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  EXPECT_TRUE(guard.unlock());

  waiter.join();
}

// 000-B22: both connections of both clients are closed during a wait.
TEST_F(RedisWaiting, holds_and_waits_survive_all_connections) {
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a").lock().value();
  std::atomic<bool> is_in = false;
  std::jthread waiter([&] {
    const auto mine = bob.mutex("a").lock();
    is_in = mine.has_value();
  });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
  for (int round = 0; round < 5; ++round) {
    server.command({"CLIENT", "KILL", "TYPE", "normal"});
    server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_TRUE(guard.extend());
  }
  EXPECT_FALSE(is_in);

  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_TRUE(is_in);
}

// 000-B22: the first attempt was executed and its reply lost: the retry must not wait for it.
TEST_F(RedisWaiting, a_lost_reply_never_makes_a_client_wait_for_itself) {
  const auto ann = connect(200ms);
  EXPECT_TRUE(ann.mutex("warm").lock());
  server.pause();
  std::optional<Result<Guard>> got;
  std::jthread locking([&] { got = ann.mutex("a").lock(); });
  EXPECT_TRUE(eventually([&] { return !ann.is_connected(); }));
  server.resume();
  locking.join();

  ASSERT_TRUE(got->has_value()) << to_string(got->error());
  EXPECT_TRUE((*got)->unlock());
  EXPECT_TRUE(connect().mutex("a").try_lock_for(test_timeout));
}

// 001.005, 001.024, 001-B9: a holder that dies sends no message. The waiters check when its TTL is
// over.
TEST_F(RedisWaiting, a_dead_holder_delays_waiters_by_at_most_its_ttl) {
  const auto bob = connect();
  // The record that a killed client leaves: it is not renewed.
  server.command({"SET", "{tenure:a}", "H 5 dead.1 L X gone dead\n", "PX", "60200"});

  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(bob.mutex("a").lock());

  EXPECT_GE(std::chrono::steady_clock::now() - began, 150ms);
}

// A server that restarts empty: the next renewal reports the loss, and waits are requested again.
TEST_F(RedisWaiting, waits_are_requested_again_after_an_empty_restart) {
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a", {.ttl = 1s}).lock().value();
  const auto lost = guard.lost();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("a").lock()); });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));

  server.kill();
  server.start();

  waiter.join();
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
}

// 000.100, 000-B9: a missing reply is not a loss.
TEST_F(RedisWaiting, a_hung_server_does_not_lose_the_lock) {
  const auto ann = connect(100ms);
  auto guard = ann.mutex("a", {.ttl = 30s}).lock().value();
  server.pause();

  EXPECT_EQ(guard.extend().error(), Errc::unavailable);
  EXPECT_NE(guard.state(), GuardState::lost);
  server.resume();

  EXPECT_TRUE(eventually([&] { return guard.extend().has_value(); }));
  EXPECT_EQ(guard.state(), GuardState::held);
  EXPECT_TRUE(guard.unlock());
}

// A lease without holds sends no commands; all its holds are renewed together.
TEST_F(RedisWaiting, a_lease_without_holds_sends_no_renewals) {
  const auto ann = connect();
  const auto lease = ann.lease({.ttl = 10s}).value();
  server.command({"CONFIG", "RESETSTAT"});
  EXPECT_TRUE(lease.renew());
  EXPECT_EQ(calls_of("evalsha"), 0);
  std::vector<Guard> guards;
  for (int n = 0; n < 10; ++n) {
    guards.push_back(ann.mutex("lock " + std::to_string(n), {.lease = lease}).lock().value());
  }
  server.command({"CONFIG", "RESETSTAT"});

  EXPECT_TRUE(lease.renew());

  EXPECT_EQ(calls_of("evalsha"), 10);
}

// Closing a client also ends its waits.
TEST_F(RedisWaiting, a_closing_client_removes_its_waits) {
  const auto ann = connect();
  const auto guard = ann.mutex("a").lock().value();
  {
    const auto bob = connect();
    std::jthread waiter(
        [&] { EXPECT_EQ(bob.mutex("a").try_lock_for(20ms).error(), Errc::timed_out); });
  }

  EXPECT_TRUE(eventually([&] { return waiters() == 0; }));
}

// 003.006: the waiters know the old TTL of the holder and would check a minute too late.
TEST_F(RedisWaiting, a_waiter_is_notified_when_the_holder_shortens_its_ttl) {
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a", {.ttl = 10min, .renewals_per_ttl = 0}).lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout)); });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));

  EXPECT_TRUE(guard.extend(200ms));

  waiter.join();
  EXPECT_EQ(guard.state(), GuardState::lost);
}

// A try does not wait for a server that is gone.
TEST_F(RedisWaiting, try_lock_fails_within_request_timeout_without_a_server) {
  const auto ann = connect(300ms);
  ASSERT_TRUE(ann.mutex("a").try_lock());
  server.kill();

  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::unavailable);
}

}  // namespace
}  // namespace tenure::test
