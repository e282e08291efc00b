#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/net/connect_refusal.hpp"
#include "support/net/free_port.hpp"
#include "support/redis/fake.hpp"
#include "support/zookeeper/client.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

using ZookeeperConnection = ZookeeperTest;

TEST_F(ZookeeperConnection, an_invalid_url_is_rejected_with_the_position) {
  expect(refusal("zookeeper://"), Errc::invalid_argument, "at 12: a host name is missing");
  expect(refusal("zookeeper://h:0"), Errc::invalid_argument, "expected a port");
  expect(refusal("zookeeper://h:1/a//b"), Errc::invalid_argument, "two '/' in a row");
  expect(refusal("zookeeper://h:1/a/"), Errc::invalid_argument, "at 16: invalid ZooKeeper path");
  expect(refusal("zookeeper://h:1/a/../b"), Errc::invalid_argument, "\"..\"");
  expect(refusal("zookeeper://h:1?acl=me"), Errc::invalid_argument, "world or creator");
  expect(refusal("zookeeper://h:1?acl=creator"), Errc::invalid_argument, "user:password@host");
  expect(refusal("zookeeper://user@h:1"), Errc::invalid_argument, "user:password@");
  expect(refusal("zookeeper://h:1?colour=red"), Errc::invalid_argument, "unknown option");
  expect(refusal("zookeeper://h:1?tls_ca=/a"), Errc::unsupported, "does not support TLS");
  EXPECT_EQ(refusal("zookeeper://u:secret@h:99999").detail.find("secret"), std::string::npos);
}

TEST_F(ZookeeperConnection, a_closed_port_is_reported_at_once) {
  const auto one = std::to_string(free_port());

  expect(refusal("zookeeper://127.0.0.1:" + one), Errc::unavailable,
         "127.0.0.1:" + one + ": Connection refused; is ZooKeeper running there?");
}

TEST_F(ZookeeperConnection, a_silent_server_is_unavailable_within_the_timeout) {
  const FakeRedis silent("");
  const auto url = "zookeeper" + silent.url().substr(silent.url().find(':'));

  expect(refusal(url, 300ms), Errc::unavailable, "it does not respond; is it ZooKeeper");
}

TEST_F(ZookeeperConnection, another_service_on_the_port_is_unavailable_in_time) {
  const FakeRedis web("HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto url = "zookeeper" + web.url().substr(web.url().find(':'));

  expect(refusal(url, 300ms), Errc::unavailable, "is it ZooKeeper");
}

// One of several is enough.
TEST_F(ZookeeperConnection, unreachable_servers_are_skipped) {
  const auto url =
      "zookeeper://127.0.0.1:" + std::to_string(free_port()) + "," + servers.hosts() + chroot;

  const auto ann = tenure::connect(url, {.request_timeout = test_timeout});

  ASSERT_TRUE(ann) << to_string(ann.error());
  EXPECT_TRUE(ann->mutex("a").lock());
}

TEST_F(ZookeeperConnection, an_unusable_chroot_is_reported) {
  shell.make(chroot);
  shell.make_ephemeral(chroot + "/brief");

  expect(refusal(servers.url(chroot + "/brief")), Errc::invalid_argument, "ephemeral");
}

// Access control: other users cannot access the nodes.
TEST_F(ZookeeperConnection, nodes_of_a_user_are_closed_to_others) {
  shell.make(chroot);
  auto url = servers.url(chroot);
  url.insert(url.find("://") + 3, "ann:secret@");
  const auto ann = tenure::connect(url, {.request_timeout = test_timeout}).value();
  const auto guard = ann.mutex("a").lock();
  ASSERT_TRUE(guard) << to_string(guard.error());
  const auto bob = connect();

  const auto refused = bob.mutex("a").try_lock();

  ASSERT_FALSE(refused);
  expect(refused.error(), Errc::permission_denied, "not authenticated");
  EXPECT_EQ(refused.error().detail.find("secret"), std::string::npos);
  EXPECT_EQ(bob.mutex("a").lock().error(), Errc::permission_denied);
  EXPECT_EQ(bob.holders("a").error(), Errc::permission_denied);
  expect(refusal(servers.url(chroot + "/a")), Errc::permission_denied, "not authenticated");
}

// A permit node that is listable but not readable: the capacity cannot be verified, and a retry
// would not help.
TEST_F(ZookeeperConnection, an_unreadable_permit_is_reported) {
  shell.make(path_of("pool/leases"));
  ZookeeperShell owner(servers.hosts(), {.identity = "ann:secret"});
  owner.close_to_others(owner.make_ticket(path_of("pool/leases") + "/_c_9-lease-"));
  const auto bob = connect();

  const auto refused = bob.semaphore("pool", {.capacity = 2}).try_acquire_for(2s);

  ASSERT_FALSE(refused);
  expect(refused.error(), Errc::permission_denied, "not authenticated");
}

TEST_F(ZookeeperConnection, nodes_with_the_world_acl_are_open_to_every_user) {
  auto url = servers.url(chroot + "?acl=world");
  url.insert(url.find("://") + 3, "ann:secret@");
  const auto ann = tenure::connect(url, {.request_timeout = test_timeout}).value();
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_EQ(connect().mutex("a").try_lock().error(), Errc::would_block);
}

// A TTL that no session can carry is rejected with the possible range.
TEST_F(ZookeeperConnection, a_ttl_outside_the_session_timeouts_of_the_servers_is_rejected) {
  const ZookeeperServers strict({.tick = 1000, .config = {"maxSessionTimeout=20000"}});
  const auto ann = tenure::connect(strict.url(), {.request_timeout = test_timeout}).value();

  expect(ann.mutex("a", {.ttl = 500ms}).lock().error(), Errc::invalid_argument,
         "at least 2000 ms (minSessionTimeout): a ttl of 751 ms or more");
  expect(ann.mutex("a", {.ttl = 60s}).lock().error(), Errc::invalid_argument,
         "at most 20000 ms (maxSessionTimeout): a ttl of 15666 ms or less");
  expect(ann.mutex("a").lock().error(), Errc::invalid_argument, "15666 ms or less");
  expect(ann.lease({.ttl = 60s}).error(), Errc::invalid_argument, "15666 ms or less");
  EXPECT_TRUE(ann.mutex("a", {.ttl = 15666ms}).lock());
  EXPECT_TRUE(ann.mutex("a", {.ttl = 751ms}).lock());
}

// Each TTL needs a session; the number is limited, and idle sessions are replaced.
TEST_F(ZookeeperConnection, the_number_of_different_ttls_is_limited_by_the_sessions) {
  const auto ann = connect();
  std::vector<Guard> held;
  std::optional<Error> refused;
  for (int n = 0; n < 20 && !refused; ++n) {
    auto guard = ann.mutex("m" + std::to_string(n), {.ttl = 20s + n * 1s}).lock();
    if (guard) {
      held.push_back(*std::move(guard));
    } else {
      refused = guard.error();
    }
  }

  ASSERT_TRUE(refused);
  expect(*refused, Errc::resource_exhausted, "16");
  EXPECT_GE(held.size(), 15U);
}

}  // namespace
}  // namespace tenure::test
