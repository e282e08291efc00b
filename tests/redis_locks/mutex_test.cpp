#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

// 000.170: each test has a server of its own.
/// Two clients of one server, as if in two processes.
class RedisMutex : public ::testing::Test {
 protected:
  [[nodiscard]] Client connect(ConnectOptions options = {}) {
    options.request_timeout = test_timeout;
    return tenure::connect(server.url(), std::move(options)).value();
  }
  [[nodiscard]] std::string waiters() { return server.command({"ZCARD", "{tenure:a}:q"}); }

  RedisServer server;
  Client ann = connect({.owner = "ann"});
  Client bob = connect({.owner = "bob"});
};

// 000.101, 000.119, 000.168
TEST_F(RedisMutex, try_lock_excludes_second_owner) {
  const auto guard = ann.mutex("a").try_lock().value();

  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
}

// 000.120, 000.168
TEST_F(RedisMutex, lock_waits_then_succeeds) {
  auto guard = ann.mutex("a").lock().value();
  std::optional<FencingToken> token;
  std::jthread waiter([&] { token = bob.mutex("a").lock().value().token(); });
  ASSERT_TRUE(eventually([&] { return waiters() == "1"; }));

  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_GT(token, guard.token());
}

// 000.102, 000.121
TEST_F(RedisMutex, try_lock_for_times_out) {
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_EQ(bob.mutex("a").try_lock_for(10ms).error(), Errc::timed_out);
  EXPECT_EQ(waiters(), "0");
}

// 000.122
TEST_F(RedisMutex, release_frees_lock) {
  auto guard = ann.mutex("a").lock().value();

  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// 000.123
TEST_F(RedisMutex, drop_frees_lock) {
  {
    const auto guard = ann.mutex("a").lock();
  }

  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
}

// 000.124, 000.089: renewed while the guard exists.
TEST_F(RedisMutex, auto_refresh_keeps_lease_alive) {
  const auto guard = ann.mutex("a", {.ttl = 150ms}).lock().value();
  const auto later = std::chrono::steady_clock::now() + 300ms;

  EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > later; }));

  EXPECT_TRUE(guard.owns_lock());
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
}

// 000.125
TEST_F(RedisMutex, get_state_reports_acquired_while_held) {
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_EQ(guard.state(), GuardState::held);
}

// 000.103, 000.106, 000.126, 000.091, 000.096: the next renewal detects a DEL by hand, and the loss
// is permanent.
TEST_F(RedisMutex, lost_lease_reports_lost_state) {
  auto guard = ann.mutex("a", {.ttl = 300ms}).lock().value();
  const auto lost = guard.lost();

  server.command({"DEL", "{tenure:a}"});

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_EQ(guard.state(), GuardState::lost);
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
}

// The same with a waiter: the release of the lost lock does not affect the new holder.
TEST_F(RedisMutex, a_lost_lock_stays_with_its_new_holder) {
  auto guard = ann.mutex("a", {.ttl = 300ms}).lock().value();
  server.command({"DEL", "{tenure:a}"});
  const auto other = bob.mutex("a").lock().value();

  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);

  EXPECT_TRUE(other.owns_lock());
  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
}

// 000.104, 000.107-110, 000.116, 000.117: rejected before any command is sent.
TEST_F(RedisMutex, acquire_rejects_nonpositive_ttl) {
  const auto before = server.count_of("total_commands_processed");

  EXPECT_EQ(ann.mutex("a", {.ttl = 0ms}).lock().error(), Errc::invalid_argument);
  EXPECT_EQ(ann.mutex("a", {.ttl = -1ms}).try_lock().error(), Errc::invalid_argument);

  EXPECT_LE(server.count_of("total_commands_processed"), before + 1);
}

// 000.117: a lease has a valid TTL from the beginning.
TEST_F(RedisMutex, refresh_rejects_nonpositive_ttl) {
  EXPECT_EQ(ann.lease({.ttl = 0ms}).error(), Errc::invalid_argument);
}

// 000.105, 000.118: as corrected, an owner is a label with a default.
TEST_F(RedisMutex, an_owner_is_never_empty) {
  const auto unnamed = connect();
  const auto guard = unnamed.mutex("a").lock().value();

  EXPECT_FALSE(unnamed.owner().empty());
  EXPECT_EQ(ann.holders("a").value().front().owner, unnamed.owner());
}

// What an operator sees of a lock.
TEST_F(RedisMutex, holders_are_listed_with_owner_token_and_note) {
  const auto guard = ann.mutex("a", {.metadata = "nightly\nreport"}).lock().value();

  const auto holders = bob.holders("a").value();

  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders.front().owner, "ann");
  EXPECT_EQ(holders.front().metadata, "nightly\nreport");
  EXPECT_EQ(holders.front().token, guard.token());
}

// 000-B21: names are bytes; no name reaches another lock's keys.
TEST_F(RedisMutex, names_with_braces_and_suffixes_do_not_meet) {
  const std::string names[] = {"x", "x}", "x}:q", "{x}", "{x", "x:m", "a b", "ü"};
  std::vector<Guard> guards;
  for (const auto& name : names) {
    guards.push_back(ann.mutex(name).try_lock().value());
  }

  for (const auto& name : names) {
    EXPECT_EQ(bob.mutex(name).try_lock().error(), Errc::would_block) << name;
  }
}

// 000.018: namespaces do not meet.
TEST_F(RedisMutex, locks_of_different_namespaces_are_independent) {
  const auto other = tenure::connect(server.url("?namespace=staging")).value();
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_TRUE(other.mutex("a").try_lock());
  EXPECT_NE(server.command({"KEYS", "*"}).find("{staging:a}"), std::string::npos);
}

// A lease that would wait for itself fails; without a common lease the client waits, as with std.
TEST_F(RedisMutex, a_self_blocking_request_fails_at_once) {
  const auto lease = ann.lease().value();
  const auto guard = ann.mutex("a", {.lease = lease}).lock().value();

  EXPECT_EQ(ann.mutex("a", {.lease = lease}).lock().error(), Errc::deadlock);
  EXPECT_EQ(ann.mutex("a", {.lease = lease}).try_lock().error(), Errc::would_block);
}

// 000-B21
TEST_F(RedisMutex, a_semaphore_of_the_same_name_is_refused) {
  const auto guard = ann.mutex("a").lock().value();

  const auto refused = bob.semaphore("a", {.capacity = 2}).try_acquire();

  EXPECT_EQ(refused.error(), Errc::invalid_argument);
  EXPECT_NE(refused.error().detail.find("a lock"), std::string::npos) << refused.error().detail;
}

}  // namespace
}  // namespace tenure::test
