#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>
#include <tenure/fence.hpp>

#include "redis_failover/contenders.hpp"
#include "support/redis/group.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

Client connect_to(const std::string& url, std::chrono::milliseconds timeout = test_timeout) {
  return connect(url, {.request_timeout = timeout}).value();
}

/// One primary, one replica and three Sentinels, new for each test.
class RedisSentinel : public ::testing::Test {
 protected:
  [[nodiscard]] std::string waiters() { return group.primary().command({"ZCARD", "{tenure:a}:q"}); }
  RedisGroup group;
};

// 003.002: dead or hung Sentinels do not matter while one replies.
TEST_F(RedisSentinel, a_single_responsive_sentinel_suffices) {
  group.sentinel(0).kill();
  group.sentinel(1).pause();

  const auto ann = connect_to(group.url());
  auto guard = ann.mutex("a").lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_TRUE(group.primary().command({"GET", "{tenure:a}"}).starts_with("H "));
  EXPECT_TRUE(guard->unlock());
  group.sentinel(1).resume();
}

TEST_F(RedisSentinel, a_service_unknown_to_all_sentinels_is_reported_at_once) {
  auto url = group.url();
  url.replace(url.rfind('/') + 1, std::string::npos, "lokcs");

  const auto refused = connect(url);

  EXPECT_EQ(refused.error(), Errc::invalid_argument);
  EXPECT_NE(refused.error().detail.find("no Sentinel knows the service \"lokcs\""),
            std::string::npos)
      << refused.error().detail;
}

TEST_F(RedisSentinel, a_sentinel_and_a_server_are_not_interchangeable) {
  const auto server = connect("redis+sentinel://" + group.primary().where() + "/locks");
  EXPECT_EQ(server.error(), Errc::unsupported) << server.error().detail;
  EXPECT_NE(server.error().detail.find("not a Sentinel"), std::string::npos);

  const auto sentinel = connect("redis://" + group.sentinel(0).where());
  EXPECT_EQ(sentinel.error(), Errc::unsupported) << sentinel.error().detail;
}

// 003.002, 000-B24: replicated holds, the queue and its order survive.
TEST_F(RedisSentinel, replicated_holds_and_waits_survive_a_failover) {
  const auto ann = connect_to(group.url());
  const auto bob = connect_to(group.url());
  auto guard = ann.mutex("a").lock().value();
  std::optional<FencingToken> token;
  std::jthread waiter([&] {
    const auto mine = bob.mutex("a").lock();
    token = mine ? std::optional(mine->token()) : std::nullopt;
  });
  ASSERT_TRUE(eventually([&] { return waiters() == "1"; }));
  ASSERT_EQ(group.primary().command({"WAIT", "1", "10000"}), "1");

  group.fail_over();

  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.owns_lock());
  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(guard.unlock());
  waiter.join();
  ASSERT_TRUE(token);
  EXPECT_GT(*token, guard.token());
}

// 000-B24, 003.002: the loss is reported when the new primary is connected, long before the TTL is
// over; and the fence rejects the old token.
TEST_F(RedisSentinel,
       a_holder_that_lost_its_lock_in_a_failover_is_notified_and_has_the_older_token) {
  const auto ann = connect_to(group.url());
  const auto bob = connect_to(group.url());
  ASSERT_TRUE(ann.mutex("warm").lock());
  group.disconnect_replica();
  auto guard = ann.mutex("a", {.ttl = 60s}).lock().value();
  std::atomic<bool> is_reported = false;
  const std::stop_callback on_lost(guard.lost(), [&] { is_reported = true; });

  group.fail_over();
  EXPECT_TRUE(eventually([&] { return is_reported.load(); }));
  const auto next = bob.mutex("a").lock();

  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_EQ(guard.state(), GuardState::lost);
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
  EXPECT_GT(next->token(), guard.token());
  Fence fence;
  EXPECT_TRUE(fence.admit("a", next->token()));
  EXPECT_FALSE(fence.admit("a", guard.token()));
}

// A wait that the new primary does not know joins its queue.
TEST_F(RedisSentinel, a_wait_lost_in_a_failover_is_requested_again) {
  const auto ann = connect_to(group.url());
  const auto bob = connect_to(group.url());
  auto guard = ann.mutex("a", {.min_replicas = 1}).lock().value();
  group.disconnect_replica();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("a").lock()); });
  ASSERT_TRUE(eventually([&] { return waiters() == "1"; }));

  group.fail_over();

  EXPECT_TRUE(eventually([&] { return waiters() == "1"; }));
  EXPECT_TRUE(guard.unlock());
  waiter.join();
}

// A lost wait loses its position only; the lease and its other holds stay.
TEST_F(RedisSentinel, a_wait_lost_in_a_failover_does_not_end_its_lease) {
  const auto ann = connect_to(group.url());
  const auto bob = connect_to(group.url());
  auto guard = ann.mutex("a").lock().value();
  const auto lease = bob.lease().value();
  auto other = bob.mutex("b", {.lease = lease}).lock().value();
  group.primary().command({"SET", "after these", "yes"});
  ASSERT_EQ(group.primary().command({"WAIT", "1", "10000"}), "1");
  group.disconnect_replica();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("a", {.lease = lease}).lock()); });
  ASSERT_TRUE(eventually([&] { return waiters() == "1"; }));

  group.fail_over();
  EXPECT_TRUE(lease.renew());
  EXPECT_TRUE(eventually([&] { return waiters() == "1"; }));
  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_TRUE(other.owns_lock());
  EXPECT_TRUE(other.unlock());
}

