#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "support/http/service.hpp"
#include "sys/escape.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)

TEST(HttpPages, readiness_requires_a_leader_and_disk_space_and_health_does_not) {
  HttpService service;
  EXPECT_EQ(status_of(service.get("/healthz")), 200);
  EXPECT_EQ(status_of(service.get("/readyz")), 200);

  service.store.set_space(false);
  const auto full = service.get("/readyz");
  EXPECT_EQ(status_of(full), 503);
  EXPECT_HAS(full, "the disk is full");
  service.store.lead(false);
  EXPECT_HAS(service.get("/readyz"), "the cluster has no leader");
  EXPECT_EQ(status_of(service.get("/healthz")), 200);
}

// 002.001 to 002.008: what a lock record shows.
TEST(HttpPages, a_lock_shows_its_holder_and_its_queue) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  service.grant_lease(9);
  service.acquire(7, {lock("db/users/42")}, "why");
  service.acquire(8, {lock("db/users/42", LockMode::shared)});
  service.acquire(9, {lock("db/users/42", LockMode::shared)});
  service.store.advance(1500ms);

  const auto page = service.get("/v1/locks/db/users/42");

  EXPECT_EQ(status_of(page), 200);
  EXPECT_EQ(
      body_of(page),
      R"({"name":"db/users/42","kind":"lock","create_revision":"4","mod_revision":"4",)"
      R"("version":1,"holder_count":1,"waiter_count":2,"holders":[{"owner":"owner 7","user":"",)"
      R"("lease":"7",)"
      R"("request":"1","token":"4","mode":"X","create_revision":"4","held_for_ms":1500,"count":1,)"
      R"("metadata":"why"}],"queue":[{"position":1,"owner":"owner 8","user":"","lease":"8",)"
      R"("request":"2",)"
      R"("ticket":"5","mode":"S","waited_ms":1500,"is_upgrade":false,"metadata":""},)"
      R"({"position":2,"owner":"owner 9","user":"","lease":"9","request":"3","ticket":"6",)"
      R"("predecessor":"5","mode":"S","waited_ms":1500,"is_upgrade":false,"metadata":""}]})"
      "\n");
  EXPECT_EQ(body_of(service.get("/v1/locks/db%2Fusers%2F42")), body_of(page));
  EXPECT_EQ(status_of(service.get("/v1/locks/free")), 404);
}

TEST(HttpPages, locks_are_listed_by_prefix_and_page_after_page) {
  HttpService service;
  service.grant_lease(7);
  for (const auto* name : {"a/1", "a/2", "a/3", "b/1"}) {
    service.acquire(7, {lock(name)});
  }
  service.acquire(7, {{.name = "a/2", .claim = core::Keys{.range = BytesRange::point("k")}}});

  std::string seen;
  std::string after;
  int pages = 0;
  do {
    const auto page = body_of(service.get("/v1/locks?prefix=a%2F&limit=1" + after));
    const auto name = page.find("\"name\":\"");
    seen += page.substr(name + 8, 3) + (page.find("\"kind\":\"space\"") > page.size() ? " " : "* ");
    const auto next = page.find("\"next\":\"");
    after = next == std::string::npos
                ? ""
                : "&after=" + page.substr(next + 8, page.find('"', next + 8) - next - 8);
  } while (!after.empty() && ++pages < 10);

  EXPECT_EQ(seen, "a/1 a/2 a/2* a/3 ");
}

TEST(HttpPages, semaphores_and_ranges_show_their_claims) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {{.name = "s", .claim = core::Permits{.capacity = 5, .wanted = 2}}});
  service.acquire(7, {{.name = "k",
                       .claim = core::Keys{.range = BytesRange::half_open("a", "\xff").value(),
                                           .mode = LockMode::shared}}});

  const auto page = body_of(service.get("/v1/locks"));

  EXPECT_HAS(page, R"("kind":"semaphore","capacity":5)");
  EXPECT_HAS(page, R"("permits":2)");
  EXPECT_HAS(page, R"("mode":"S","range":{"start":"a","end":"/w==","end_encoding":"base64"})");
  EXPECT_EQ(status_of(service.get("/v1/locks/k?kind=space")), 200);
  EXPECT_EQ(status_of(service.get("/v1/locks/k")), 404);
}

// Names are arbitrary bytes; the response must be valid JSON in any case.
TEST(HttpPages, binary_names_give_valid_json) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("\xff!\"")}, std::string("\x00\xc3", 2));
  service.acquire(7, {lock("\"quoted\" <script>")});

  const auto page = body_of(service.get("/v1/locks"));

  EXPECT_TRUE(sys::is_utf8(page));
  EXPECT_HAS(page, R"("name":"/yEi","name_encoding":"base64")");
  EXPECT_HAS(page, R"("metadata":"AMM=","metadata_encoding":"base64")");
  EXPECT_HAS(page, R"("name":"\"quoted\" <script>")");
  EXPECT_EQ(status_of(service.get("/v1/locks/%ff!%22")), 200);
}

