#ifdef TENURE_WITH_SERVER  // provides the certificates

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/server.hpp"
#include "support/rpc/certificates.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TEST(RedlockTls, votes_are_cast_through_tls) {
  Authority ours;
  Authority theirs;
  const auto certificate = ours.sign({.name = "server"});
  std::vector<std::unique_ptr<RedisServer>> servers;
  std::string hosts;
  for (int n = 0; n < 3; ++n) {
    servers.push_back(std::make_unique<RedisServer>(RedisServer::Options{
        .arguments = {"--tls-cert-file", certificate.file.string(), "--tls-key-file",
                      certificate.key.string(), "--tls-ca-cert-file", ours.file().string(),
                      "--tls-auth-clients", "no"},
        .has_tls = true}));
    const auto port = std::to_string(servers.back()->tls_port());
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + port;
  }
  const auto with = [&](const Authority& authority) {
    return "redlocks://" + hosts +
           "?restart_wait=0s&node_timeout=3s&tls_ca=" + authority.file().string();
  };

  const auto client = connect(with(ours), {.request_timeout = 10s});
  const auto refused = connect(with(theirs), {.request_timeout = 10s});

  ASSERT_TRUE(client) << to_string(client.error());
  EXPECT_TRUE(client->mutex("a").lock());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::permission_denied) << to_string(refused.error());
}

}  // namespace
}  // namespace tenure::test

#endif
