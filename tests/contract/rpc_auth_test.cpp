#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "backends/url.hpp"
#include "server/auth/authorizer.hpp"
#include "support/rpc/certificates.hpp"
#include "support/rpc/service.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using server::auth::Authorizer;
using server::auth::digest_of;
using server::auth::Level;
using server::auth::Policy;

/// A tenured with users, and clients of the library.
class RpcAuth : public ::testing::Test {
 protected:
  static Policy rules(Level of_alice = Level::lock) {
    return *Policy::make({{.name = "alice",
                           .tokens = {digest_of("secret-of-alice")},
                           .certificates = {"alice.example"},
                           .rules = {{"a/", of_alice}}},
                          {.name = "ops",
                           .tokens = {digest_of("secret-of-ops")},
                           .certificates = {"ops"},
                           .rules = {{"", Level::admin}}}});
  }
  [[nodiscard]] Result<Client> alice() const {
    return connect(service.url(), {.auth_token = "secret-of-alice"});
  }

  Authorizer authorizer{rules()};
  RpcService service{{.authorizer = &authorizer}};
};

TEST_F(RpcAuth, a_client_with_a_token_locks_permitted_names) {
  const auto client = alice();
  ASSERT_TRUE(client) << to_string(client.error());

  auto guard = client->mutex("a/x").lock();
  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(client->holders("a/x")->size(), 1U);
  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(client->rw_lock("a/y").lock_shared());
}

TEST_F(RpcAuth, a_request_without_permission_fails_at_once) {
  const auto client = alice();
  ASSERT_TRUE(client) << to_string(client.error());

  const auto denied = client->mutex("b/x").lock();
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error(), Errc::permission_denied);
  EXPECT_NE(denied.error().detail.find("alice may not lock \"b/x\""), std::string::npos)
      << denied.error().detail;
  EXPECT_EQ(client->holders("b/x").error(), Errc::permission_denied);
  EXPECT_EQ(client->lock_all({"a/x", "b/x"}).error(), Errc::permission_denied);
  // And goes on with what it may.
  EXPECT_TRUE(client->mutex("a/x").lock());
}

TEST_F(RpcAuth, a_watch_without_read_permission_ends_with_the_reason) {
  const auto client = alice();
  ASSERT_TRUE(client) << to_string(client.error());

  auto watch = client->watch("b/x");
  const auto event =
      watch ? watch->next_for(20s) : Result<LockEvent>(std::unexpected(watch.error()));

  ASSERT_FALSE(event);
  EXPECT_EQ(event.error(), Errc::permission_denied) << to_string(event.error());
}

// No error and no message may show a secret.
TEST_F(RpcAuth, a_connection_without_a_token_is_rejected_and_errors_omit_secrets) {
  for (const auto& [url, options] :
       {std::pair{service.url(), ConnectOptions{}},
        std::pair{service.url(), ConnectOptions{.auth_token = "wrong-secret"}},
        std::pair{service.url(), ConnectOptions{.auth_token = "with spaces wrong-secret"}},
        std::pair{"tenure://wrong-secret@" + service.address(), ConnectOptions{}},
        std::pair{"tenure://wrong-secret@" + service.address() + "?nonsense=1",
                  ConnectOptions{}}}) {
    const auto client = connect(url, options);
    // Finding the leader requires no token.
    const auto locked =
        client ? client->mutex("a/x").try_lock() : Result<Guard>(std::unexpected(client.error()));
    ASSERT_FALSE(locked);
    EXPECT_EQ(locked.error().detail.find("wrong-secret"), std::string::npos)
        << locked.error().detail;
  }
  const auto client = connect(service.url());
  const auto locked =
      client ? client->mutex("a/x").try_lock() : Result<Guard>(std::unexpected(client.error()));
  EXPECT_EQ(locked.error(), Errc::permission_denied) << to_string(locked.error());
}

TEST_F(RpcAuth, the_token_is_read_from_the_url_or_a_file) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "token").string();
  std::ofstream(file) << "secret-of-alice\n";
  const auto works = [](const Result<Client>& client) {
    return client && client->mutex("a/x").lock().has_value();
  };

  EXPECT_TRUE(works(connect("tenure://secret-of-alice@" + service.address())));
  EXPECT_TRUE(works(connect("tenure://alice:secret-of-alice@" + service.address())));
  EXPECT_TRUE(works(connect(service.url("?token_file=" + file))));
  EXPECT_TRUE(works(connect(service.url(), {.auth_token_file = file})));
  const auto missing = connect(service.url(), {.auth_token_file = file + "x"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), Errc::invalid_argument);
  EXPECT_EQ(connect("memory://", {.auth_token = "x"}).error(), Errc::unsupported);
}

// While it is held: renewals go on, and a right that is withdrawn is felt by the next lock.
TEST_F(RpcAuth, changed_policies_apply_to_connected_clients) {
  const auto client = alice();
  ASSERT_TRUE(client) << to_string(client.error());
  auto held = client->mutex("a/held").lock();
  ASSERT_TRUE(held);

  authorizer.replace(rules(Level::read));
  EXPECT_EQ(client->mutex("a/x").lock().error(), Errc::permission_denied);
  EXPECT_TRUE(held->unlock());

  authorizer.replace(rules());
  EXPECT_TRUE(client->mutex("a/x").lock());
}

TEST_F(RpcAuth, a_removed_user_loses_its_locks_when_their_leases_expire) {
  const auto client = alice();
  ASSERT_TRUE(client) << to_string(client.error());
  auto held = client->mutex("a/held", {.ttl = 1s}).lock();
  ASSERT_TRUE(held);

  authorizer.replace(*Policy::make({{.name = "x", .tokens = {digest_of("x")}}}));

  EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
}

TEST_F(RpcAuth, a_client_certificate_authenticates_the_user_of_its_name) {
  Authority authority;
  const RpcService mutual({.tls = authority.mutual_files(authority.sign({.name = "server"})),
                           .authorizer = &authorizer});
  const auto as = [&](const Authority::Subject& subject) {
    const auto certificate = authority.sign(subject);
    return connect(mutual.url("?tls_ca=" + authority.file().string() + "&tls_cert=" +
                              certificate.file.string() + "&tls_key=" + certificate.key.string()));
  };
  const auto locks = [](const Result<Client>& client, const std::string& name) {
    const auto guard =
        client ? client->mutex(name).lock() : Result<Guard>(std::unexpected(client.error()));
    return guard ? "locked" : std::string(to_string(guard.error().code));
  };

  // By the common name, and by an alternative name.
  EXPECT_EQ(locks(as({.name = "ops"}), "b/x"), "locked");
  const Authority::Subject by_dns{.name = "unrelated", .alternatives = "DNS:alice.example"};
  EXPECT_EQ(locks(as(by_dns), "a/x"), "locked");
  EXPECT_EQ(locks(as(by_dns), "b/x"), to_string(Errc::permission_denied));
  EXPECT_EQ(locks(as({.name = "mallory"}), "a/x"), to_string(Errc::permission_denied));
}

TEST(Secrets, a_url_is_logged_without_its_credentials) {
  using backends::without_secrets;

  EXPECT_EQ(without_secrets("tenure://tok@h:1/?a=b@c"), "tenure://***@h:1/?a=b@c");
  EXPECT_EQ(without_secrets("redis://u:p@ss@h"), "redis://***@h");
  EXPECT_EQ(without_secrets("tenure://h:1?x=a@b"), "tenure://h:1?x=a@b");
  EXPECT_EQ(without_secrets("nothing@all"), "nothing@all");
}

}  // namespace
}  // namespace tenure::test
