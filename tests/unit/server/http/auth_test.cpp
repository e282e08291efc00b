#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/auth/authorizer.hpp"
#include "server/http/router.hpp"
#include "support/http/service.hpp"

namespace tenure::test {
namespace {

using server::HttpForce;
using server::auth::Authorizer;
using server::auth::digest_of;
using server::auth::Level;
using server::auth::Policy;
using server::http::Method;
using server::http::Router;

constexpr auto intent = "Tenure-Intent: test\r\n";

class HttpAuth : public ::testing::Test {
 protected:
  static Policy rules() {
    return *Policy::make(
        {{.name = "reader", .tokens = {digest_of("r")}, .rules = {{"a/", Level::read}}},
         {.name = "overseer", .tokens = {digest_of("o")}, .rules = {{"", Level::read}}},
         {.name = "keeper",
          .tokens = {digest_of("k")},
          .rules = {{"", Level::read}, {"a/", Level::admin}}},
         {.name = "admin", .tokens = {digest_of("ad")}, .rules = {{"", Level::admin}}}});
  }
  static server::http::ServerOptions behind(Authorizer& authorizer) {
    server::http::ServerOptions options;
    options.authorizer = &authorizer;
    return options;
  }
  [[nodiscard]] std::string get(const std::string& target, const std::string& token) const {
    return service.get(target, bearing(token));
  }
  [[nodiscard]] std::string post(const std::string& target, const std::string& fields) const {
    HttpClient client(service.port);
    client.send("POST " + target +
                " HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\nContent-Length: 0\r\n" +
                fields + "\r\n");
    return client.read_all();
  }
  /// Logs in. Returns the cookie header that a browser sends from then on.
  [[nodiscard]] std::string cookie_of(const std::string& token) const {
    const auto answer = post("/v1/login", bearing(token) + intent);
    EXPECT_EQ(status_of(answer), 200) << answer;
    const auto begin = answer.find("Set-Cookie: ") + 12;
    return "Cookie: theme=dark; " + answer.substr(begin, answer.find(';', begin) - begin) + "\r\n";
  }
  void hold(std::uint64_t lease, const std::string& name) {
    service.grant_lease(lease);
    service.acquire(lease, {lock(name)});
  }

