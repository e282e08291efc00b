#include "backends/redis/connection.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/net/connect_refusal.hpp"
#include "support/net/delaying_proxy.hpp"
#include "support/net/free_port.hpp"
#include "support/redis/fake.hpp"
#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TEST(RedisConnection, an_invalid_url_is_rejected_with_the_position) {
  expect(refusal("redis://"), Errc::invalid_argument, "at 8: a host name is missing");
  expect(refusal("redis://h:0"), Errc::invalid_argument, "at 9: expected a port");
  expect(refusal("redis://u:secret@h:99999"), Errc::invalid_argument, "expected a port");
  expect(refusal("redis://h/zero"), Errc::invalid_argument, "at 10: the database must be a number");
  expect(refusal("redis://a,b"), Errc::invalid_argument, "redlock://");
  expect(refusal("redis://h?namespace=a:b"), Errc::invalid_argument, "at 20: a namespace");
  expect(refusal("redis://h?colour=red"), Errc::invalid_argument, "at 10: unknown option");
  expect(refusal("rediss://h?tls_ca=/nowhere"), Errc::invalid_argument, "cannot read /nowhere");
  EXPECT_EQ(refusal("redis://u:secret@h:99999").detail.find("secret"), std::string::npos);
}

TEST(RedisConnection, a_refused_connection_is_reported_with_the_endpoint) {
  const auto port = std::to_string(free_port());

  expect(refusal("redis://127.0.0.1:" + port), Errc::unavailable,
         "127.0.0.1:" + port + ": Connection refused; does a redis-server run there?");
}

TEST(RedisConnection, a_silent_server_is_unavailable_within_the_timeout) {
  const FakeRedis silent("");

  expect(refusal(silent.url(), 200ms), Errc::unavailable, "reply");
}

TEST(RedisConnection, a_server_of_another_protocol_is_reported) {
  const FakeRedis web("HTTP/1.1 400 Bad Request\r\n\r\n");

  expect(refusal(web.url()), Errc::unavailable, "not the Redis protocol");
}

TEST(RedisConnection, an_array_beyond_the_element_limit_is_rejected) {
  const FakeRedis liar("*1000000000\r\n");

  expect(refusal(liar.url()), Errc::unavailable, "too many elements");
}

TEST(RedisConnection, an_unsupported_server_version_is_reported) {
  const FakeRedis before_6("-ERR unknown command `HELLO`, with args beginning with: `2`\r\n");
  const FakeRedis version_6_0(
      "*4\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n$4\r\nrole\r\n$6\r\nmaster\r\n");

  expect(refusal(before_6.url()), Errc::unsupported, "Redis 6.2 or later is required");
  expect(refusal(version_6_0.url()), Errc::unsupported, "unsupported server version: 6.0.9");
}

TEST(RedisConnection, a_nonexistent_database_is_reported) {
  RedisServer server;

  expect(refusal(server.url("/99")), Errc::invalid_argument, "fewer databases");
  EXPECT_TRUE(connect(server.url("/3")).value().mutex("a").lock());
  EXPECT_EQ(server.command({"DBSIZE"}), "0") << "it was another database";
}

TEST(RedisConnection, a_required_password_is_sent) {
  RedisServer server({.arguments = {"--requirepass", "open sesame"}, .password = "open sesame"});
  const auto at = "@127.0.0.1:" + std::to_string(server.port());

  expect(refusal(server.url()), Errc::permission_denied, "NOAUTH");
  expect(refusal("redis://:wrong" + at), Errc::permission_denied, "WRONGPASS");
  EXPECT_EQ(refusal("redis://:wrong" + at).detail.find("wrong" + at), std::string::npos);
  EXPECT_TRUE(connect("redis://:open%20sesame" + at).value().mutex("a").lock());
}

