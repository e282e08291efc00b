#include <string>

#include <gtest/gtest.h>

#include "server/auth/authorizer.hpp"
#include "server/http/request_rights.hpp"
#include "support/http/service.hpp"

namespace tenure::test {
namespace {

using server::HttpForce;
using server::HttpLock;
using server::auth::Authorizer;
using server::auth::digest_of;
using server::auth::Level;
using server::auth::Policy;
using server::http::ClientInfo;
using server::http::rights_of;

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)

constexpr auto member_4 =
    R"({"member":"4","peer_address":"10.0.0.4:7422","client_address":"10.0.0.4:7420"})";

/// Leader of a cluster of three.
class HttpCluster : public ::testing::Test {
 protected:
  HttpCluster() { service.store.set_members({{.id = 1}, {.id = 2}, {.id = 3}}); }
  [[nodiscard]] std::string members() const { return body_of(service.get("/v1/cluster")); }

  HttpService service;
};

TEST_F(HttpCluster, a_member_is_added_and_removed) {
  EXPECT_EQ(body_of(service.post("/v1/cluster/members", member_4)), "{}\n");
  EXPECT_HAS(members(), R"("peer_address":"10.0.0.4:7422","client_address":"10.0.0.4:7420")");

  EXPECT_EQ(body_of(service.post("/v1/cluster/members/2:remove")), "{}\n");
  EXPECT_EQ(members().find(R"({"member":"2")"), std::string::npos) << members();
}

// A wrong address would be committed and could only be corrected by another change.
TEST_F(HttpCluster, an_invalid_member_changes_nothing) {
  for (const auto* body :
       {"", R"({"member":0,"peer_address":"a:1","client_address":"a:2"})",
        R"({"member":4,"peer_address":"a","client_address":"a:2"})",
        R"({"member":4,"peer_address":"a:1","client_address":"0.0.0.0:2"})",
        R"({"member":1,"peer_address":"a:1","client_address":"a:2"})",
        R"({"member":4,"peer_address":"a:1","client_address":"a:2","voter":true})"}) {
    EXPECT_EQ(status_of(service.post("/v1/cluster/members", body)), 400) << body;
  }
  for (const auto* id : {"9", "x", "0", "1"}) {
    const auto target = "/v1/cluster/members/" + std::string(id) + ":remove";
    EXPECT_EQ(status_of(service.post(target)), 400) << id;
  }
  EXPECT_HAS(members(), R"({"member":"3")");
  EXPECT_EQ(members().find(R"({"member":"4")"), std::string::npos);
}

TEST_F(HttpCluster, the_leadership_is_transferred_to_the_named_member) {
  EXPECT_EQ(status_of(service.post("/v1/cluster:transfer-leadership", R"({"to":9})")), 400);
  EXPECT_EQ(status_of(service.post("/v1/cluster:transfer-leadership", R"({"to":"3"})")), 200);

  EXPECT_HAS(members(), R"("role":"follower","leader":"3")");
}

TEST_F(HttpCluster, a_follower_rejects_changes_and_names_the_leader) {
  service.store.follow(2, "10.0.0.2:7420");

  EXPECT_EQ(status_of(service.post("/v1/cluster/members", member_4)), 503);
  EXPECT_EQ(status_of(service.post("/v1/cluster/members/3:remove")), 503);
  EXPECT_EQ(status_of(service.post("/v1/cluster:transfer-leadership")), 503);
}

TEST(HttpClusterReload, a_reload_returns_the_number_of_users_or_the_error) {
  Result<std::size_t> result = 2;
  server::http::ServerOptions options;
  options.reload = [&] { return result; };
  const HttpService service(options);

  EXPECT_EQ(body_of(service.post("/v1/cluster:reload")), "{\"users\":2}\n");
  result = fail(Errc::invalid_argument, "users.toml: line 3");
  const auto refused = service.post("/v1/cluster:reload");
  EXPECT_EQ(status_of(refused), 409);
  EXPECT_HAS(refused, "users.toml: line 3");
}

// An operator would otherwise believe that users are now enforced.
TEST(HttpClusterReload, a_server_without_files_to_reload_refuses) {
  const HttpService service;

  const auto refused = service.post("/v1/cluster:reload");

  EXPECT_EQ(status_of(refused), 409);
  EXPECT_HAS(refused, "--auth-file");
}

TEST(HttpClusterAccess, administration_without_users_requires_the_secret_and_the_setting) {
  const HttpService service;
  const HttpService off({.rights = {.force = HttpForce::off}});
  const auto ask = [](const HttpService& at, const std::string& fields) {
    return status_of(http_post(at.port, "/v1/cluster:transfer-leadership", "{}", fields));
  };

  EXPECT_EQ(ask(service, "Tenure-Intent: 1\r\n"), 403);
  EXPECT_EQ(ask(service, bearing(http_secret)), 403);
  EXPECT_EQ(ask(service, std::string(trusted_fields) + "Via: 1.1 proxy\r\n"), 403);
  EXPECT_EQ(ask(off, std::string(trusted_fields)), 403);
  EXPECT_EQ(ask(service, std::string(trusted_fields)), 400);
}

TEST(HttpClusterAccess, the_setting_off_applies_to_administrators_too) {
  Authorizer authorizer(*Policy::make(
      {{.name = "admin", .tokens = {digest_of("ad")}, .rules = {{"", Level::admin}}}}));
  server::http::ServerOptions options{.rights = {.force = HttpForce::off}};
  options.authorizer = &authorizer;
  const HttpService service(options);
  const auto fields = bearing("ad") + "Tenure-Intent: 1\r\n";

  EXPECT_EQ(status_of(http_post(service.port, "/v1/cluster:reload", "{}", fields)), 403);
  EXPECT_HAS(service.get("/v1/rights", fields),
             R"("may_administer":false,"administer_reason":"listen.http_force is off")");
}

TEST(HttpClusterAccess, an_admin_of_a_prefix_may_not_administer_the_cluster) {
  Authorizer authorizer(*Policy::make(
      {{.name = "keeper", .tokens = {digest_of("k")}, .rules = {{"a/", Level::admin}}}}));
  server::http::ServerOptions options;
  options.authorizer = &authorizer;
  const HttpService service(options);
  const auto fields = bearing("k") + "Tenure-Intent: 1\r\n";

  EXPECT_EQ(status_of(http_post(service.port, "/v1/cluster:reload", "{}", fields)), 403);
  EXPECT_HAS(service.get("/v1/rights", fields), R"("may_administer":false)");
}

// The dashboard asks for the secret only if it would help.
TEST(HttpClusterAccess, each_action_reports_whether_it_needs_the_secret) {
  const ClientInfo here{.address = "127.0.0.1", .is_local = true};
  const ClientInfo trusted{.address = "127.0.0.1", .is_local = true, .has_secret = true};

  EXPECT_TRUE(rights_of(here, {}).lock_needs_secret);
  EXPECT_FALSE(rights_of(trusted, {}).lock_needs_secret);
  EXPECT_FALSE(rights_of(here, {.lock = HttpLock::open}).lock_needs_secret);
  const auto no_force = rights_of(here, {.force = HttpForce::off});
  EXPECT_TRUE(no_force.lock_needs_secret);
  EXPECT_FALSE(no_force.needs_secret);
  EXPECT_TRUE(rights_of(trusted, {}).may_administer);
}

}  // namespace
}  // namespace tenure::test