// The connection to a hung primary stays open. The client follows the Sentinels' announcement long
// before its own timeout.
TEST_F(RedisSentinel, clients_leave_a_hung_primary_when_the_sentinels_do) {
  const auto ann = connect_to(group.url(), 60s);
  auto guard = ann.mutex("a", {.ttl = 120s, .min_replicas = 1}).lock().value();
  auto& old = group.primary();
  old.pause();

  group.promote_replica();
  const auto other = ann.mutex("b").lock();

  EXPECT_TRUE(other);
  EXPECT_TRUE(guard.unlock());
  old.resume();
}

// 000-B24: a grant that no replica has is released, and nothing is left of it.
TEST_F(RedisSentinel, a_grant_on_too_few_replicas_fails) {
  const auto ann = connect_to(group.url(), 4s);
  const auto bob = connect_to(group.url());
  auto kept = ann.mutex("kept", {.min_replicas = 1}).lock();
  ASSERT_TRUE(kept) << to_string(kept.error());
  const auto until = kept->valid_until();
  EXPECT_EQ(ann.mutex("many", {.min_replicas = 2}).lock().error(), Errc::unavailable);
  group.disconnect_replica();

  const auto refused = ann.mutex("a", {.min_replicas = 1}).lock();

  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_NE(refused.error().detail.find("0 of 1 replicas"), std::string::npos)
      << refused.error().detail;
  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout)) << "released";
  EXPECT_EQ(kept->extend().error(), Errc::unavailable) << "a renewal that a failover may forget";
  EXPECT_LT(kept->valid_until(), until + 1ms);
}

// The same for a grant by another client's release.
TEST_F(RedisSentinel, a_hand_over_on_too_few_replicas_fails) {
  const auto ann = connect_to(group.url());
  const auto bob = connect_to(group.url(), 1s);
  auto guard = ann.mutex("a").lock().value();
  std::optional<Errc> end;
  std::jthread waiter([&] {
    const auto mine = bob.mutex("a", {.min_replicas = 1}).lock();
    end = mine ? std::nullopt : std::optional(mine.error().code);
  });
  ASSERT_TRUE(eventually([&] { return waiters() == "1"; }));
  group.disconnect_replica();

  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_EQ(end, Errc::unavailable);
  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout)) << "released";
}

// 000-B24, 003.002, 003-B20
TEST_F(RedisSentinel, with_min_replicas_a_failover_never_grants_a_held_lock) {
  Contenders contenders(group.url(), {.ttl = 2s, .min_replicas = 1}, 4);
  ASSERT_TRUE(eventually([&] { return contenders.turns() >= 10; }));

  group.fail_over();
  group.restore_replica();
  const auto turns = contenders.turns();
  EXPECT_TRUE(eventually([&] { return contenders.turns() >= turns + 10; }));

  const auto result = contenders.check("MTSX");
  EXPECT_TRUE(result.is_valid()) << contenders.describe(result);
}

// 000-B24: without it a failover may lose grants; the loss is reported and fenced.
TEST_F(RedisSentinel, without_min_replicas_every_overlap_is_reported_and_fenced) {
  Contenders contenders(group.url(), {.ttl = 2s}, 4);
  ASSERT_TRUE(eventually([&] { return contenders.turns() >= 5; }));
  group.disconnect_replica();
  const auto before = contenders.turns();
  ASSERT_TRUE(eventually([&] { return contenders.turns() >= before + 5; }));

  group.fail_over();
  const auto turns = contenders.turns();
  EXPECT_TRUE(eventually([&] { return contenders.turns() >= turns + 10; }));

  const auto result = contenders.check("TSX");
  EXPECT_TRUE(result.is_valid()) << contenders.describe(result);
  for (const auto& [loser, winner] : contenders.overlaps()) {
    EXPECT_FALSE(loser->released) << history::describe(*loser) << " did not observe "
                                  << history::describe(*winner);
  }
}

TEST(RedisSentinelAddress, url_errors_are_reported_with_their_position) {
  EXPECT_EQ(connect("redis+sentinel://127.0.0.1:1").error().detail.substr(0, 41),
            "at 28: the name of the Sentinel service i");
  EXPECT_EQ(connect("redis+sentinel://127.0.0.1:1/").error(), Errc::invalid_argument);
  EXPECT_EQ(connect("redis+sentinel://127.0.0.1:1/locks/x").error(), Errc::invalid_argument);
  EXPECT_EQ(connect("redis+sentinel://127.0.0.1:1/locks?colour=red").error(),
            Errc::invalid_argument);

  const auto unreachable = connect("redis+sentinel://127.0.0.1:1,127.0.0.1:2/locks");
  EXPECT_EQ(unreachable.error(), Errc::unavailable);
  EXPECT_NE(unreachable.error().detail.find("127.0.0.1:2: Connection refused"), std::string::npos)
      << unreachable.error().detail;
}

TEST(RedisSentinelAddress, a_sentinel_is_authenticated_with_its_own_password) {
  RedisGroup group({.sentinel_password = "guess"});

  const auto refused = connect(group.url());
  EXPECT_EQ(refused.error(), Errc::permission_denied) << refused.error().detail;
  EXPECT_NE(refused.error().detail.find("sentinel_password"), std::string::npos)
      << refused.error().detail;
  const auto wrong = connect(group.url("?sentinel_password=wrong-one"));
  EXPECT_EQ(wrong.error(), Errc::permission_denied);
  EXPECT_EQ(wrong.error().detail.find("wrong-one"), std::string::npos);

  const auto ann = connect(group.url("?sentinel_password=guess"));
  ASSERT_TRUE(ann) << to_string(ann.error());
  EXPECT_TRUE(ann->mutex("a").lock());
}

}  // namespace
}  // namespace tenure::test
