#ifdef TENURE_WITH_SERVER  // provides the certificates

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/server.hpp"
#include "support/rpc/certificates.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class RedisTls : public ::testing::Test {
 protected:
  [[nodiscard]] RedisServer::Options with(const Certificate& certificate,
                                          const std::string& clients) const {
    return {.arguments = {"--tls-cert-file", certificate.file.string(), "--tls-key-file",
                          certificate.key.string(), "--tls-ca-cert-file", ours.file().string(),
                          "--tls-auth-clients", clients},
            .has_tls = true};
  }
  [[nodiscard]] static Result<Client> connect_to(const RedisServer& server,
                                                 const std::string& options,
                                                 const std::string& host = "127.0.0.1") {
    return connect("rediss://" + host + ":" + std::to_string(server.tls_port()) + options,
                   {.request_timeout = 10s});
  }
  static void expect(const Result<Client>& refused, Errc code, const std::string& words) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), code) << to_string(refused.error());
    EXPECT_NE(refused.error().detail.find(words), std::string::npos) << refused.error().detail;
  }

  Authority ours;
  Authority theirs;
  std::string trusting = "?tls_ca=" + ours.file().string();
};

TEST_F(RedisTls, locks_are_acquired_and_handed_over_through_tls) {
  RedisServer server(with(ours.sign({.name = "server"}), "no"));
  const auto ann = connect_to(server, trusting);
  ASSERT_TRUE(ann) << to_string(ann.error());
  auto guard = ann->mutex("a").lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(ann->mutex("a").lock()); });
  ASSERT_TRUE(eventually([&] { return server.command({"ZCARD", "{tenure:a}:q"}) == "1"; }));

  EXPECT_TRUE(guard.unlock());
}

TEST_F(RedisTls, a_client_certificate_is_sent_on_request) {
  RedisServer server(with(ours.sign({.name = "server"}), "yes"));
  const auto mine = ours.sign({.name = "client"});

  EXPECT_TRUE(connect_to(
      server, trusting + "&tls_cert=" + mine.file.string() + "&tls_key=" + mine.key.string()));
  EXPECT_FALSE(connect_to(server, trusting));
}

TEST_F(RedisTls, another_authority_or_host_name_is_rejected) {
  RedisServer elsewhere(with(ours.sign({.name = "far", .alternatives = "DNS:far.example"}), "no"));
  RedisServer server(with(ours.sign({.name = "server"}), "no"));

  expect(connect_to(server, "?tls_ca=" + theirs.file().string()), Errc::permission_denied,
         "check that tls_ca is the authority that signed it");
  expect(connect_to(elsewhere, trusting), Errc::permission_denied,
         "connect by a name that the certificate contains");
  expect(connect_to(server, ""), Errc::permission_denied, "certificate");
}

TEST_F(RedisTls, tls_on_one_end_only_is_reported) {
  RedisServer server(with(ours.sign({.name = "server"}), "no"));
  const auto port = std::to_string(server.port());

  expect(connect("rediss://127.0.0.1:" + port + trusting, {.request_timeout = 300ms}),
         Errc::unavailable, "TLS");
  expect(
      connect("redis://127.0.0.1:" + std::to_string(server.tls_port()), {.request_timeout = 10s}),
      Errc::unavailable, "TLS");
}

}  // namespace
}  // namespace tenure::test

#endif
