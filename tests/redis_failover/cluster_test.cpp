#include "support/redis/cluster.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "redis_failover/contenders.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

std::string head_of(const std::string& name) {
  return "{tenure:" + name + "}";
}

/// Cluster of six nodes, shared by the tests of one process.
class RedisClusters : public ::testing::Test {
 protected:
  RedisClusters() { cluster.restore(); }
  [[nodiscard]] Client connect(std::chrono::milliseconds timeout = test_timeout) {
    return tenure::connect(cluster.url(), {.request_timeout = timeout}).value();
  }
  [[nodiscard]] std::string waiters(const std::string& name) {
    return cluster.command(head_of(name), {"ZCARD", head_of(name) + ":q"});
  }
  /// Number of Tenure's connections to a node.
  [[nodiscard]] static std::ptrdiff_t connections(RedisServer& node) {
    const auto all = node.command({"CLIENT", "LIST"});
    std::ptrdiff_t count = 0;
    for (std::size_t at = 0; (at = all.find(" name=tenure ", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  }
  /// Number of replies of a node with this error.
  [[nodiscard]] static std::int64_t errors(RedisServer& node, const std::string& error) {
    return count_in(node.command({"INFO", "errorstats"}), "errorstat_" + error + ":count=");
  }
  [[nodiscard]] static std::int64_t scripts_run(RedisServer& node) {
    return count_in(node.command({"INFO", "commandstats"}), "cmdstat_evalsha:calls=");
  }
  [[nodiscard]] static std::int64_t count_in(const std::string& all, const std::string& field) {
    const auto at = all.find(field);
    return at == std::string::npos ? 0 : std::stoll(all.substr(at + field.size()));
  }
  static RedisCluster& shared() {
    static RedisCluster cluster;
    return cluster;
  }
  RedisCluster& cluster = shared();
};

// 000-B20: all keys of a lock are in one slot; unused nodes have no connections.
TEST_F(RedisClusters, each_lock_uses_two_connections_to_the_node_of_its_slot) {
  const auto ann = connect();
  const auto first = ann.mutex(cluster.name_on(0)).lock();
  const auto second = ann.rw_lock(cluster.name_on(1)).lock_shared();

  ASSERT_TRUE(first) << to_string(first.error());
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_TRUE(cluster.primary(0).command({"GET", head_of(cluster.name_on(0))}).starts_with("H "));
  EXPECT_TRUE(eventually([&] {
    return connections(cluster.primary(0)) == 2 && connections(cluster.primary(1)) == 2 &&
           connections(cluster.primary(2)) <= 2;
  }));
}

// PUBLISH reaches all nodes. A client that subscribes on several nodes would receive a message
// several times, or be counted although it was skipped. It subscribes on the lock's node only.
TEST_F(RedisClusters, a_waiter_is_notified_by_the_node_of_the_lock) {
  const auto ann = connect();
  const auto bob = connect();
  for (std::size_t shard = 0; shard < 3; ++shard) {
    const auto name = cluster.name_on(shard);
    auto guard = ann.mutex(name).lock().value();
    std::optional<FencingToken> token;
    std::jthread waiter([&] {
      const auto mine = bob.mutex(name).lock();
      token = mine ? std::optional(mine->token()) : std::nullopt;
    });
    ASSERT_TRUE(eventually([&] { return waiters(name) == "1"; }));

    EXPECT_TRUE(guard.unlock());
    waiter.join();

    ASSERT_TRUE(token);
    EXPECT_GT(*token, guard.token());
  }
}

// A slot migrates while its lock is held and waited for; hold, wait and order survive.
TEST_F(RedisClusters, resharding_keeps_holders_and_waiters) {
  const auto name = cluster.name_on(0);
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex(name, {.ttl = 3s}).lock().value();
  std::optional<FencingToken> token;
  std::jthread waiter([&] {
    const auto mine = bob.mutex(name, {.ttl = 3s}).lock();
    token = mine ? std::optional(mine->token()) : std::nullopt;
  });
  ASSERT_TRUE(eventually([&] { return waiters(name) == "1"; }));

  cluster.begin_move(head_of(name), 1);
  cluster.move_keys(head_of(name), 1);
  cluster.end_move(head_of(name), 1);

  EXPECT_TRUE(guard.extend());
  EXPECT_EQ(cluster.shard_of(head_of(name)), 1U);
  EXPECT_EQ(ann.mutex(name).try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.unlock());
  waiter.join();
  ASSERT_TRUE(token);
  EXPECT_GT(*token, guard.token());
}

// During the migration some keys of a lock are on each node: waiting commands are retried
// (TRYAGAIN), and a try fails.
TEST_F(RedisClusters, a_lock_in_a_migrating_slot_waits_for_the_end_of_the_migration) {
  const auto name = cluster.name_on(0);
  const auto ann = connect(1s);
  auto guard = ann.mutex(name, {.ttl = 60s}).lock().value();
  cluster.begin_move(head_of(name), 2);

  const auto busy = guard.extend();
  EXPECT_EQ(busy.error(), Errc::unavailable);
  EXPECT_TRUE(guard.owns_lock());
  std::jthread waiter([&] { EXPECT_TRUE(ann.mutex(name).lock()); });
  cluster.move_keys(head_of(name), 2);
  cluster.end_move(head_of(name), 2);

  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(guard.unlock());
  waiter.join();
}

// The acquire waits for its slot (TRYAGAIN) and is cancelled; the cancellation overtakes it. The
// grant that it then receives must be released.
TEST_F(RedisClusters, a_request_cancelled_during_a_slot_migration_leaves_nothing) {
  const auto name = cluster.name_on(0);
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex(name, {.ttl = 60s}).lock().value();
  const auto before = errors(cluster.primary(0), "TRYAGAIN");
  cluster.begin_move(head_of(name), 2);
  std::stop_source off;
  std::jthread asker([&] {
    EXPECT_EQ(bob.mutex(name, {.ttl = 60s}).lock(off.get_token()).error(), Errc::cancelled);
  });
  // The retries have a growing backoff.
  ASSERT_TRUE(eventually([&] { return errors(cluster.primary(0), "TRYAGAIN") >= before + 16; }));

  const auto calls = scripts_run(cluster.primary(0));
  cluster.cancel_move(head_of(name), 2);
  off.request_stop();
  asker.join();
  ASSERT_TRUE(eventually([&] { return scripts_run(cluster.primary(0)) >= calls + 2; }));
  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(ann.mutex(name).try_lock_for(test_timeout / 2));
}

// ASK: a key that is not on this node any more, or never was, belongs to the other node.
TEST_F(RedisClusters, a_barging_lock_follows_its_migrating_slot) {
  const std::string name = "plain";
  const auto from = cluster.shard_of(name);
  const auto to = (from + 1) % 3;
  const auto ann = connect();
  const auto mutex = ann.mutex(name, {.fairness = Fairness::barging});
  ASSERT_TRUE(mutex.lock());
  cluster.begin_move(name, to);

  auto guard = mutex.lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(cluster.primary(from).command({"EXISTS", name}).substr(0, 3), "ASK");
  EXPECT_EQ(mutex.try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard->extend());
  cluster.end_move(name, to);
  EXPECT_NE(cluster.primary(to).command({"GET", name}), "(nil)");
  EXPECT_TRUE(guard->unlock());
  EXPECT_EQ(cluster.primary(to).command({"GET", name}), "(nil)");
}

// 003.002, 000-B24
TEST_F(RedisClusters, replicated_holds_and_waits_survive_a_failover) {
  const auto name = cluster.name_on(1);
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex(name).lock().value();
  auto elsewhere = ann.mutex(cluster.name_on(0)).lock().value();
  std::optional<FencingToken> token;
  std::jthread waiter([&] {
    const auto mine = bob.mutex(name).lock();
    token = mine ? std::optional(mine->token()) : std::nullopt;
  });
  ASSERT_TRUE(eventually([&] { return waiters(name) == "1"; }));
  ASSERT_EQ(cluster.primary(1).command({"WAIT", "1", "10000"}), "1");

  cluster.fail_over(1);

  EXPECT_EQ(ann.mutex(name).try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(guard.unlock());
  waiter.join();
  ASSERT_TRUE(token);
  EXPECT_GT(*token, guard.token());
  EXPECT_TRUE(elsewhere.unlock());
}

// 000-B24
TEST_F(RedisClusters,
       a_holder_that_lost_its_lock_in_a_failover_is_notified_and_has_the_older_token) {
  const auto name = cluster.name_on(2);
  const auto ann = connect();
  const auto bob = connect();
  ASSERT_TRUE(ann.mutex(name).lock());
  cluster.disconnect_replica(2);
  auto guard = ann.mutex(name, {.ttl = 60s}).lock().value();
  std::atomic<bool> is_reported = false;
  const std::stop_callback on_lost(guard.lost(), [&] { is_reported = true; });

  cluster.fail_over(2);
  EXPECT_TRUE(eventually([&] { return is_reported.load(); }));
  const auto next = bob.mutex(name).lock();

  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
  EXPECT_GT(next->token(), guard.token());
}

// 000-B24
TEST_F(RedisClusters, a_grant_on_too_few_replicas_fails) {
  const auto name = cluster.name_on(0);
  const auto ann = connect(1s);
  ASSERT_TRUE(ann.mutex(name, {.min_replicas = 1}).lock());
  cluster.disconnect_replica(0);

  const auto refused = ann.mutex(name, {.min_replicas = 1}).lock();

  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_NE(refused.error().detail.find("0 of 1 replicas"), std::string::npos)
      << refused.error().detail;
  EXPECT_TRUE(ann.mutex(name).try_lock_for(test_timeout)) << "released";
  EXPECT_TRUE(ann.mutex(cluster.name_on(1), {.min_replicas = 1}).lock()) << "another node's";
}

// 000-B24, 003.002
TEST_F(RedisClusters, with_min_replicas_a_failover_never_grants_a_held_lock) {
  const auto shard = cluster.shard_of(head_of("a"));
  Contenders contenders(cluster.url(), {.ttl = 2s, .min_replicas = 1}, 4);
  ASSERT_TRUE(eventually([&] { return contenders.turns() >= 10; }));

  cluster.fail_over(shard);
  cluster.restore(RedisCluster::Keys::keep);
  const auto turns = contenders.turns();
  EXPECT_TRUE(eventually([&] { return contenders.turns() >= turns + 10; }));

  const auto result = contenders.check("MTSX");
  EXPECT_TRUE(result.is_valid()) << contenders.describe(result);
}

// 000-B24
TEST_F(RedisClusters, without_min_replicas_every_overlap_is_reported_and_fenced) {
  const auto shard = cluster.shard_of(head_of("a"));
  Contenders contenders(cluster.url(), {.ttl = 2s}, 4);
  ASSERT_TRUE(eventually([&] { return contenders.turns() >= 5; }));
  cluster.disconnect_replica(shard);
  const auto before = contenders.turns();
  ASSERT_TRUE(eventually([&] { return contenders.turns() >= before + 5; }));

  cluster.fail_over(shard);
  const auto turns = contenders.turns();
  EXPECT_TRUE(eventually([&] { return contenders.turns() >= turns + 10; }));

  const auto result = contenders.check("TSX");
  EXPECT_TRUE(result.is_valid()) << contenders.describe(result);
  for (const auto& [loser, winner] : contenders.overlaps()) {
    EXPECT_FALSE(loser->released) << history::describe(*loser) << " did not observe "
                                  << history::describe(*winner);
  }
}

// A shard without a primary: waits continue at the new primary, a try fails within request_timeout,
// and other shards are not affected.
TEST_F(RedisClusters, a_shard_that_is_down_delays_no_other_shard) {
  const auto name = cluster.name_on(1);
  const auto elsewhere = cluster.name_on(0);
  const auto ann = connect(1s);
  ASSERT_TRUE(ann.mutex(name).lock());
  cluster.primary(1).kill();

  EXPECT_EQ(ann.mutex(name).try_lock().error(), Errc::unavailable);
  EXPECT_TRUE(ann.mutex(elsewhere).lock());
  std::jthread waiter([&] { EXPECT_TRUE(ann.mutex(name).lock()); });
  cluster.promote_replica(1);

  waiter.join();
}

// Two nodes redirect to each other: after five redirects the command waits with backoff instead of
// flooding the network, and continues when the nodes agree.
TEST_F(RedisClusters, a_redirect_loop_between_nodes_is_retried_with_backoff) {
  const auto name = cluster.name_on(0);
  const auto key = head_of(name);
  const auto ann = connect(1s);
  ASSERT_TRUE(ann.mutex(name).lock());
  const auto first = cluster.primary(0).command({"CLUSTER", "MYID"});
  const auto second = cluster.primary(1).command({"CLUSTER", "MYID"});
  const auto slot = cluster.primary(0).command({"CLUSTER", "KEYSLOT", key});
  const auto point = [&](std::size_t at, const std::string& id) {
    ASSERT_EQ(cluster.primary(at).command({"CLUSTER", "SETSLOT", slot, "NODE", id}), "OK");
  };
  cluster.primary(0).command({"FLUSHALL"});
  const auto before = errors(cluster.primary(0), "MOVED") + errors(cluster.primary(1), "MOVED");
  point(0, second);
  point(1, first);

  EXPECT_EQ(ann.mutex(name).try_lock().error(), Errc::unavailable);

  const auto after = errors(cluster.primary(0), "MOVED") + errors(cluster.primary(1), "MOVED");
  EXPECT_GE(after - before, 5);
  EXPECT_LT(after - before, 1'000);
  std::jthread waiter([&] { EXPECT_TRUE(ann.mutex(name).lock()); });
  point(0, first);
  point(1, first);
  point(2, first);
  waiter.join();
}

TEST_F(RedisClusters, a_cluster_node_is_rejected_as_a_standalone_server) {
  const auto refused = tenure::connect("redis://" + cluster.primary(0).where());

  EXPECT_EQ(refused.error(), Errc::unsupported);
  EXPECT_NE(refused.error().detail.find("redis+cluster://"), std::string::npos);
}

TEST(RedisClusterAddress, url_errors_are_reported) {
  EXPECT_EQ(connect("redis+cluster://127.0.0.1:1/0").error(), Errc::invalid_argument);
  EXPECT_EQ(connect("redis+cluster://127.0.0.1:1?sentinel_user=x").error(), Errc::invalid_argument);
  const auto unreachable = connect("redis+cluster://127.0.0.1:1,127.0.0.1:2");
  EXPECT_EQ(unreachable.error(), Errc::unavailable);
  EXPECT_NE(unreachable.error().detail.find("127.0.0.1:2: Connection refused"), std::string::npos)
      << unreachable.error().detail;
}

TEST(RedisClusterAddress, a_url_with_more_than_64_servers_is_rejected) {
  std::string names = "127.0.0.1:1";
  for (int count = 1; count < 64; ++count) {
    names += ",127.0.0.1:" + std::to_string(count + 1);
  }

  EXPECT_EQ(connect("redis+cluster://" + names).error(), Errc::unavailable)
      << "no server is running";
  for (const auto* const url : {"redis+cluster://", "redis+sentinel://"}) {
    const auto refused = connect(url + names + ",127.0.0.1:65/locks");
    EXPECT_EQ(refused.error(), Errc::invalid_argument);
    EXPECT_NE(refused.error().detail.find("at most 64 servers"), std::string::npos)
        << refused.error().detail;
  }
}

// 16,384 ranges of slots, the largest possible number.
TEST(RedisClusterAddress, a_cluster_with_one_range_per_slot_is_supported) {
  RedisCluster cluster({.is_fragmented = true});
  const auto ann = connect(cluster.url(), {.request_timeout = test_timeout});
  ASSERT_TRUE(ann) << to_string(ann.error());

  for (std::size_t shard = 0; shard < 3; ++shard) {
    const auto name = cluster.name_on(shard);
    auto guard = ann->mutex(name).lock();
    ASSERT_TRUE(guard) << to_string(guard.error());
    EXPECT_TRUE(cluster.primary(shard).command({"GET", head_of(name)}).starts_with("H "));
    EXPECT_TRUE(guard->unlock());
  }
}

TEST(RedisClusterAddress, a_standalone_server_is_rejected_as_a_cluster) {
  const RedisServer server;

  const auto refused = connect("redis+cluster://" + server.where());

  EXPECT_EQ(refused.error(), Errc::unsupported);
  EXPECT_NE(refused.error().detail.find("use redis:// for a standalone server"), std::string::npos)
      << refused.error().detail;
}

}  // namespace
}  // namespace tenure::test
