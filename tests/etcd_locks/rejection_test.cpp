#ifdef TENURE_WITH_SERVER  // whose tests have the certificates

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/etcd/server.hpp"
#include "support/net/connect_refusal.hpp"
#include "support/rpc/certificates.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// With TLS and with users: root, and ann, who may use what begins with "ann/".
class EtcdRejection : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    authority = new Authority;
    const auto certificate = authority->sign({.name = "server"});
    server = new EtcdServer({.arguments = {"--cert-file", certificate.file.string(), "--key-file",
                                           certificate.key.string()},
                             .has_tls = true});
    server->etcdctl({"user", "add", "root:secret0"});
    server->etcdctl({"user", "add", "ann:secret1"});
    server->etcdctl({"role", "add", "anns"});
    server->etcdctl({"role", "grant-permission", "anns", "readwrite", "--prefix=true", "ann/"});
    server->etcdctl({"user", "grant-role", "ann", "anns"});
    server->etcdctl({"user", "grant-role", "root", "root"});
    server->etcdctl({"auth", "enable"});
  }
  static void TearDownTestSuite() {
    delete server;
    delete authority;
  }
  [[nodiscard]] static Result<Client> open(const std::string& user, const std::string& rest = "") {
    return connect("etcds://" + user + "127.0.0.1:" + std::to_string(server->tls_port()) + rest +
                       "?tls_ca=" + authority->file().string(),
                   {.request_timeout = 5s});
  }

  // NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): one for all tests here.
  static inline Authority* authority = nullptr;
  static inline EtcdServer* server = nullptr;
  // NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
};

TEST_F(EtcdRejection, locks_work_with_tls_user_and_password) {
  const auto ann = open("ann:secret1@", "/ann");
  ASSERT_TRUE(ann) << to_string(ann.error());
  auto guard = ann->mutex("a").lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(ann->mutex("a").lock()); });

  EXPECT_EQ(ann->mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.unlock());
}

TEST_F(EtcdRejection, missing_and_wrong_passwords_are_rejected_by_connect) {
  expect(open("").error(), Errc::permission_denied, "use etcd://user:password@host");
  expect(open("ann:secret2@").error(), Errc::permission_denied, "user or password is wrong");
  expect(open("eve:secret2@").error(), Errc::permission_denied, "user or password is wrong");
}

TEST_F(EtcdRejection, a_forbidden_name_is_rejected_and_others_work) {
  const auto ann = open("ann:secret1@").value();

  expect(ann.mutex("bob/a").lock().error(), Errc::permission_denied, "permission denied");
  expect(ann.mutex("bob/a").try_lock().error(), Errc::permission_denied,
         "docs/reference/etcd_keys.md");
  expect(ann.holders("bob/a").error(), Errc::permission_denied, "permission denied");
  EXPECT_TRUE(ann.mutex("ann/a").lock());
}

TEST_F(EtcdRejection, an_invalidated_token_is_renewed) {
  const auto ann = open("ann:secret1@", "/ann").value();
  EXPECT_TRUE(ann.mutex("a").lock());
  // Any change of a user makes all tokens old; a new password of hers would make it worse.
  server->etcdctl({"--user", "root:secret0", "user", "add", "zoe:secret3"});

  const auto again = ann.mutex("a").lock();

  EXPECT_TRUE(again) << to_string(again.error());
}

TEST_F(EtcdRejection, another_ca_and_plaintext_are_reported) {
  const Authority other;
  const auto at = "127.0.0.1:" + std::to_string(server->tls_port());

  expect(connect("etcds://" + at + "?tls_ca=" + other.file().string()).error(),
         Errc::permission_denied, "check that tls_ca is the authority that signed it");
  expect(connect("etcd://" + at, {.request_timeout = 2s}).error(), Errc::unavailable,
         "if it requires TLS, use etcds://");
  // Its plain port closes without a word.
  expect(connect("etcds://" + server->address(), {.request_timeout = 2s}).error(),
         Errc::unavailable, "the connection is lost");
}

TEST_F(EtcdRejection, invalid_urls_are_rejected_with_the_position) {
  expect(connect("etcd://ann@localhost").error(), Errc::invalid_argument,
         "at 7: etcd requires user and password");
  expect(connect("etcd://localhost?colour=red").error(), Errc::invalid_argument,
         "at 17: unknown option \"colour\"");
  expect(connect("etcd://localhost/" + std::string(300, 'x')).error(), Errc::invalid_argument,
         "at most 256 bytes");
  expect(connect("etcd://127.0.0.1:1").error(), Errc::unavailable, "does etcd run there?");
}

}  // namespace
}  // namespace tenure::test

#endif
