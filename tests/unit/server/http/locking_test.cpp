#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "server/http/request_rights.hpp"
#include "support/http/service.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using server::HttpLock;
using server::http::ClientInfo;
using server::http::rights_of;

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)

/// Lease and token of a grant, as the body of :release and :extend.
std::string key_of(const std::string& grant) {
  return R"("lease":")" + field(grant, "lease") + R"(","token":")" + field(grant, "token") + '"';
}

std::size_t leases(HttpService& service) {
  std::size_t count = 0;
  service.store.look([&](const server::View& view) { count = view.state.leases.all().size(); });
  return count;
}

std::size_t waits(HttpService& service) {
  std::size_t count = 0;
  service.store.look([&](const server::View& view) { count = view.state.locks.waits().size(); });
  return count;
}

/// Sends a request without waiting for the response.
class Asked {
 public:
  Asked(const HttpService& service, std::string_view target, std::string_view body)
      : client_(service.port) {
    client_.send("POST " + std::string(target) + " HTTP/1.1\r\n" + std::string(trusted_fields) +
                 "Connection: close\r\nContent-Length: " + std::to_string(body.size()) +
                 "\r\n\r\n" + std::string(body));
  }
  std::string answer() { return client_.read_all(); }

 private:
  HttpClient client_;
};

// One lease per lock ------------------------------------------------------------------------------

TEST(HttpLocking, a_lock_is_acquired_extended_and_released_by_three_requests) {
  HttpService service;

  const auto grant =
      service.post("/v1/locks/db/a:acquire", R"({"ttl_ms":5000,"owner":"curl","metadata":"why"})");
  EXPECT_EQ(status_of(grant), 200) << grant;
  EXPECT_HAS(grant, R"("name":"db/a","mode":"X","token":")");
  EXPECT_HAS(grant, R"("ttl_ms":5000)");
  EXPECT_HAS(service.get("/v1/locks/db/a"), R"("owner":"curl")");

  service.store.advance(4s);
  const auto extended = service.post("/v1/locks/db/a:extend", '{' + key_of(grant) + '}');
  EXPECT_EQ(status_of(extended), 200) << extended;
  service.store.advance(4s);
  EXPECT_EQ(status_of(service.get("/v1/locks/db/a")), 200);

  const auto released = service.post("/v1/locks/db/a:release", '{' + key_of(grant) + '}');
  EXPECT_EQ(status_of(released), 200) << released;
  EXPECT_HAS(released, R"({"count_left":0,"lease_ended":true)");
  EXPECT_EQ(status_of(service.get("/v1/locks/db/a")), 404);
  EXPECT_TRUE(eventually([&] { return leases(service) == 0; }));
}

TEST(HttpLocking, a_lock_that_is_not_extended_expires_after_its_ttl) {
  HttpService service;
  const auto grant = service.post("/v1/locks/a:acquire", R"({"ttl_ms":2000})");

  service.store.advance(3s);

  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 404);
  const auto late = service.post("/v1/locks/a:extend", '{' + key_of(grant) + '}');
  EXPECT_EQ(status_of(late), 410) << late;
  EXPECT_HAS(late, R"("code":"lease_lost")");
  EXPECT_EQ(status_of(service.post("/v1/locks/a:release", '{' + key_of(grant) + '}')), 409);
}

TEST(HttpLocking, a_request_that_does_not_wait_fails_at_once_and_leaves_no_lease) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  const auto refused = service.post("/v1/locks/a:acquire");

  EXPECT_EQ(status_of(refused), 409) << refused;
  EXPECT_HAS(refused, R"("code":"would_block")");
  EXPECT_HAS(refused, "application/problem+json");
  EXPECT_TRUE(eventually([&] { return leases(service) == 1; }));
}

TEST(HttpLocking, a_waiting_request_is_granted_when_the_lock_is_free) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  Asked asked(service, "/v1/locks/a:acquire", R"({"wait_ms":60000})");
  ASSERT_TRUE(eventually([&] { return waits(service) == 1; }));
  service.release(7, "a");

  const auto grant = asked.answer();
  EXPECT_EQ(status_of(grant), 200) << grant;
  EXPECT_HAS(grant, R"("token":")");
}

TEST(HttpLocking, a_timed_out_request_leaves_the_queue_and_no_lease) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  const auto late = service.post("/v1/locks/a:acquire", R"({"wait_ms":20})");

  EXPECT_EQ(status_of(late), 409) << late;
  EXPECT_HAS(late, R"("code":"timed_out")");
  EXPECT_EQ(waits(service), 0U);
  EXPECT_TRUE(eventually([&] { return leases(service) == 1; }));
}

