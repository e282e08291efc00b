#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/zookeeper/client.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

// 002.098's like for ZooKeeper, 002-B9: sessions outlive a leader, and so do holds and waits.
TEST(ZookeeperEnsemble, waits_are_granted_after_the_leader_was_killed) {
  ZookeeperServers servers({.count = 3, .config = {"maxSessionTimeout=600000"}});
  const auto ann = connect(servers.url("/app"), {.request_timeout = test_timeout}).value();
  const auto bob = connect(servers.url("/app"), {.request_timeout = test_timeout}).value();
  auto guard = ann.mutex("a").lock().value();
  auto readers = ann.rw_lock("b").lock().value();
  std::atomic<int> granted = 0;
  std::vector<std::jthread> waiters;
  for (const auto* client : {&ann, &bob, &bob}) {
    waiters.emplace_back([&, client] { granted += client->mutex("a").lock() ? 1 : 0; });
    waiters.emplace_back([&, client] { granted += client->rw_lock("b").lock_shared() ? 1 : 0; });
  }
  {
    ZookeeperShell shell(servers.hosts());
    ASSERT_TRUE(eventually(
        [&] { return shell.list("/app/a").size() == 4 && shell.list("/app/b").size() == 4; }));
  }

  servers.kill(servers.leader());

  EXPECT_TRUE(eventually([&] { return guard.extend().has_value(); })) << "the session lives on";
  EXPECT_EQ(granted, 0);
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(readers.unlock());
  waiters.clear();
  EXPECT_EQ(granted, 6);
  auto last = bob.mutex("a").lock();
  ASSERT_TRUE(last) << to_string(last.error());
  EXPECT_GT(last->token(), guard.token());
}

}  // namespace
}  // namespace tenure::test
