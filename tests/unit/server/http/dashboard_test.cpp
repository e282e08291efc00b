#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "server/http/assets.hpp"
#include "server/http/history.hpp"
#include "server/http/request_rights.hpp"
#include "support/http/service.hpp"
#include "sys/quantile.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using server::HttpForce;
using server::Totals;
using server::http::ClientInfo;

std::string post(const HttpService& service, std::string_view target, std::string_view fields) {
  return http_post(service.port, target, "", fields);
}

/// The same service with an HTTP secret.
std::string post_trusted(const HttpService& service, std::string_view target,
                         std::string_view fields = "") {
  return post(service, target, std::string(trusted_fields) + std::string(fields));
}

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)

// The dashboard -----------------------------------------------------------------------------------

TEST(HttpDashboard, a_browser_gets_the_dashboard_and_a_program_the_list_of_routes) {
  HttpService service;

  const auto page = service.get("/", "Accept: text/html,application/xhtml+xml\r\n");
  EXPECT_EQ(status_of(page), 200);
  EXPECT_HAS(page, "Content-Type: text/html; charset=utf-8\r\n");
  EXPECT_HAS(page, "script-src 'self'");
  EXPECT_HAS(page, "Cache-Control: no-store\r\n");
  EXPECT_HAS(service.get("/", "Accept: */*\r\n"), "GET /v1/locks");
}

// An inline script could execute lock names, which clients choose.
TEST(HttpDashboard, no_file_has_a_script_inside_or_names_another_origin) {
  for (const auto& asset : server::http::assets()) {
    if (!asset.path.ends_with(".html")) {
      continue;
    }
    EXPECT_EQ(asset.body.find("<script>"), asset.body.npos);
    EXPECT_EQ(asset.body.find("<style"), asset.body.npos);
    EXPECT_EQ(asset.body.find("http://"), asset.body.npos);
    EXPECT_EQ(asset.body.find("https://"), asset.body.npos);
  }
}

TEST(HttpDashboard, every_file_is_served_as_it_is_and_named_files_are_kept) {
  HttpService service;
  ASSERT_FALSE(server::http::assets().empty());
  for (const auto& asset : server::http::assets()) {
    const auto answer = service.get(asset.path);
    EXPECT_EQ(body_of(answer), asset.body) << asset.path;
    const bool is_kept = answer.find("immutable") != std::string::npos;
    EXPECT_EQ(is_kept, asset.path.starts_with("/assets/")) << asset.path;
  }
  EXPECT_EQ(status_of(service.get("/assets/nothing.js")), 404);
}

// Wait-for graph ----------------------------------------------------------------------------------

TEST(HttpDashboard, the_graph_has_the_locks_that_are_waited_for_and_no_others) {
  HttpService service;
  for (const auto lease : {7U, 8U, 9U}) {
    service.grant_lease(lease);
  }
  service.acquire(7, {lock("held")});
  service.acquire(7, {lock("wanted")});
  service.acquire(8, {lock("wanted")});
  service.acquire(9, {lock("wanted", LockMode::shared)});

  const auto graph = body_of(service.get("/v1/graph"));

  EXPECT_HAS(graph, R"("waits":2,"is_complete":true,"locks":[{"name":"wanted")");
  EXPECT_HAS(graph, R"("lease":"9")");
  EXPECT_EQ(graph.find("\"held\""), graph.npos) << graph;
}

TEST(HttpDashboard, a_graph_that_is_too_large_is_truncated_and_marked) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  for (int i = 0; i < 201; ++i) {
    service.acquire(7, {lock("n" + std::to_string(i))});
    service.acquire(8, {lock("n" + std::to_string(i))});
  }

  const auto graph = body_of(service.get("/v1/graph"));

  EXPECT_HAS(graph, R"("waits":201,"is_complete":false)");
}

// 004.084 specifies the same for locks inside a process.
TEST(HttpDashboard, the_deadlock_log_keeps_every_step_of_the_cycle) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  service.acquire(7, {lock("a")});
  service.acquire(8, {lock("b")});
  service.acquire(7, {lock("b")});
  service.acquire(8, {lock("a")});
  service.store.advance(2s);

  const auto page = body_of(service.get("/v1/deadlocks"));

  EXPECT_HAS(page, R"("ago_ms":2000,"cycle":[{"lease":"8")");
  EXPECT_HAS(page,
             R"("owner":"owner 8","name":"a","kind":"lock","held":{"name":"b","kind":"lock"}},)");
  EXPECT_HAS(page,
             R"("owner":"owner 7","name":"b","kind":"lock","held":{"name":"a","kind":"lock"}})");
}

