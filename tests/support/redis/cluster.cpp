#include "support/redis/cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "backends/redis/slots.hpp"
#include "support/net/free_port.hpp"
#include "support/redis/group.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

constexpr std::size_t shards = 3;
using backends::redis::slot_of;
using backends::redis::slots_count;

void expect(bool is_true, const std::string& what) {
  if (!is_true) {
    throw std::runtime_error("this did not come true: " + what);
  }
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string slot_text(const std::string& key) {
  return std::to_string(slot_of(key));
}

/// Node that is about to be started.
struct NodePlan {
  std::string id;
  std::uint16_t port;
  std::uint16_t tls_port;  ///< 0: none.
  std::uint16_t bus;
};

std::string slots_of(std::size_t shard, bool is_fragmented) {
  if (!is_fragmented) {
    return " " + std::to_string(shard * slots_count / shards) + "-" +
           std::to_string((shard + 1) * slots_count / shards - 1);
  }
  std::string all;
  for (auto slot = shard; slot < slots_count; slot += shards) {
    all += " " + std::to_string(slot);
  }
  return all;
}

/// Line of nodes.conf of `reader` about one of the nodes.
std::string line_of(const std::vector<NodePlan>& plans, std::size_t at, std::size_t reader,
                    bool is_fragmented) {
  const auto& plan = plans[at];
  const auto shard = at % shards;
  const bool is_primary = at < shards;
  const auto port = plan.tls_port != 0 ? plan.tls_port : plan.port;
  return plan.id + " 127.0.0.1:" + std::to_string(port) + "@" + std::to_string(plan.bus) +
         (at == reader ? " myself," : " ") + (is_primary ? "master - " : "slave ") +
         (is_primary ? "" : plans[shard].id + " ") + "0 0 " + std::to_string(shard + 1) +
         " connected" + (is_primary ? slots_of(shard, is_fragmented) : "") + "\n";
}

}  // namespace

RedisCluster::RedisCluster(const Options& options) {
  // Preconfigured nodes.conf, because CLUSTER MEET takes many seconds.
  std::vector<NodePlan> plans;
  for (std::size_t at = 0; at < 2 * shards; ++at) {
    plans.push_back({.id = std::string(39, 'a') + std::to_string(at),
                     .port = free_port(),
                     .tls_port = options.tls.empty() ? std::uint16_t{0} : free_port(),
                     .bus = free_port()});
  }
  for (std::size_t at = 0; at < plans.size(); ++at) {
    std::string nodes;
    for (std::size_t other = 0; other < plans.size(); ++other) {
      nodes += line_of(plans, other, at, options.is_fragmented);
    }
    std::vector<std::string> arguments{"--cluster-port",
                                       std::to_string(plans[at].bus),
                                       "--cluster-node-timeout",
                                       "1000",
                                       "--enable-debug-command",
                                       "yes",
                                       "--repl-diskless-sync-delay",
                                       "0",
                                       "--cluster-require-full-coverage",
                                       "no"};
    arguments.insert(arguments.end(), options.tls.begin(), options.tls.end());
    nodes_.push_back(std::make_unique<RedisServer>(
        RedisServer::Options{.arguments = std::move(arguments),
                             .has_tls = !options.tls.empty(),
                             .port = plans[at].port,
                             .tls_port = plans[at].tls_port,
                             .cluster_nodes = nodes + "vars currentEpoch 6 lastVoteEpoch 0\n"}));
  }
  for (std::size_t shard = 0; shard < shards; ++shard) {
    primaries_.push_back(shard);
    replicas_.push_back(shard + shards);
  }
  for (const auto& node : nodes_) {
    expect(eventually([&] { return has(node->command({"CLUSTER", "INFO"}), "cluster_state:ok"); }),
           "each node knows all the others");
  }
  restore();
}