  Authorizer authorizer{rules()};
  HttpService service{behind(authorizer)};
};

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)
#define EXPECT_HAS_NOT(text, part) \
  EXPECT_EQ((text).find(part), std::string::npos) << (part) << "\nis in\n" << (text)

/// Status codes for: no credentials, a reader of a/, a reader of every name, an admin.
using Codes = std::vector<int>;
struct Row {
  std::string target;
  Codes codes;
};

/// Every route. A route that is missing here fails the test.
std::map<std::string, Row> page_rows() {
  return {
      {"GET /", {"/", {200, 200, 200, 200}}},
      {"GET /healthz", {"/healthz", {200, 200, 200, 200}}},
      {"GET /readyz", {"/readyz", {200, 200, 200, 200}}},
      {"GET /metrics", {"/metrics", {401, 403, 200, 200}}},
      {"GET /v1/status", {"/v1/status", {401, 200, 200, 200}}},
      {"GET /v1/cluster", {"/v1/cluster", {401, 200, 200, 200}}},
      {"GET /v1/history", {"/v1/history", {401, 403, 200, 200}}},
      {"GET /v1/deadlocks", {"/v1/deadlocks", {401, 200, 200, 200}}},
      {"GET /v1/graph", {"/v1/graph", {401, 200, 200, 200}}},
      {"GET /v1/events", {"/v1/events?prefix=b/", {401, 403, 200, 200}}},
      {"GET /v1/locks", {"/v1/locks?prefix=b/", {401, 403, 200, 200}}},
      {"GET /v1/locks/", {"/v1/locks/b/x", {401, 403, 404, 404}}},
      {"GET /v1/leases", {"/v1/leases", {401, 200, 200, 200}}},
      {"GET /v1/leases/", {"/v1/leases/7", {401, 404, 404, 404}}},
      {"GET /v1/rights", {"/v1/rights", {200, 200, 200, 200}}},
      {"POST /v1/login", {"/v1/login", {400, 200, 200, 200}}},
      {"POST /v1/logout", {"/v1/logout", {200, 200, 200, 200}}},
      {"GET /v1/watch", {"/v1/watch?prefix=b/", {401, 403, 200, 200}}},
      {"GET /v1/openapi.json", {"/v1/openapi.json", {200, 200, 200, 200}}},
      {"POST /v1/leases", {"/v1/leases", {401, 403, 403, 200}}},
      {"POST /v1/leases/:renew", {"/v1/leases/7:renew", {401, 410, 410, 410}}},
      {"POST /v1/leases/:revoke", {"/v1/leases/7:revoke", {401, 410, 410, 410}}},
      {"POST /v1/locks/:acquire", {"/v1/locks/b/y:acquire", {401, 403, 403, 200}}},
      // 400: the body with the token is missing.
      {"POST /v1/locks/:release", {"/v1/locks/b/y:release", {401, 400, 400, 400}}},
      {"POST /v1/locks/:extend", {"/v1/locks/b/y:extend", {401, 400, 400, 400}}},
      {"POST /v1/tokens:check", {"/v1/tokens:check", {401, 400, 400, 400}}},
      {"POST /v1/cluster/members", {"/v1/cluster/members", {401, 403, 403, 400}}},
      {"POST /v1/cluster/members/:remove", {"/v1/cluster/members/9:remove", {401, 403, 403, 400}}},
      {"POST /v1/cluster:transfer-leadership",
       {"/v1/cluster:transfer-leadership", {401, 403, 403, 400}}},
      // 409: the test server has nothing to reload.
      {"POST /v1/cluster:reload", {"/v1/cluster:reload", {401, 403, 403, 409}}},
      {"POST /v1/locks/:force-release", {"/v1/locks/b/x:force-release", {401, 403, 403, 409}}},
  };
}

// Catches a new route without a permission check.
TEST_F(HttpAuth, every_route_requires_the_permission_in_the_matrix) {
  const auto rows = page_rows();
  std::set<std::string> seen;
  for (const auto& route : Router::routes()) {
    const bool is_post = route.method == Method::post;
    const auto key =
        (is_post ? "POST " : "GET ") + std::string(route.path) + std::string(route.suffix);
    const auto row = rows.find(key);
    ASSERT_NE(row, rows.end()) << key << " has no row in the matrix";
    seen.insert(key);
    std::size_t column = 0;
    for (const auto* token : {"", "r", "o", "ad"}) {
      const auto fields = bearing(token) + intent;
      std::string answer;
      if (is_post) {
        answer = post(row->second.target, fields);
      } else {
        HttpClient client(service.port);
        client.send("GET " + row->second.target + " HTTP/1.1\r\nHost: 127.0.0.1:1\r\n" +
                    "Connection: close\r\n" + fields + "\r\n");
        // An event stream does not end by itself.
        answer = client.read_until("\r\n\r\n");
      }
      EXPECT_EQ(status_of(answer), row->second.codes[column++]) << key << " with " << token;
    }
  }
  EXPECT_EQ(seen.size(), rows.size());
}

TEST_F(HttpAuth, locks_require_the_right_and_leases_of_other_users_are_unknown) {
  const auto ask = [&](const std::string& target, const std::string& token,
                       const std::string& body = "") {
    return http_post(service.port, target, body, bearing(token) + intent);
  };
  const auto grant = ask("/v1/locks/a/1:acquire", "ad");
  const auto lease = field(grant, "lease");
  const auto key = R"({"lease":")" + lease + R"(","token":")" + field(grant, "token") + "\"}";

  EXPECT_EQ(status_of(ask("/v1/locks/b/1:acquire", "k")), 403);
  EXPECT_EQ(status_of(ask("/v1/locks/a/1:extend", "k", key)), 410);
  EXPECT_EQ(status_of(ask("/v1/locks/a/1:release", "k", key)), 409);
  EXPECT_EQ(status_of(ask("/v1/locks/a/2:acquire", "k", R"({"lease":")" + lease + "\"}")), 410);
  EXPECT_EQ(status_of(ask("/v1/leases/" + lease + ":renew", "k")), 410);
  EXPECT_EQ(status_of(ask("/v1/leases/" + lease + ":revoke", "k")), 410);
  EXPECT_EQ(status_of(ask("/v1/locks/a/1:release", "ad", key)), 200);
  const auto own = ask("/v1/locks/a/1:acquire", "k", R"({"owner":"job"})");
  EXPECT_EQ(status_of(own), 200) << own;
  EXPECT_HAS(get("/v1/leases/" + field(own, "lease"), "k"), R"("client":"keeper/job")");
}

TEST_F(HttpAuth, a_lease_records_the_authenticated_user) {
  const auto body = R"({"owner":"admin"})";

  const auto acquired =
      http_post(service.port, "/v1/locks/a/1:acquire", body, bearing("k") + std::string(intent));
  const auto granted =
      http_post(service.port, "/v1/leases", "{}", bearing("k") + std::string(intent));

  EXPECT_EQ(status_of(acquired), 200) << acquired;
  EXPECT_EQ(status_of(granted), 200) << granted;
  service.store.look([](const server::View& view) {
    EXPECT_EQ(view.state.leases.all().size(), 2U);
    for (const auto& [id, lease] : view.state.leases.all()) {
      EXPECT_EQ(lease->user.view(), "keeper");
    }
  });
}