// The permissions in docs/reference/redis_keys.md suffice, and fewer do not.
TEST(RedisConnection, an_acl_user_needs_the_documented_rights) {
  RedisServer server;
  const std::vector<std::string> rights{
      "on",       "resetchannels", "~{tenure:*", "&tenure:wake:*", "+hello",   "+select",
      "+ping",    "+script|load",  "+evalsha",   "+subscribe",     "+publish", "+time",
      "+get",     "+mget",         "+set",       "+del",           "+exists",  "+pttl",
      "+pexpire", "+pexpireat",    "+hget",      "+hset",          "+hdel",    "+hgetall",
      "+zadd",    "+zrem",         "+zscore",    "+zcard",         "+zrange",  "+zrangebyscore",
      "~plain/*"};
  std::vector<std::string> words{"ACL", "SETUSER", "app", ">p@ss:word"};
  words.insert(words.end(), rights.begin(), rights.end());
  ASSERT_EQ(server.command(words), "OK");
  words[2] = "deaf";
  std::erase(words, "&tenure:wake:*");
  ASSERT_EQ(server.command(words), "OK");
  const auto at = ":p%40ss:word@127.0.0.1:" + std::to_string(server.port());

  const auto app = connect("redis://app" + at, {.key_prefix = "plain/"});
  ASSERT_TRUE(app) << to_string(app.error());
  auto guard = app->mutex("a").lock();
  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(app->mutex("a").try_lock_for(5ms).error(), Errc::timed_out);
  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(app->rw_lock("b").lock_shared());
  EXPECT_TRUE(app->mutex("c", {.fairness = Fairness::barging}).lock());
  expect(refusal("redis://deaf" + at), Errc::permission_denied, "NOPERM");
}

TEST(RedisConnection, a_replica_is_rejected) {
  RedisServer primary;
  RedisServer replica({.arguments = {"--replicaof", "127.0.0.1", std::to_string(primary.port())}});

  expect(refusal(replica.url()), Errc::unavailable, "read-only replica");
}

TEST(RedisConnection, a_server_that_becomes_a_replica_is_unavailable_until_it_is_a_primary_again) {
  RedisServer server;
  const auto client = connect(server.url(), {.request_timeout = 100ms}).value();
  server.command({"REPLICAOF", "127.0.0.1", "1"});

  EXPECT_FALSE(client.mutex("a").try_lock_for(10ms));
  EXPECT_TRUE(eventually([&] { return !client.is_connected(); }));
  server.command({"REPLICAOF", "NO", "ONE"});

  EXPECT_TRUE(eventually([&] { return client.mutex("a").try_lock().has_value(); }));
}

// A server that replies with errors: a try was repeated forever, a hundred times per second, and
// never failed.
TEST(RedisConnection, a_server_without_its_min_replicas_is_unavailable_until_they_are_back) {
  RedisServer server;
  const auto client = connect(server.url(), {.request_timeout = 300ms}).value();
  server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});

  auto refused = std::async(std::launch::async, [&] { return client.mutex("a").try_lock(); });
  const bool is_completed = refused.wait_for(test_timeout) == std::future_status::ready;
  server.command({"CONFIG", "SET", "min-replicas-to-write", "0"});

  ASSERT_TRUE(is_completed);
  expect(refused.get().error(), Errc::unavailable, "NOREPLICAS");
  EXPECT_TRUE(eventually([&] { return client.mutex("a").try_lock().has_value(); }));
}

TEST(RedisConnection, a_key_with_a_foreign_value_is_reported_and_kept) {
  RedisServer server;
  const auto client = connect(server.url()).value();
  server.command({"LPUSH", "{tenure:a}", "mine"});

  const auto refused = client.mutex("a").lock();

  expect(refused.error(), Errc::invalid_argument, "WRONGTYPE");
  EXPECT_EQ(server.command({"LLEN", "{tenure:a}"}), "1");
}

// With a full memory, held locks are still renewed, released and handed over.
TEST(RedisConnection, a_full_memory_refuses_new_locks_and_keeps_the_old_ones) {
  RedisServer server;
  const auto client = connect(server.url(), {.request_timeout = test_timeout}).value();
  auto simple = client.mutex("simple").lock().value();
  auto queued = client.mutex("queued").lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(client.mutex("queued").lock()); });
  ASSERT_TRUE(eventually([&] { return server.command({"ZCARD", "{tenure:queued}:q"}) == "1"; }));
  server.command({"CONFIG", "SET", "maxmemory", "1"});

  const auto refused = client.mutex("a").lock();

  expect(refused.error(), Errc::resource_exhausted, "OOM");
  EXPECT_TRUE(simple.extend());
  EXPECT_TRUE(queued.extend());
  EXPECT_TRUE(simple.unlock());
  EXPECT_TRUE(queued.unlock());
  waiter.join();
  server.command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(client.mutex("simple").try_lock());
}