// A lock granted to a killed client would stay held until its TTL ends.
TEST(HttpLocking, a_disconnected_client_leaves_the_queue_and_no_lease) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});
  {
    Asked asked(service, "/v1/locks/a:acquire", R"({"wait_ms":60000})");
    ASSERT_TRUE(eventually([&] { return waits(service) == 1; }));
  }

  EXPECT_TRUE(eventually([&] { return waits(service) == 0 && leases(service) == 1; }));
}

// A waiting acquire is exempt from the response timeout.
TEST(HttpLocking, a_wait_can_exceed_the_response_timeout) {
  HttpService service({.answer_time = 50ms});
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  const auto late = service.post("/v1/locks/a:acquire", R"({"wait_ms":300})");

  EXPECT_HAS(late, R"("code":"timed_out")");
}

TEST(HttpLocking, a_timed_out_store_leaves_no_lock) {
  HttpService service({.answer_time = 50ms});
  service.store.pause();

  EXPECT_EQ(status_of(service.post("/v1/locks/a:acquire")), 503);

  service.store.resume();
  EXPECT_TRUE(eventually([&] { return leases(service) == 0; }));
  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 404);
}

// Shared lease ------------------------------------------------------------------------------------

TEST(HttpLocking, the_end_of_a_lease_releases_all_its_locks) {
  HttpService service;
  const auto lease =
      field(service.post("/v1/leases", R"({"ttl_ms":9000,"client":"job"})"), "lease");
  const auto under = R"({"lease":")" + lease + "\"";
  EXPECT_EQ(status_of(service.post("/v1/locks/a:acquire", under + '}')), 200);
  const auto second = service.post("/v1/locks/b:acquire", under + R"(,"mode":"S"})");
  EXPECT_HAS(second, R"("mode":"S")");

  EXPECT_HAS(service.post("/v1/locks/b:release", '{' + key_of(second) + '}'),
             R"("lease_ended":false)");
  EXPECT_HAS(service.post("/v1/leases/" + lease + ":renew", R"({"ttl_ms":20000})"),
             R"("ttl_ms":20000)");
  EXPECT_HAS(service.get("/v1/leases/" + lease), R"("client":"job")");
  EXPECT_EQ(status_of(service.post("/v1/leases/" + lease + ":revoke")), 200);

  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 404);
  EXPECT_EQ(status_of(service.post("/v1/leases/" + lease + ":renew")), 410);
  EXPECT_EQ(status_of(service.post("/v1/leases/" + lease + ":revoke")), 410);
  EXPECT_EQ(status_of(service.post("/v1/locks/a:acquire", under + '}')), 410);
}

// The response was lost, and the client retries.
TEST(HttpLocking, a_repeated_request_returns_the_same_token) {
  HttpService service;
  const auto lease = field(service.post("/v1/leases"), "lease");
  const auto body = R"({"lease":")" + lease + R"(","request":"99"})";

  const auto first = service.post("/v1/locks/a:acquire", body);
  const auto again = service.post("/v1/locks/a:acquire", body);

  EXPECT_EQ(status_of(again), 200) << again;
  EXPECT_EQ(field(first, "token"), field(again, "token"));
}

TEST(HttpLocking, a_semaphore_admits_as_many_holders_as_it_has_permits) {
  HttpService service;
  const auto ask = [&](std::string_view body) {
    return status_of(service.post("/v1/locks/pool:acquire", body));
  };

  EXPECT_EQ(ask(R"({"capacity":3,"permits":2})"), 200);
  EXPECT_EQ(ask(R"({"capacity":3,"permits":2})"), 409);
  EXPECT_EQ(ask(R"({"capacity":3})"), 200);
}

// 002.054: neither the token of another lock nor a foreign lease releases a lock.
TEST(HttpLocking, only_the_holder_can_release_and_extend) {
  HttpService service;
  const auto first = service.post("/v1/locks/a:acquire");
  const auto other = service.post("/v1/locks/b:acquire");
  const auto mixed =
      R"({"lease":")" + field(other, "lease") + R"(","token":")" + field(first, "token") + "\"}";

  for (const auto* verb : {":release", ":extend"}) {
    const auto refused = service.post(std::string("/v1/locks/a") + verb, mixed);
    EXPECT_EQ(status_of(refused), 409) << refused;
    EXPECT_HAS(refused, R"("code":"not_held")");
    const auto elsewhere =
        service.post(std::string("/v1/locks/a") + verb, '{' + key_of(other) + '}');
    EXPECT_EQ(status_of(elsewhere), 409) << elsewhere;
  }
  EXPECT_EQ(status_of(service.get("/v1/locks/a")), 200);
  EXPECT_EQ(status_of(service.get("/v1/locks/b")), 200);
}