// Regression: after the lock permission was withdrawn, HTTP refused to release held locks.
TEST_F(HttpAuth, a_user_without_the_lock_right_can_still_release) {
  const auto ask = [&](const std::string& target, const std::string& body = "") {
    return http_post(service.port, target, body, bearing("k") + intent);
  };
  const auto grant = ask("/v1/locks/a/1:acquire");
  const auto key =
      R"({"lease":")" + field(grant, "lease") + R"(","token":")" + field(grant, "token") + "\"}";
  authorizer.replace(*Policy::make({{.name = "keeper", .tokens = {digest_of("k")}, .rules = {}}}));

  EXPECT_EQ(status_of(ask("/v1/locks/a/2:acquire")), 403);
  EXPECT_EQ(status_of(ask("/v1/leases")), 403);
  EXPECT_EQ(status_of(ask("/v1/locks/a/1:release", key)), 200);
}

TEST_F(HttpAuth, a_token_check_requires_the_read_right) {
  const auto ask = [&](const std::string& name) {
    return http_post(service.port, "/v1/tokens:check", R"({"name":")" + name + R"(","token":1})",
                     bearing("r") + intent);
  };

  EXPECT_EQ(status_of(ask("a/1")), 200);
  EXPECT_EQ(status_of(ask("b/1")), 403);
}

TEST_F(HttpAuth, an_unauthenticated_client_gets_a_remedy) {
  const auto answer = get("/v1/locks", "");

  EXPECT_EQ(status_of(answer), 401);
  EXPECT_HAS(answer, "WWW-Authenticate: Bearer");
  EXPECT_HAS(answer, "authorization: Bearer");
  EXPECT_EQ(status_of(get("/v1/locks", "wrong")), 401);
}

TEST_F(HttpAuth, lists_and_the_graph_contain_only_readable_locks) {
  hold(1, "a/1");
  hold(2, "b/1");
  service.grant_lease(3);
  service.acquire(3, {lock("a/1")});
  service.grant_lease(4);
  service.acquire(4, {lock("b/1")});

  const auto locks = body_of(get("/v1/locks", "r"));
  EXPECT_HAS(locks, "a/1");
  EXPECT_HAS_NOT(locks, "b/1");
  EXPECT_HAS(body_of(get("/v1/locks", "o")), "b/1");
  const auto graph = body_of(get("/v1/graph", "r"));
  EXPECT_HAS(graph, "a/1");
  EXPECT_HAS_NOT(graph, "b/1");
  EXPECT_EQ(status_of(get("/v1/locks/a/1", "r")), 200);
  // The same reply whether the lock exists or not.
  EXPECT_EQ(body_of(get("/v1/locks/b/1", "r")).size(), body_of(get("/v1/locks/b/2", "r")).size());
  EXPECT_EQ(status_of(get("/v1/locks/b/1", "r")), 403);
  EXPECT_EQ(status_of(get("/v1/leases/2", "r")), 404);
  EXPECT_EQ(status_of(get("/v1/leases/2", "o")), 200);
}

TEST_F(HttpAuth, event_streams_contain_only_readable_events) {
  HttpClient client(service.port);
  client.send("GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer r\r\n\r\n");
  (void)client.read_until("event: ready");

  hold(1, "b/1");
  hold(2, "a/1");

  const auto received = client.read_until("a/1");
  EXPECT_HAS(received, "a/1");
  EXPECT_HAS_NOT(received, "b/1");
}

TEST_F(HttpAuth, metrics_can_be_configured_without_authentication) {
  auto options = behind(authorizer);
  options.open_metrics = true;
  const HttpService open(options);

  EXPECT_EQ(status_of(open.get("/metrics")), 200);
  EXPECT_EQ(status_of(open.get("/v1/history")), 401);
}

TEST_F(HttpAuth, the_login_cookie_is_http_only_and_same_site) {
  const auto answer = post("/v1/login", bearing("k") + intent);

  EXPECT_EQ(status_of(answer), 200);
  EXPECT_HAS(answer, "Set-Cookie: tenure_session=tenure_");
  EXPECT_HAS(answer, "; HttpOnly");
  EXPECT_HAS(answer, "; SameSite=Strict");
  EXPECT_HAS(answer, "; Max-Age=43200");
  EXPECT_HAS_NOT(answer, "; Secure");
  EXPECT_HAS(body_of(answer), "\"user\":\"keeper\"");
}