TEST(RedisConnection, a_server_that_may_evict_locks_causes_a_warning) {
  RedisServer server({.arguments = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}});
  std::vector<std::string> warnings;

  const auto client =
      connect(server.url(),
              {.on_warning = [&](std::string_view warning) { warnings.emplace_back(warning); }});

  ASSERT_TRUE(client);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().find("allkeys-lru"), std::string::npos);
  EXPECT_NE(warnings.front().find(std::to_string(server.port())), std::string::npos);
}

// 000.088, 001.017, 003-B21
TEST(RedisConnection, scripts_are_loaded_again_after_script_flush) {
  RedisServer server;
  const auto client = connect(server.url()).value();
  auto guard = client.mutex("a").lock().value();

  server.command({"SCRIPT", "FLUSH"});

  EXPECT_TRUE(guard.unlock());
  server.command({"SCRIPT", "FLUSH"});
  EXPECT_TRUE(client.mutex("a").try_lock());
}

// The number of connections does not depend on threads or locks.
TEST(RedisConnection, all_threads_share_two_connections) {
  RedisServer server;
  const auto before = server.count_of("connected_clients");
  const auto client = connect(server.url(), {.request_timeout = test_timeout}).value();
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 16; ++n) {
      threads.emplace_back([&, n] {
        for (int round = 0; round < 50; ++round) {
          const auto guard = client.mutex("lock " + std::to_string(n % 4)).lock();
          EXPECT_TRUE(guard);
        }
      });
    }
  }

  EXPECT_EQ(server.count_of("connected_clients"), before + 2);
}

// Commands on an abandoned connection may only be delayed on the way. They are sent again on a new
// connection; the delayed copies must have no effect.
TEST(RedisConnection, commands_of_an_abandoned_connection_have_no_late_effect) {
  RedisServer server;
  DelayingProxy proxy(server.port());
  const auto ann = connect("redis://127.0.0.1:" + std::to_string(proxy.port()),
                           {.owner = "ann", .request_timeout = 300ms})
                       .value();
  ASSERT_TRUE(ann.mutex("a").lock().value().unlock());

  proxy.hold();
  auto guard = ann.mutex("a").lock();
  ASSERT_TRUE(guard.has_value()) << guard.error().detail;
  ASSERT_TRUE(guard->unlock());
  ASSERT_GT(proxy.release(), 0U) << "no command was delayed";

  const auto bob = connect(server.url(), {.owner = "bob"}).value();
  for (int i = 0; i < 20; ++i) {
    auto free = bob.mutex("a").try_lock();
    ASSERT_TRUE(free.has_value()) << free.error().detail;
    ASSERT_TRUE(free->unlock());
    std::this_thread::yield();
  }
}

// A restarted server assigns the same id to a connection of another client.
TEST(RedisConnection, an_abandoned_connection_is_killed_by_id_and_address) {
  const std::string hello = "*4\r\n$2\r\nid\r\n:7\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n";
  const std::string info = "id=7 addr=10.0.0.9:4711 laddr=10.0.0.1:6379";
  FakeRedis fake(hello + "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n");
  boost::asio::io_context loop;
  const auto connection = std::make_shared<backends::redis::Connection>(
      loop,
      backends::redis::ServerOptions{.endpoint = {.host = "127.0.0.1", .port = fake.port()},
                                     .timeout = test_timeout},
      std::vector<backends::redis::HandshakeStep>{},
      backends::redis::Connection::Callbacks{
          .ready = [] {}, .replied = [](const auto&) {}, .failed = [](const Error&) {}});
  const auto run_until = [&](auto predicate) {
    return eventually([&] {
      loop.run_for(1ms);
      loop.restart();
      return predicate();
    });
  };
  connection->connect();
  ASSERT_TRUE(run_until([&] { return connection->is_ready(); }));

  connection->send("*1\r\n$4\r\nPING\r\n");
  connection->drop({.code = Errc::unavailable});

  EXPECT_TRUE(run_until([&] {
    return fake.received().contains(
        "KILL\r\n$2\r\nID\r\n$1\r\n7\r\n"
        "$4\r\nADDR\r\n$13\r\n10.0.0.9:4711\r\n");
  })) << fake.received();
  connection->stop();
  loop.poll();
}

}  // namespace
}  // namespace tenure::test