// 002.009 to 002.013, 002.019: what a lease record shows.
TEST(HttpPages, leases_show_their_client_holds_and_waits) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8, 60s);
  service.acquire(7, {lock("a")});
  service.acquire(8, {lock("a")});
  service.store.advance(10s);

  const auto list = body_of(service.get("/v1/leases?limit=1"));
  EXPECT_HAS(list, R"("leases":[{"lease":"7","client":"client 7","user":"","address":"10.0.0.1:5",)"
                   R"("ttl_ms":30000,)"
                   R"("left_ms":20000,"lived_ms":10000,"seen_ago_ms":10000,"create_revision":"1",)"
                   R"("hold_count":1,"wait_count":0}],"next":"7"})");
  EXPECT_HAS(body_of(service.get("/v1/leases?after=7")), R"("leases":[{"lease":"8")");
  EXPECT_HAS(body_of(service.get("/v1/leases/7")), R"("locks":[{"name":"a")");
  EXPECT_HAS(body_of(service.get("/v1/leases/8")), R"("queue":[{"owner":"owner 8")");
  EXPECT_EQ(status_of(service.get("/v1/leases/9")), 404);
  EXPECT_EQ(status_of(service.get("/v1/leases/x")), 400);
}

TEST(HttpPages, the_status_shows_the_identity_and_position_of_the_member) {
  HttpService service;
  service.grant_lease(7);

  const auto page = body_of(service.get("/v1/status"));

  EXPECT_HAS(page, R"({"cluster":"12648430","member":"1",)");
  EXPECT_HAS(page, R"("version":"1.2.3")");
  EXPECT_HAS(page, R"("role":"leader","revision":"1")");
  EXPECT_HAS(page, R"("leases":1)");
  EXPECT_HAS(page, R"("ttl_max":"1d")");
}

TEST(HttpPages, every_member_shows_the_cluster_and_its_leader) {
  HttpService service;
  service.store.set_members({{.id = 2,
                              .is_voter = false,
                              .peer_address = "10.0.0.2:7422",
                              .client_address = "10.0.0.2:7420",
                              .match_index = 17,
                              .silent = 40ms},
                             {.id = 1,
                              .peer_address = "10.0.0.1:7422",
                              .client_address = "10.0.0.1:7420",
                              .match_index = 18,
                              .newest_version = 2}});
  service.store.lead(true);

  EXPECT_EQ(
      body_of(service.get("/v1/cluster")),
      R"({"cluster":"12648430","member":"1","role":"leader","leader":"1",)"
      R"("leader_address":"10.0.0.1:7420","term":"1","commit_index":"0",)"
      R"("cluster_version":"2","members":[)"
      R"({"member":"1","is_voter":true,"is_leader":true,"peer_address":"10.0.0.1:7422",)"
      R"("client_address":"10.0.0.1:7420","newest_version":"2","match_index":"18","silent_ms":0},)"
      R"({"member":"2","is_voter":false,"is_leader":false,"peer_address":"10.0.0.2:7422",)"
      R"("client_address":"10.0.0.2:7420","match_index":"17","silent_ms":40}]})"
      "\n");

  service.store.follow(2, "10.0.0.2:7420");
  const auto page = body_of(service.get("/v1/cluster"));
  EXPECT_HAS(page, R"("role":"follower","leader":"2","leader_address":"10.0.0.2:7420","term":"2")");
  // Only the leader knows the progress of the other members.
  EXPECT_EQ(page.find("match"), std::string::npos);
  EXPECT_EQ(status_of(service.get("/readyz")), 200);
}

TEST(HttpPages, a_follower_answers_only_stale_reads) {
  HttpService service;
  service.store.lead(false);

  EXPECT_EQ(status_of(service.get("/v1/locks")), 503);
  EXPECT_EQ(status_of(service.get("/v1/locks?stale=true")), 200);
  EXPECT_HAS(service.get("/v1/status"), R"("role":"follower")");
}

TEST(HttpPages, metrics_are_those_of_the_store) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});

  const auto page = service.get("/metrics");

  EXPECT_HAS(page, "Content-Type: text/plain; version=0.0.4");
  EXPECT_HAS(page, "\ntenure_locks_held{mode=\"X\"} 1\n");
  EXPECT_HAS(page, "\ntenure_leases 1\n");
}

TEST(HttpPages, an_invalid_request_returns_a_problem_document) {
  HttpService service;
  for (const auto* target :
       {"/v1/locks?limit=0", "/v1/locks?limit=1001", "/v1/locks?limit=x", "/v1/locks?after=zz",
        "/v1/locks?a=1&a=2", "/%zz", "/v1/locks/%4", "/v1/locks/a?kind=b", "/v1/leases?after=x"}) {
    const auto answer = service.get(target);
    EXPECT_EQ(status_of(answer), 400) << target;
    EXPECT_HAS(answer, "Content-Type: application/problem+json");
  }
  const auto nothing = service.get("/nowhere");
  EXPECT_EQ(status_of(nothing), 404);
  EXPECT_HAS(nothing, R"({"type":"about:blank","title":"Not Found","status":404)");
}

TEST(HttpPages, curl_can_read_the_status) {
  HttpService service;
  const auto command = "curl -sS -o /dev/null -w '%{http_code} %{content_type}' http://127.0.0.1:" +
                       std::to_string(service.port) + "/v1/status";
  auto* curl = ::popen(command.c_str(), "r");
  ASSERT_NE(curl, nullptr);
  std::string output(100, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), curl));

  EXPECT_EQ(::pclose(curl), 0);
  EXPECT_EQ(output, "200 application/json");
}

}  // namespace
}  // namespace tenure::test