void RedisCluster::restore(Keys keys) {
  for (const auto& node : nodes_) {
    if (node->command({"PING"}) != "PONG") {
      node->start();
    }
    node->command({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
  }
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const auto is_followed = [&, key = head_of_name_on(shard)] {
      primary(shard).command({"SET", key, "is there a replica?", "PX", "1"});
      return primary(shard).command({"WAIT", "1", "100"}) == "1";
    };
    expect(eventually(is_followed), "the replicas have what the primaries have");
  }
  for (const auto& node : nodes_) {
    // From now on no node starts a failover by itself.
    node->command({"CONFIG", "SET", "cluster-node-timeout", "60000"});
  }
  if (keys == Keys::flush) {
    for_each_primary([](RedisServer& one) { one.command({"FLUSHALL"}); });
  }
}

std::string RedisCluster::id_of(std::size_t node) {
  return nodes_[node]->command({"CLUSTER", "MYID"});
}

std::string RedisCluster::url(std::string_view rest) const {
  std::string names;
  for (const auto& node : nodes_) {
    const auto port = node->tls_port() != 0 ? node->tls_port() : node->port();
    names += (names.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  const bool has_tls = nodes_.front()->tls_port() != 0;
  return (has_tls ? "rediss+cluster://" : "redis+cluster://") + names + std::string(rest);
}

std::size_t RedisCluster::shard_of(const std::string& key) {
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const auto answer = primary(shard).command({"EXISTS", key});
    if (!answer.starts_with("MOVED") && answer != "no answer") {
      return shard;
    }
  }
  throw std::runtime_error("no shard has " + key);
}

RedisServer& RedisCluster::primary_of(const std::string& key) {
  return primary(shard_of(key));
}

RedisServer& RedisCluster::replica_of(const std::string& key) {
  return *nodes_[replicas_[shard_of(key)]];
}

std::string RedisCluster::command(const std::string& key, const std::vector<std::string>& words) {
  return primary_of(key).command(words);
}

std::string RedisCluster::name_on(std::size_t shard) {
  for (int number = 0;; ++number) {
    auto name = "name " + std::to_string(number);
    if (shard_of("{tenure:" + name + "}") == shard) {
      return name;
    }
  }
}

std::string RedisCluster::head_of_name_on(std::size_t shard) {
  return "{tenure:" + name_on(shard) + "}";
}

void RedisCluster::for_each_primary(const std::function<void(RedisServer&)>& call) {
  for (std::size_t shard = 0; shard < shards; ++shard) {
    call(primary(shard));
  }
}

void RedisCluster::disconnect_replica(std::size_t shard) {
  auto& replica = *nodes_[replicas_[shard]];
  disconnect_replicas(primary(shard));
  expect(
      eventually([&] { return has(replica.command({"INFO", "replication"}), "link_status:down"); }),
      "the replica is cut off");
}

void RedisCluster::promote_replica(std::size_t shard) {
  auto& next = *nodes_[replicas_[shard]];
  expect(next.command({"CLUSTER", "FAILOVER", "TAKEOVER"}) == "OK", "a failover begins");
  std::swap(primaries_[shard], replicas_[shard]);
  const auto id = next.command({"CLUSTER", "MYID"});
  for (std::size_t other = 0; other < shards; ++other) {
    expect(eventually([&] {
             const auto words = primary(other).command({"CLUSTER", "NODES"});
             const auto at = words.find(id + " 127");
             return at != std::string::npos &&
                    has(words.substr(at, words.find('\n', at) - at), "master");
           }),
           "all know of the failover");
  }
}

void RedisCluster::fail_over(std::size_t shard) {
  primary(shard).kill();
  promote_replica(shard);
}

void RedisCluster::begin_move(const std::string& key, std::size_t to) {
  const auto from = shard_of(key);
  const auto slot = slot_text(key);
  expect(primary(to).command({"CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(primaries_[from])}) ==
             "OK",
         "importing");
  expect(primary(from).command({"CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(primaries_[to])}) ==
             "OK",
         "migrating");
}

void RedisCluster::cancel_move(const std::string& key, std::size_t to) {
  for (auto* const one : {&primary_of(key), &primary(to)}) {
    expect(one->command({"CLUSTER", "SETSLOT", slot_text(key), "STABLE"}) == "OK", "it stays");
  }
}

void RedisCluster::move_keys(const std::string& key, std::size_t to) {
  const auto slot = slot_text(key);
  const auto port = std::to_string(primary(to).port());
  // Any node may still have keys of that slot.
  for (std::size_t from = 0; from < shards; ++from) {
    if (from == to) {
      continue;
    }
    for (;;) {
      const auto one = primary(from).command({"CLUSTER", "GETKEYSINSLOT", slot, "1"});
      if (one.empty()) {
        break;
      }
      expect(primary(from).command({"MIGRATE", "127.0.0.1", port, one, "0", "5000"}) == "OK",
             "a key moves");
    }
  }
}

void RedisCluster::end_move(const std::string& key, std::size_t to) {
  const auto slot = slot_text(key);
  const auto id = id_of(primaries_[to]);
  expect(primary(to).command({"CLUSTER", "SETSLOT", slot, "NODE", id}) == "OK", "the slot moves");
  for_each_primary(
      [&](RedisServer& one) { one.command({"CLUSTER", "SETSLOT", slot, "NODE", id}); });
}

}  // namespace tenure::test