// The middle step blocks the victim by its position in the queue, and holds nothing.
TEST(HttpDashboard, the_deadlock_log_distinguishes_holders_from_earlier_waiters) {
  HttpService service;
  for (const auto lease : {7U, 8U, 9U}) {
    service.grant_lease(lease);
  }
  service.acquire(7, {lock("a", LockMode::shared)});
  service.acquire(9, {lock("b")});
  service.acquire(8, {lock("a"), lock("b")});
  service.acquire(9, {lock("a", LockMode::shared)});

  const auto page = body_of(service.get("/v1/deadlocks"));

  EXPECT_HAS(page,
             R"("owner":"owner 9","name":"a","kind":"lock","held":{"name":"b","kind":"lock"}},)");
  EXPECT_HAS(page, R"("owner":"owner 8","name":"b","kind":"lock"})");
}

TEST(HttpDashboard, the_deadlock_log_keeps_the_latest_hundred) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  service.acquire(7, {lock("a")});
  service.acquire(8, {lock("b")});
  service.acquire(7, {lock("b")});
  for (int i = 0; i < 101; ++i) {
    service.acquire(8, {lock("a")});
  }

  const auto page = body_of(service.get("/v1/deadlocks"));

  std::size_t count = 0;
  for (auto at = page.find("ago_ms"); at != page.npos; at = page.find("ago_ms", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 100U);
}

// A busy server may compact a revision between the query for it and the watch.
TEST(HttpDashboard, a_watch_can_start_from_the_oldest_retained_event) {
  HttpService service({}, {.limits = {.events_max = 2}});
  service.grant_lease(7);
  for (const auto* name : {"a", "b", "c"}) {
    service.acquire(7, {lock(name)});
  }
  HttpClient client(service.port);

  client.send("GET /v1/events?start_revision=oldest HTTP/1.1\r\n\r\n");
  const auto received = client.read_until("\"name\":\"c\"");

  EXPECT_HAS(received, "event: ready\nid: 2\n");
  EXPECT_HAS(received, "\"name\":\"b\"");
  EXPECT_EQ(received.find("\"name\":\"a\""), received.npos);
}

// Forced release ----------------------------------------------------------------------------------

TEST(HttpForce, a_forced_release_ends_the_hold_with_this_token) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("db/a:b")});

  const auto stale = post_trusted(service, "/v1/locks/db%2Fa:b:force-release?token=1");
  EXPECT_EQ(status_of(stale), 409) << stale;
  const auto done = post_trusted(service, "/v1/locks/db%2Fa:b:force-release?token=2");
  EXPECT_EQ(status_of(done), 200) << done;
  EXPECT_HAS(done, R"({"holds":1,"revision":)");
  EXPECT_EQ(status_of(service.get("/v1/locks/db/a:b")), 404);
  const auto again = post_trusted(service, "/v1/locks/db%2Fa:b:force-release");
  EXPECT_EQ(status_of(again), 409) << again;
}

// The events are an audit trail that outlives the rotation of the log.
TEST(HttpForce, the_event_names_the_operator_and_the_reason) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  const auto done = service.post("/v1/locks/a:force-release", R"({"reason":"host is gone"})");
  HttpClient client(service.port);
  client.send("GET /v1/watch?start_revision=1 HTTP/1.1\r\n\r\n");
  const auto all = client.read_until("\"reason\":\"host is gone\"");

  EXPECT_EQ(status_of(done), 200) << done;
  EXPECT_HAS(all, R"("operator":"127.0.0.1","reason":"host is gone")");
}

TEST(HttpForce, an_invalid_reason_is_refused_and_nothing_is_released) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  for (const auto* body : {R"({"reason":"two\nlines"})", R"({"reason":7})", R"({"why":"x"})"}) {
    const auto answer = service.post("/v1/locks/a:force-release", body);
    EXPECT_EQ(status_of(answer), 400) << body << answer;
  }

  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 200);
}

