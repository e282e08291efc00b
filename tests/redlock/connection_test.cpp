#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/net/connect_refusal.hpp"
#include "support/redlock/servers.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> warnings_of(const std::string& url) {
  std::vector<std::string> warnings;
  const auto client = connect(
      url, {.request_timeout = 10s,
            .on_warning = [&](std::string_view warning) { warnings.emplace_back(warning); }});
  EXPECT_TRUE(client) << to_string(client.error());
  return warnings;
}

// 003-B18
TEST(RedlockConnection, an_invalid_url_is_rejected_with_the_position) {
  expect(refusal("redlock://"), Errc::invalid_argument, "at 10: a host name is missing");
  expect(refusal("redlock://a,,b"), Errc::invalid_argument, "at 12: a host name is missing");
  expect(refusal("redlock://a,b:0"), Errc::invalid_argument, "at 13: expected a port");
  expect(refusal("redlock://u:secret@a,b:99999"), Errc::invalid_argument, "expected a port");
  expect(refusal("redlock://a,b/zero"), Errc::invalid_argument, "the database must be a number");
  expect(refusal("redlock://a,b?colour=red"), Errc::invalid_argument, "unknown option");
  expect(refusal("redlock://a?node_timeout=0ms"), Errc::invalid_argument, "node_timeout is a time");
  expect(refusal("redlock://a?retry_delay=fast"), Errc::invalid_argument, "retry_delay is a time");
  expect(refusal("redlocks://a?tls_ca=/nowhere"), Errc::invalid_argument, "cannot read /nowhere");
  EXPECT_EQ(refusal("redlock://u:secret@a,b:99999").detail.find("secret"), std::string::npos);
  std::string many = "redlock://h0";
  for (int n = 1; n < 16; ++n) {
    many += ",h" + std::to_string(n);
  }
  expect(refusal(many), Errc::invalid_argument, "at most 15 can vote");
}

// 003-B18: it would have two votes.
TEST(RedlockConnection, a_server_named_twice_is_rejected) {
  RedlockServers servers(2);
  const auto first = RedlockServers::where(servers[0]);
  const auto port = std::to_string(servers[0].port());

  expect(refusal("redlock://" + first + "," + RedlockServers::where(servers[1]) + "," + first),
         Errc::invalid_argument, first + " is named twice");
  expect(refusal("redlock://" + first + ",localhost:" + port + ",127.0.0.2:1"),
         Errc::invalid_argument, "are the same server");
}

// 003-B18
TEST(RedlockConnection, an_even_number_of_servers_causes_a_warning_and_works) {
  RedlockServers servers(4);

  const auto warnings = warnings_of(servers.url());

  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("4 servers, an even number"), std::string::npos) << warnings[0];
  EXPECT_TRUE(connect(servers.url()).value().mutex("a").lock());
}

TEST(RedlockConnection, a_single_server_causes_a_warning_and_works) {
  RedlockServers servers(1);

  const auto warnings = warnings_of(servers.url());

  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("tolerates no failure"), std::string::npos) << warnings[0];
  EXPECT_TRUE(connect(servers.url()).value().mutex("a").lock());
}

// 003.033
TEST(RedlockConnection, an_unavailable_minority_causes_a_warning_with_its_endpoints) {
  RedlockServers servers(3);
  servers[1].kill();

  const auto warnings = warnings_of(servers.url());

  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(RedlockServers::where(servers[1])), std::string::npos) << warnings[0];
}

// 003.033
TEST(RedlockConnection, an_unavailable_majority_is_reported_with_all_reasons) {
  RedlockServers servers(3);
  servers[0].kill();
  servers[2].kill();

  const auto refused = refusal(servers.url());

  expect(refused, Errc::unavailable, "no majority of 2 of 3 servers");
  expect(refused, Errc::unavailable, RedlockServers::where(servers[0]));
  expect(refused, Errc::unavailable, RedlockServers::where(servers[2]));
}

