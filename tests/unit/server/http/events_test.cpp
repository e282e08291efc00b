#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/http/service.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// The event types in a stream, in order.
std::vector<std::string> types_in(const std::string& stream) {
  static const std::regex type("event: (\\w+)\n");
  std::vector<std::string> types;
  for (std::sregex_iterator it(stream.begin(), stream.end(), type); it != std::sregex_iterator();
       ++it) {
    types.push_back((*it)[1]);
  }
  return types;
}

/// Client that reads an event stream.
class Reader {
 public:
  Reader(const HttpService& service, std::string_view query, std::string_view fields = "",
         int receive_buffer = 0)
      : client_(service.port, receive_buffer) {
    client_.send("GET /v1/events" + std::string(query) + " HTTP/1.1\r\nHost: localhost\r\n" +
                 std::string(fields) + "\r\n");
  }
  /// Waits until the store counts it as a reader.
  void wait_until_ready() { (void)until("event: ready"); }
  std::string until(std::string_view marker) { return client_.read_until(marker); }
  std::string to_the_end() { return client_.read_all(); }

 private:
  HttpClient client_;
};

using Types = std::vector<std::string>;

// 002.087, 002.095, 002-B20
TEST(HttpEvents, a_reader_receives_the_events_of_its_prefix) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  Reader reader(service, "?prefix=a%2F");
  reader.wait_until_ready();

  service.acquire(7, {lock("a/1")}, "why");
  service.acquire(7, {lock("b/1")});
  service.acquire(8, {lock("a/1")});
  service.release(7, "a/1");
  service.acquire(7, {lock("a/end")});
  const auto stream = reader.until("a/end");

  EXPECT_NE(stream.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_EQ(types_in(stream),
            (Types{"ready", "granted", "queued", "released", "granted", "granted"}));
  EXPECT_EQ(stream.find("b/1"), std::string::npos);
  EXPECT_NE(stream.find("event: granted\nid: 3\ndata: {\"type\":\"granted\",\"revision\":\"3\","
                        "\"cluster_time_ms\":0,\"name\":\"a/1\",\"kind\":\"lock\",\"mode\":\"X\","
                        "\"lease\":\"7\",\"request\":\"1\",\"token\":\"3\",\"owner\":\"owner 7\","
                        "\"user\":\"\",\"metadata\":\"why\"}\n\n"),
            std::string::npos)
      << stream;
}

// 002.086, 002.106, 002-B30: no gap and no duplicate between replayed and live events.
TEST(HttpEvents, a_reconnected_reader_resumes_where_it_stopped) {
  HttpService service;
  service.grant_lease(7);
  for (const auto* name : {"a", "b", "c"}) {
    service.acquire(7, {lock(name)});
  }

  Reader by_header(service, "?start_revision=1", "Last-Event-ID: 2\r\n");
  Reader by_query(service, "?start_revision=3");
  by_header.wait_until_ready();
  by_query.wait_until_ready();
  service.acquire(7, {lock("end")});

  for (auto* reader : {&by_header, &by_query}) {
    const auto stream = reader->until("\"end\"");
    EXPECT_EQ(types_in(stream), (Types{"ready", "granted", "granted", "granted"}));
    EXPECT_NE(stream.find("id: 2\ndata: {\"revision\":\"4\""), std::string::npos) << stream;
    EXPECT_EQ(stream.find("\"name\":\"a\""), std::string::npos);
  }
}

// 002.086: the history is replayed in parts, so that no part occupies the thread of the store for
// long.
TEST(HttpEvents, a_long_history_is_replayed_without_a_gap) {
  HttpService service({}, {.limits = {.events_max = 10'000}});
  service.grant_lease(7);
  for (int i = 0; i < 1200; ++i) {
    service.acquire(7, {lock("a/" + std::to_string(i)), lock("b/" + std::to_string(i))});
  }

  Reader all(service, "?start_revision=2");
  Reader none(service, "?start_revision=2&prefix=c");
  (void)all.until("\"b/1199\"");
  none.wait_until_ready();
  service.acquire(7, {lock("c")});

  EXPECT_EQ(types_in(all.until("\"c\"")).size(), 1U + 2400U + 1U);
  EXPECT_EQ(types_in(none.until("\"c\"")), (Types{"ready", "granted"}));
}

// 002.035, 002.090, 002.106: a compacted start revision is an event, not a silent gap.
TEST(HttpEvents, a_reader_of_compacted_events_gets_a_compact_event) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});
  service.acquire(7, {lock("b")});
  ASSERT_TRUE(service.store.ask(core::Compact{core::Revision{2}}));

  const auto stream = Reader(service, "?start_revision=2").to_the_end();

  EXPECT_EQ(types_in(stream), (Types{"compact"}));
  EXPECT_NE(stream.find("\"compact_revision\":\"2\""), std::string::npos) << stream;
}

// A follower that lags far behind receives the state instead of the events.
TEST(HttpEvents, an_installed_snapshot_ends_the_stream_with_a_resume_revision) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {lock("a")});
  MemoryStore leader;
  leader.start();
  leader.restore_from(service.store);
  Reader reader(service, "");
  reader.wait_until_ready();
  for (const std::uint64_t request : {11U, 12U}) {
    (void)leader.ask(core::Acquire{.lease = core::LeaseId{7},
                                   .request = core::RequestId{request},
                                   .items = {lock("b" + std::to_string(request))}});
  }

  service.store.restore_from(leader);
  const auto stream = reader.to_the_end();

  EXPECT_EQ(types_in(stream), (Types{"ready", "cut"}));
  EXPECT_NE(stream.find("\"resume_revision\":\"3\""), std::string::npos) << stream;
  Reader again(service, "?start_revision=3");
  EXPECT_EQ(types_in(again.until("\"b12\"")), (Types{"ready", "granted", "granted"}));
}