// A foreign page can make the browser of an operator send the request.
TEST(HttpForce, a_cross_site_request_is_refused) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});
  const auto status = [&](std::string_view fields) {
    return status_of(
        post(service, "/v1/locks/a:force-release", bearing(http_secret) + std::string(fields)));
  };

  EXPECT_EQ(status(""), 403);
  EXPECT_EQ(status("Origin: http://127.0.0.1:1\r\n"), 403);
  EXPECT_EQ(status("Tenure-Intent: 1\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status("Tenure-Intent: 1\r\nOrigin: null\r\n"), 403);
  EXPECT_EQ(status("Tenure-Intent: 1\r\nOrigin: http://127.0.0.1:2\r\n"), 403);
  EXPECT_EQ(status("Tenure-Intent: 1\r\nSec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(status("Tenure-Intent: 1\r\nSec-Fetch-Site: same-site\r\n"), 403);
  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 200);

  EXPECT_EQ(status("Tenure-Intent: 1\r\nOrigin: http://127.0.0.1:1\r\n"
                   "Sec-Fetch-Site: same-origin\r\n"),
            200);
}

TEST(HttpForce, a_forced_release_is_refused_when_off_and_through_a_proxy) {
  HttpService off({.rights = {.force = HttpForce::off}});
  EXPECT_EQ(status_of(post_trusted(off, "/v1/locks/a:force-release")), 403);
  EXPECT_HAS(off.get("/v1/rights"),
             R"({"may_force":false,"force_reason":"listen.http_force is off",)");

  HttpService on;
  for (const auto* field : {"X-Forwarded-For: 127.0.0.1\r\n", "Forwarded: for=1.2.3.4\r\n",
                            "X-Real-IP: 127.0.0.1\r\n", "Via: 1.1 proxy\r\n"}) {
    EXPECT_EQ(status_of(post_trusted(on, "/v1/locks/a:force-release", field)), 403) << field;
    EXPECT_HAS(on.get("/v1/rights", bearing(http_secret) + field), R"("may_force":false)");
  }
  EXPECT_HAS(on.get("/v1/rights", bearing(http_secret)), R"("may_force":true)");
}

TEST(HttpForce, a_forced_release_requires_loopback_and_the_secret) {
  const ClientInfo elsewhere{.address = "10.0.0.7", .has_secret = true};
  const ClientInfo here{.address = "127.0.0.1", .is_local = true};
  const ClientInfo trusted{.address = "127.0.0.1", .is_local = true, .has_secret = true};

  EXPECT_FALSE(rights_of(elsewhere, {}).may_force);
  EXPECT_FALSE(rights_of(elsewhere, {}).needs_secret);
  EXPECT_FALSE(rights_of(here, {}).may_force);
  EXPECT_TRUE(rights_of(here, {}).needs_secret);
  EXPECT_TRUE(rights_of(trusted, {}).may_force);
  EXPECT_FALSE(rights_of(trusted, {}).needs_secret);
}

// nginx and HAProxy add no header by default, so a proxied request looks like a local one.
TEST(HttpForce, a_local_request_without_the_secret_changes_nothing) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  for (const auto& fields : {std::string(), bearing("wrong"), bearing(""),
                             "Authorization: Basic " + std::string(http_secret) + "\r\n",
                             "Cookie: tenure_session=" + std::string(http_secret) + "\r\n"}) {
    const auto answer = post(service, "/v1/locks/a:force-release", "Tenure-Intent: 1\r\n" + fields);
    EXPECT_EQ(status_of(answer), 403) << fields << answer;
    EXPECT_EQ(status_of(post(service, "/v1/locks/b:acquire", "Tenure-Intent: 1\r\n" + fields)),
              403);
    EXPECT_EQ(status_of(post(service, "/v1/leases", "Tenure-Intent: 1\r\n" + fields)), 403);
  }

  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 200);
  EXPECT_HAS(service.get("/v1/rights"), R"("needs_secret":true)");
}

// A server without a secret must not take an empty one for it.
TEST(HttpForce, a_server_without_a_secret_refuses_every_change) {
  const ClientInfo here{.address = "127.0.0.1", .is_local = true};

  EXPECT_FALSE(rights_of(here, {}).may_force);
  EXPECT_FALSE(rights_of(here, {}).may_lock);
  EXPECT_TRUE(rights_of(here, {.lock = server::HttpLock::open}).may_lock);
}