TEST(RedlockConnection, a_silent_majority_is_unavailable_within_the_timeout) {
  RedlockServers servers(3);
  servers[0].pause();
  servers[2].pause();

  expect(refusal(servers.url(), 300ms), Errc::unavailable, "majority");
  servers[0].resume();
  servers[2].resume();
}

TEST(RedlockConnection, password_and_database_apply_to_all_servers) {
  RedlockServers servers(3);
  for (std::size_t n = 0; n < servers.size(); ++n) {
    servers[n].command({"ACL", "SETUSER", "app", "on", ">p@ss", "~*", "&*", "+@all"});
    servers[n].command({"ACL", "SETUSER", "default", "resetpass", ">secret"});
    servers[n].command({"AUTH", "secret"});
  }
  auto url = servers.url("/3?restart_wait=0s&node_timeout=3s");

  expect(refusal(url), Errc::permission_denied, "NOAUTH");
  url.insert(10, "app:p%40ss@");
  const auto client = connect(url);
  ASSERT_TRUE(client) << to_string(client.error());
  EXPECT_TRUE(client->mutex("a").lock());
  EXPECT_EQ(servers[0].command({"DBSIZE"}), "0") << "it was another database";
}

// The permissions in docs/reference/redis_keys.md suffice.
TEST(RedlockConnection, an_acl_user_needs_the_documented_rights) {
  RedlockServers servers(1);
  std::vector<std::string> words{
      "ACL",           "SETUSER",      "app",        ">word",          "on",
      "resetchannels", "+hello",       "~{tenure:*", "&tenure:wake:*", "+select",
      "+ping",         "+script|load", "+evalsha",   "+subscribe",     "+publish",
      "+time",         "+get",         "+mget",      "+set",           "+del",
      "+exists",       "+pttl",        "+pexpire",   "+zadd",          "+zrem",
      "+zcard",        "+zrange",      "~plain/*"};
  ASSERT_EQ(servers[0].command(words), "OK");
  auto url = servers.url();
  url.insert(10, "app:word@");

  const auto client = connect(url, {.key_prefix = "plain/"});

  ASSERT_TRUE(client) << to_string(client.error());
  auto guard = client->mutex("a").lock();
  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(connect(url, {.key_prefix = "plain/"}).value().mutex("a").try_lock_for(5ms).error(),
            Errc::timed_out);
  EXPECT_TRUE(guard->extend());
  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(client->mutex("b", {.fairness = Fairness::barging}).lock());
}

// 003.032
TEST(RedlockConnection, a_key_with_a_foreign_value_is_reported_and_kept) {
  RedlockServers servers(3);
  const auto client = connect(servers.url()).value();
  for (std::size_t n = 0; n < servers.size(); ++n) {
    servers[n].command({"LPUSH", "{tenure:a}", "mine"});
    servers[n].command({"SET", "{tenure:b}", "mine"});
  }

  expect(client.mutex("a").lock().error(), Errc::invalid_argument, "WRONGTYPE");
  expect(client.mutex("b").lock().error(), Errc::invalid_argument, "not a lock");
  EXPECT_EQ(servers[0].command({"LLEN", "{tenure:a}"}), "1");
}

// 003-B2: one naming rule, so that redis:// and redlock:// detect each other on one name.
TEST(RedlockConnection, a_redis_lock_of_the_same_name_is_an_error) {
  RedlockServers servers(1);
  const auto several = connect(servers.url()).value();
  const auto one = connect(servers[0].url()).value();
  {
    const auto guard = one.mutex("a").lock().value();
    expect(several.mutex("a").lock().error(), Errc::invalid_argument, "redis://");
  }
  FencingToken last{};
  ASSERT_TRUE(eventually([&] {
    const auto guard = several.mutex("a").try_lock();
    last = guard ? guard->token() : last;
    return guard.has_value();
  }));
  const auto guard = several.mutex("b").lock().value();

  EXPECT_EQ(one.mutex("b").lock().error(), Errc::invalid_argument);
  EXPECT_GT(one.mutex("a").try_lock_for(test_timeout).value().token(), last);
}

}  // namespace
}  // namespace tenure::test