// A removed or partitioned follower sends no more events, which looks like a server without
// changes.
TEST(HttpEvents, a_stream_without_a_leader_ends_with_reason_and_resume_revision) {
  HttpService service({.leader_grace = 10ms});
  service.grant_lease(7);
  Reader reader(service, "");
  reader.wait_until_ready();
  service.acquire(7, {lock("a")});
  service.store.follow(2, "");
  service.store.lead(false);

  const auto stream = reader.to_the_end();

  EXPECT_EQ(types_in(stream), (Types{"ready", "granted", "no_leader"}));
  EXPECT_NE(stream.find("\"resume_revision\":\"3\""), std::string::npos) << stream;
  EXPECT_EQ(types_in(Reader(service, "?start_revision=2").to_the_end()),
            (Types{"ready", "granted", "no_leader"}))
      << "a later reader receives the same events";
  const auto future = Reader(service, "?start_revision=9").to_the_end();
  EXPECT_NE(future.find("\"resume_revision\":\"9\""), std::string::npos) << future;
}

TEST(HttpEvents, a_member_that_never_had_a_leader_ends_the_stream) {
  HttpService service({.leader_grace = 10ms}, {.leads = false});

  EXPECT_EQ(types_in(Reader(service, "").to_the_end()), (Types{"ready", "no_leader"}));
}

TEST(HttpEvents, an_election_ends_no_stream) {
  HttpService service({.leader_grace = 1h});
  service.grant_lease(7);
  Reader reader(service, "");
  reader.wait_until_ready();

  service.store.lead(false);
  service.store.follow(2, "");
  service.store.lead(false);
  service.store.lead(true);
  service.acquire(7, {lock("a")});

  EXPECT_EQ(types_in(reader.until("\"a\"")), (Types{"ready", "granted"}));
}

// Several events can share a revision. A reader has seen all of it only after the last one.
TEST(HttpEvents, only_the_last_event_of_a_revision_carries_its_id) {
  HttpService service;
  service.grant_lease(7);
  Reader reader(service, "");
  reader.wait_until_ready();

  service.acquire(7, {lock("a"), lock("b")});
  const auto stream = reader.until("\"name\":\"b\"");

  EXPECT_NE(stream.find("event: granted\ndata: {\"type\":\"granted\",\"revision\":\"2\","),
            std::string::npos);
  EXPECT_NE(stream.find("event: granted\nid: 2\ndata: {\"type\":\"granted\",\"revision\":\"2\","),
            std::string::npos);
}

// 002-B30: the buffer is bounded; a slow watcher is cancelled with its resume revision.
TEST(HttpEvents, a_slow_reader_is_cancelled_with_a_resume_revision) {
  HttpService service({.buffer_events_max = 16}, {.limits = {.events_max = 100'000}});
  service.grant_lease(7);
  Reader reader(service, "", "", 4096);
  const auto cut = [&] {
    return service.get("/metrics").find("\ntenure_watch_cut_total 1\n") != std::string::npos;
  };
  ASSERT_TRUE(eventually(
      [&] { return service.get("/metrics").find("\ntenure_watchers 1\n") != std::string::npos; }));

  int count = 0;
  while (!cut() && count < 2000) {
    for (int i = 0; i < 50; ++i) {
      service.acquire(7, {lock(std::to_string(++count))}, std::string(4000, 'x'));
    }
  }
  const auto stream = reader.to_the_end();

  const auto types = types_in(stream);
  ASSERT_FALSE(types.empty());
  EXPECT_EQ(types.back(), "cut");
  // The stream contains revisions from 2 to the resume revision, without a gap.
  const auto sent = types.size() - 2;
  EXPECT_NE(stream.find("\"resume_revision\":\"" + std::to_string(sent + 2) + "\""),
            std::string::npos)
      << stream.substr(stream.size() - 200);
  EXPECT_LT(sent, static_cast<std::size_t>(count));
}

TEST(HttpEvents, a_disconnected_reader_is_removed) {
  HttpService service;
  const auto watchers = [&](std::string_view number) {
    return service.get("/metrics").find("\ntenure_watchers " + std::string(number) + "\n") !=
           std::string::npos;
  };
  {
    Reader reader(service, "");
    reader.wait_until_ready();
    EXPECT_TRUE(watchers("1"));
  }
  EXPECT_TRUE(eventually([&] { return watchers("0"); }));
}

TEST(HttpEvents, an_idle_stream_sends_keep_alive_comments) {
  HttpService service({.heartbeat = 10ms});
  Reader reader(service, "");

  EXPECT_NE(reader.until(": alive").find(": alive"), std::string::npos);
}

TEST(HttpEvents, streams_end_with_the_server) {
  HttpService service;
  Reader reader(service, "");
  reader.wait_until_ready();

  service.http.stop();

  EXPECT_EQ(types_in(reader.to_the_end()), (Types{"ready"}));
}

TEST(HttpEvents, a_revision_that_is_no_number_is_a_bad_request) {
  HttpService service;
  EXPECT_EQ(status_of(service.get("/v1/events?start_revision=x")), 400);
  EXPECT_EQ(status_of(service.get("/v1/events", "Last-Event-ID: -1\r\n")), 400);
}

}  // namespace
}  // namespace tenure::test
