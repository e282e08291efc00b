#include "support/redis/group.hpp"

#include <stdexcept>

#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

void expect(bool is_true, const std::string& what) {
  if (!is_true) {
    throw std::runtime_error("this did not come true: " + what);
  }
}

bool is_linked(RedisServer& replica) {
  return replica.command({"INFO", "replication"}).find("master_link_status:up") !=
         std::string::npos;
}

bool has_replica(RedisServer& primary) {
  // A replica that acknowledges writes, which begins a little after its link is up.
  primary.command({"SET", "is there a replica?", "yes", "PX", "1"});
  return primary.command({"WAIT", "1", "100"}) == "1";
}

/// Port under which the other servers reach this one.
std::string announced_port(const RedisServer& server) {
  return std::to_string(server.tls_port() != 0 ? server.tls_port() : server.port());
}

}  // namespace

void disconnect_replicas(RedisServer& primary) {
  // The replicas reconnect at once and request a full synchronisation, which is delayed by ten
  // minutes.
  expect(primary.command({"CONFIG", "SET", "repl-diskless-sync-delay", "600"}) == "OK",
         "a late sync");
  expect(primary.command({"DEBUG", "CHANGE-REPL-ID"}) == "OK", "another replication id");
  primary.command({"CLIENT", "KILL", "TYPE", "replica"});
}

RedisGroup::RedisGroup(const Options& options) {
  const bool has_tls = !options.tls.empty();
  std::vector<std::string> arguments{"--enable-debug-command", "yes", "--repl-diskless-sync-delay",
                                     "0"};
  arguments.insert(arguments.end(), options.tls.begin(), options.tls.end());
  servers_.push_back(std::make_unique<RedisServer>(
      RedisServer::Options{.arguments = arguments, .has_tls = has_tls}));
  const auto port = announced_port(primary());
  arguments.insert(arguments.end(), {"--replicaof", "127.0.0.1", port});
  servers_.push_back(std::make_unique<RedisServer>(
      RedisServer::Options{.arguments = arguments, .has_tls = has_tls}));
  expect(eventually([&] { return has_replica(primary()); }), "the replica has everything");
  const auto& password = options.sentinel_password;
  auto lines = password.empty()
                   ? ""
                   : "requirepass " + password + "\nsentinel sentinel-pass " + password + "\n";
  // "--tls-replication", "yes"
  for (std::size_t at = 0; at + 1 < options.tls.size(); at += 2) {
    lines += options.tls[at].substr(2) + " " + options.tls[at + 1] + "\n";
  }
  lines += "sentinel monitor locks 127.0.0.1 " + port +
           " 2\nsentinel down-after-milliseconds locks 60000\n"
           "sentinel failover-timeout locks 5000\n";
  for (int count = 0; count < 3; ++count) {
    sentinels_.push_back(std::make_unique<RedisServer>(
        RedisServer::Options{.password = password, .has_tls = has_tls, .sentinel = lines}));
    sentinels_.back()->command({"SENTINEL", "DEBUG", "info-period", "100", "publish-period", "100",
                                "ask-period", "100", "ping-period", "100"});
  }
  const auto is_complete = [](RedisServer& sentinel) {
    const auto words = " " + sentinel.command({"SENTINEL", "MASTER", "locks"});
    return words.find(" num-slaves 1 ") != std::string::npos &&
           words.find(" num-other-sentinels 2 ") != std::string::npos;
  };
  for (const auto& one : sentinels_) {
    expect(eventually([&] { return is_complete(*one); }), "each Sentinel knows all the others");
  }
}

std::string RedisGroup::url(std::string_view rest) const {
  std::string names;
  for (const auto& sentinel : sentinels_) {
    names += (names.empty() ? "127.0.0.1:" : ",127.0.0.1:") + announced_port(*sentinel);
  }
  const bool has_tls = sentinels_.front()->tls_port() != 0;
  return (has_tls ? "rediss+sentinel://" : "redis+sentinel://") + names + "/locks" +
         std::string(rest);
}

void RedisGroup::disconnect_replica() {
  disconnect_replicas(primary());
  expect(eventually([&] { return !is_linked(replica()); }), "the replica is cut off");
}

void RedisGroup::promote_replica() {
  auto& next = replica();
  expect(eventually([&] {
           const auto answer = sentinel(0).command({"SENTINEL", "FAILOVER", "locks"});
           return answer == "OK" || answer.starts_with("INPROG");
         }),
         "a Sentinel begins a failover");
  expect(eventually([&] {
           return sentinel(0).command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "locks"}) ==
                  "127.0.0.1 " + announced_port(next);
         }),
         "the replica is the primary");
  primary_ = 1 - primary_;
}

void RedisGroup::fail_over() {
  primary().kill();
  promote_replica();
}

void RedisGroup::restore_replica() {
  replica().start();
  replica().command({"REPLICAOF", "127.0.0.1", announced_port(primary())});
  expect(eventually([&] { return has_replica(primary()); }), "the replica has everything");
}

}  // namespace tenure::test