// Behind a TLS proxy only the Origin header shows that the page was loaded over TLS.
TEST_F(HttpAuth, the_login_cookie_of_a_tls_page_is_secure) {
  const auto answer = post("/v1/login", bearing("k") + intent + "Origin: https://127.0.0.1:1\r\n");

  EXPECT_EQ(status_of(answer), 200);
  EXPECT_HAS(answer, "; Secure");
}

TEST_F(HttpAuth, pages_of_other_origins_can_neither_log_in_nor_log_out) {
  EXPECT_EQ(status_of(post("/v1/login", bearing("k"))), 403);
  EXPECT_EQ(status_of(post("/v1/login", bearing("k") + intent + "Origin: http://evil\r\n")), 403);
  const auto cookie = cookie_of("k");
  EXPECT_EQ(status_of(post("/v1/logout", cookie)), 403);
  EXPECT_EQ(status_of(post("/v1/logout", cookie + intent + "Sec-Fetch-Site: cross-site\r\n")), 403);
  EXPECT_EQ(status_of(service.get("/v1/status", cookie)), 200);
}

TEST_F(HttpAuth, a_wrong_token_does_not_log_in) {
  const auto answer = post("/v1/login", bearing("wrong") + intent);

  EXPECT_EQ(status_of(answer), 401);
  EXPECT_HAS_NOT(answer, "Set-Cookie");
}

// Regression: a reload that removed the user during its login led to a null pointer.
TEST_F(HttpAuth, a_login_while_the_users_are_reloaded_is_answered) {
  const auto others = [] {
    return *Policy::make(
        {{.name = "admin", .tokens = {digest_of("ad")}, .rules = {{"", Level::admin}}}});
  };
  std::jthread reloads([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      authorizer.replace(others());
      authorizer.replace(rules());
    }
  });
  int answered = 0;
  for (int n = 0; n < 300; ++n) {
    const auto status = status_of(post("/v1/login", bearing("r") + intent));
    answered += status == 200 || status == 401 ? 1 : 0;
  }
  EXPECT_EQ(answered, 300);
}

TEST_F(HttpAuth, a_cookie_is_valid_until_logout_or_removal_of_the_user) {
  const auto cookie = cookie_of("o");
  EXPECT_EQ(status_of(service.get("/v1/locks", cookie)), 200);
  EXPECT_EQ(status_of(service.get("/v1/locks", "Cookie: tenure_session=tenure_12\r\n")), 401);

  const auto other = cookie_of("o");
  EXPECT_EQ(status_of(post("/v1/logout", cookie + intent)), 200);
  EXPECT_EQ(status_of(service.get("/v1/locks", cookie)), 401);
  EXPECT_EQ(status_of(service.get("/v1/locks", other)), 200);

  authorizer.replace(*Policy::make({{.name = "x", .tokens = {digest_of("x")}}}));
  EXPECT_EQ(status_of(service.get("/v1/locks", other)), 401);
}

TEST_F(HttpAuth, a_forced_release_requires_the_admin_right_on_the_name) {
  hold(1, "a/1");
  hold(2, "b/1");
  const auto cookie = cookie_of("k");

  EXPECT_EQ(status_of(post("/v1/locks/b/1:force-release", cookie + intent)), 403);
  EXPECT_EQ(status_of(post("/v1/locks/a/1:force-release", cookie)), 403);
  EXPECT_EQ(status_of(post("/v1/locks/a/1:force-release", cookie + intent)), 200);
  EXPECT_EQ(status_of(post("/v1/locks/b/1:force-release", bearing("ad") + intent)), 200);
}

TEST_F(HttpAuth, rights_return_the_user_and_whether_a_login_is_possible) {
  EXPECT_HAS(body_of(get("/v1/rights", "")), "\"has_users\":true,\"user\":\"\"");
  const auto rights = body_of(service.get("/v1/rights", cookie_of("k")));
  EXPECT_HAS(rights, "\"may_force\":true");
  EXPECT_HAS(rights, "\"user\":\"keeper\"");
  EXPECT_HAS(rights, "{\"prefix\":\"a/\",\"level\":\"admin\"}");
  EXPECT_HAS(body_of(get("/v1/rights", "r")), "\"may_force\":false");
  EXPECT_HAS(body_of(HttpService().get("/v1/rights")), "\"has_users\":false");
}

TEST(HttpCookies, are_found_among_others) {
  using server::http::cookie_in;

  EXPECT_EQ(cookie_in("a=b; tenure_session=x; c=d", "tenure_session"), "x");
  EXPECT_EQ(cookie_in("tenure_session=x", "tenure_session"), "x");
  EXPECT_EQ(cookie_in("not_tenure_session=x", "tenure_session"), "");
  EXPECT_EQ(cookie_in("tenure_session", "tenure_session"), "");
  EXPECT_EQ(cookie_in("", "tenure_session"), "");
}

}  // namespace
}  // namespace tenure::test