// Errors ------------------------------------------------------------------------------------------

TEST(HttpLocking, an_invalid_request_is_refused_with_its_error) {
  HttpService service;
  const auto ask = [&](std::string_view body) { return service.post("/v1/locks/a:acquire", body); };

  EXPECT_HAS(ask(R"({"mode":"Y"})"), "mode: expected IS, IX, S, U, SIX or X");
  EXPECT_HAS(ask(R"({"mode":"X","capacity":2})"), "a semaphore requires capacity");
  EXPECT_HAS(ask(R"({"permits":2})"), "a semaphore requires capacity");
  EXPECT_HAS(ask(R"({"capacity":4294967296})"), "a semaphore requires capacity");
  EXPECT_HAS(ask(R"({"wait_ms":60001})"), "wait_ms: at most 60000");
  EXPECT_HAS(ask(R"({"lease":7,"ttl_ms":5})"), "ttl_ms: excluded by lease");
  EXPECT_HAS(ask(R"({"request":7})"), "request: requires a lease");
  EXPECT_HAS(ask(R"({"ttl_ms":1})"), R"("code":"invalid_argument")");
  EXPECT_HAS(ask(R"({"ttl":5})"), "ttl: unknown field");
  EXPECT_HAS(service.post("/v1/leases/x:renew"), R"("status":400)");
  EXPECT_HAS(service.post("/v1/leases", R"({"ttl_ms":true})"), "ttl_ms: expected a number");
  EXPECT_HAS(service.post("/v1/locks/a:release", R"({"lease":1})"), "token: required");
  EXPECT_EQ(leases(service), 0U);
}

TEST(HttpLocking, a_limit_of_the_store_is_reported_as_resource_exhausted) {
  HttpService service({}, {.limits = {.leases_max = 1}});
  EXPECT_EQ(status_of(service.post("/v1/locks/a:acquire")), 200);

  const auto refused = service.post("/v1/locks/b:acquire");

  EXPECT_EQ(status_of(refused), 429) << refused;
  EXPECT_HAS(refused, R"("code":"resource_exhausted")");
}

TEST(HttpLocking, a_follower_rejects_the_request) {
  HttpService service;
  service.store.lead(false);

  for (const auto* target : {"/v1/locks/a:acquire", "/v1/leases", "/v1/leases/7:renew"}) {
    const auto answer = service.post(target);
    EXPECT_EQ(status_of(answer), 503) << answer;
    EXPECT_HAS(answer, "Retry-After: 1\r\n");
  }
}

TEST(HttpLocking, a_waiting_request_fails_when_leadership_is_lost) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  Asked asked(service, "/v1/locks/a:acquire", R"({"wait_ms":60000})");
  ASSERT_TRUE(eventually([&] { return waits(service) == 1; }));
  service.store.lead(false);

  EXPECT_EQ(status_of(asked.answer()), 503);
}

// Authorization -----------------------------------------------------------------------------------

TEST(HttpLocking, cross_site_and_unauthorized_requests_are_refused) {
  HttpService on;
  HttpService off({.rights = {.lock = HttpLock::off}});
  const auto ask = [](const HttpService& service, const std::string& fields) {
    return status_of(http_post(service.port, "/v1/locks/a:acquire", "", fields));
  };
  const std::string trusted(trusted_fields);

  EXPECT_EQ(ask(on, ""), 403);
  EXPECT_EQ(ask(on, "Tenure-Intent: 1\r\n"), 403);
  EXPECT_EQ(ask(on, "Authorization: Bearer " + std::string(http_secret) + "\r\n"), 403);
  EXPECT_EQ(ask(on, trusted + "Origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(ask(on, trusted + "X-Forwarded-For: 1.2.3.4\r\n"), 403);
  EXPECT_EQ(ask(on, trusted), 200);
  EXPECT_EQ(ask(off, trusted), 403);
  EXPECT_HAS(off.get("/v1/rights"), R"("may_lock":false,"lock_reason":"listen.http_lock is off")");
}

TEST(HttpLocking, remote_clients_can_lock_when_http_lock_is_open) {
  const ClientInfo elsewhere{.address = "10.0.0.7"};

  EXPECT_FALSE(rights_of(elsewhere, {}).may_lock);
  EXPECT_TRUE(rights_of(elsewhere, {.lock = HttpLock::open}).may_lock);
  EXPECT_FALSE(rights_of(elsewhere, {.lock = HttpLock::open}).may_force);
}

}  // namespace
}  // namespace tenure::test