// The dashboard sends the secret once and has a cookie from then on.
TEST(HttpForce, the_secret_is_exchanged_for_a_login) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  const auto intent = std::string("Tenure-Intent: 1\r\n");
  EXPECT_EQ(status_of(post(service, "/v1/login", intent + bearing("wrong"))), 403);
  EXPECT_EQ(status_of(post(service, "/v1/login", intent)), 400);
  EXPECT_EQ(status_of(post(service, "/v1/login", bearing(http_secret))), 403);
  const auto login = post(service, "/v1/login", intent + bearing(http_secret));
  ASSERT_EQ(status_of(login), 200) << login;
  EXPECT_HAS(login, R"("may_force":true)");
  EXPECT_HAS(login, "HttpOnly; SameSite=Strict");
  const auto begin = login.find("Set-Cookie: ") + 12;
  const auto cookie = "Cookie: " + login.substr(begin, login.find(';', begin) - begin) + "\r\n";

  EXPECT_HAS(service.get("/v1/rights", cookie), R"("may_force":true)");
  EXPECT_EQ(status_of(post(service, "/v1/locks/a:force-release", cookie)), 403);
  EXPECT_EQ(status_of(post(service, "/v1/locks/a:force-release", intent + cookie)), 200);
  EXPECT_EQ(status_of(post(service, "/v1/logout", intent + cookie)), 200);
  EXPECT_HAS(service.get("/v1/rights", cookie), R"("may_force":false)");
}

TEST(HttpForce, a_follower_rejects_the_request) {
  HttpService service;
  service.store.follow(2, "10.0.0.2:7420");

  const auto answer = post_trusted(service, "/v1/locks/a:force-release");

  EXPECT_EQ(status_of(answer), 503) << answer;
}

// Rates and latencies -----------------------------------------------------------------------------

std::optional<double> quantile_between(const Totals::Buckets& before, const Totals::Buckets& after,
                                       double quantile) {
  return sys::quantile_between(before, after, quantile);
}

TEST(HttpHistory, a_quantile_lies_on_a_line_within_its_bucket) {
  const Totals::Buckets before{{0.1, 5}, {1, 5}, {0, 5}};
  const Totals::Buckets after{{0.1, 5}, {1, 15}, {0, 15}};

  EXPECT_DOUBLE_EQ(*quantile_between(before, after, 0.5), 0.55);
  EXPECT_DOUBLE_EQ(*quantile_between(before, after, 1), 1);
  EXPECT_FALSE(quantile_between(after, after, 0.5));
  EXPECT_FALSE(quantile_between({}, {}, 0.5));
}

TEST(HttpHistory, a_quantile_beyond_the_largest_bucket_is_its_bound) {
  const Totals::Buckets after{{0.1, 0}, {1, 0}, {0, 4}};

  EXPECT_DOUBLE_EQ(*quantile_between({}, after, 0.99), 1);
}

TEST(HttpHistory, rates_are_per_second_and_only_new_samples_are_returned) {
  server::http::History history;
  const std::chrono::steady_clock::time_point start{};
  history.add({.granted = 10}, {.locks = 1}, start);
  history.add({.granted = 30}, {.locks = 2}, start + 2s);
  history.add({.granted = 30}, {.locks = 3}, start + 4s);

  const auto all = history.write(0);
  EXPECT_HAS(all, R"("last":2,"series":{"granted":[10,0],)");
  EXPECT_HAS(all, R"("locks":[2,3])");
  EXPECT_HAS(all, R"("acquire_p50_seconds":[null,null])");
  EXPECT_HAS(history.write(1), R"("granted":[0],)");
  EXPECT_HAS(history.write(2), R"("granted":[],)");
}

TEST(HttpHistory, the_history_keeps_ten_minutes) {
  server::http::History history;
  const std::chrono::steady_clock::time_point start{};
  for (int i = 0; i <= 400; ++i) {
    history.add({}, {.locks = static_cast<std::size_t>(i)}, start + 2s * i);
  }

  EXPECT_HAS(history.write(0), R"("last":400)");
  EXPECT_HAS(history.write(0), R"("locks":[101,102,)");
  EXPECT_EQ(status_of(HttpService().get("/v1/history?after=x")), 400);
}

}  // namespace
}  // namespace tenure::test
