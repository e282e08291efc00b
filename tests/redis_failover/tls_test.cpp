#ifdef TENURE_WITH_SERVER  // provides the certificates

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/cluster.hpp"
#include "support/redis/group.hpp"
#include "support/rpc/certificates.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

/// Discovery, locks and a failover with TLS on every connection, also between the servers.
class RedisFailoverTls : public ::testing::Test {
 protected:
  /// Arguments of a server. `what`: options for the connections between servers,
  /// "--tls-replication" or "--tls-cluster".
  [[nodiscard]] std::vector<std::string> options(const std::vector<std::string>& what) {
    const auto certificate = ours.sign({.name = "server"});
    std::vector<std::string> words{"--tls-cert-file",    certificate.file.string(),
                                   "--tls-key-file",     certificate.key.string(),
                                   "--tls-ca-cert-file", ours.file().string(),
                                   "--tls-auth-clients", "no"};
    for (const auto& word : what) {
      words.insert(words.end(), {word, "yes"});
    }
    return words;
  }
  [[nodiscard]] Client connect_to(const std::string& url) const {
    return connect(url, {.request_timeout = test_timeout}).value();
  }

  Authority ours;
  std::string trusting = "?tls_ca=" + ours.file().string();
};

// 003.002
TEST_F(RedisFailoverTls, sentinel_discovery_and_failover_work_over_tls) {
  RedisGroup group({.tls = options({"--tls-replication"})});
  const auto ann = connect_to(group.url(trusting));
  const auto bob = connect_to(group.url(trusting));
  auto guard = ann.mutex("a", {.min_replicas = 1}).lock().value();
  std::optional<FencingToken> token;
  std::jthread waiter([&] {
    const auto mine = bob.mutex("a").lock();
    token = mine ? std::optional(mine->token()) : std::nullopt;
  });
  ASSERT_TRUE(
      eventually([&] { return group.primary().command({"ZCARD", "{tenure:a}:q"}) == "1"; }));
  ASSERT_EQ(group.primary().command({"WAIT", "1", "10000"}), "1");

  group.fail_over();

  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.unlock());
  waiter.join();
  ASSERT_TRUE(token);
  EXPECT_GT(*token, guard.token());
}

// A client without TLS, and a foreign authority.
TEST_F(RedisFailoverTls, a_sentinel_with_an_untrusted_certificate_is_reported) {
  const Authority theirs;
  RedisGroup group({.tls = options({"--tls-replication"})});
  auto plain = group.url();
  plain.erase(plain.find('s', 5), 1);
  ASSERT_TRUE(plain.starts_with("redis+sentinel://"));

  const auto untrusted = connect(group.url("?tls_ca=" + theirs.file().string()));
  const auto unspoken = connect(plain);

  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error(), Errc::permission_denied) << to_string(untrusted.error());
  ASSERT_FALSE(unspoken);
  EXPECT_NE(unspoken.error().detail.find("TLS"), std::string::npos) << unspoken.error().detail;
}

// 000-B20, 003.002
TEST_F(RedisFailoverTls, cluster_discovery_and_failover_work_over_tls) {
  RedisCluster cluster({.tls = options({"--tls-replication", "--tls-cluster"})});
  const auto name = cluster.name_on(1);
  const auto head = "{tenure:" + name + "}";
  const auto ann = connect_to(cluster.url(trusting));
  const auto bob = connect_to(cluster.url(trusting));
  auto elsewhere = ann.mutex(cluster.name_on(0)).lock().value();
  auto guard = ann.mutex(name, {.min_replicas = 1}).lock().value();
  std::optional<FencingToken> token;
  std::jthread waiter([&] {
    const auto mine = bob.mutex(name).lock();
    token = mine ? std::optional(mine->token()) : std::nullopt;
  });
  ASSERT_TRUE(eventually([&] { return cluster.command(head, {"ZCARD", head + ":q"}) == "1"; }));
  ASSERT_EQ(cluster.primary(1).command({"WAIT", "1", "10000"}), "1");

  cluster.fail_over(1);

  EXPECT_EQ(ann.mutex(name).try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.unlock());
  waiter.join();
  ASSERT_TRUE(token);
  EXPECT_GT(*token, guard.token());
  EXPECT_TRUE(elsewhere.unlock());
}

}  // namespace
}  // namespace tenure::test

#endif
