#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/peers/tcp_proxy.hpp"
#include "support/zookeeper/client.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// With a server of its own, that may be broken.
class ZookeeperLoss : public ::testing::Test {
 protected:
  [[nodiscard]] Client connect(std::chrono::milliseconds timeout = test_timeout) {
    return tenure::connect(servers.url("/app"), {.request_timeout = timeout}).value();
  }

  ZookeeperServers servers{{.config = {"maxSessionTimeout=600000"}}};
};

// 002-B9: first a risk, then a loss, by our own clock; and never after the servers.
TEST_F(ZookeeperLoss, a_paused_server_puts_the_lock_at_risk_and_loses_it_within_the_ttl) {
  const auto ann = connect();
  std::atomic<bool> is_warned = false;
  auto guard =
      ann.mutex("a", {.ttl = 1500ms, .on_at_risk = [&](const AtRisk&) { is_warned = true; }})
          .lock()
          .value();
  std::atomic<bool> is_notified = false;
  const std::stop_callback on_lost(guard.lost(), [&] { is_notified = true; });
  const auto before = steady_clock::now();

  servers.pause();

  EXPECT_TRUE(eventually([&] { return is_notified.load(); }));
  EXPECT_LT(steady_clock::now() - before, 3s) << "by then the servers end the session";
  EXPECT_TRUE(eventually([&] { return is_warned.load(); }));
  EXPECT_EQ(guard.state(), GuardState::lost);
  servers.resume();
  // The node is deleted or expires with its session: another client acquires the lock.
  EXPECT_TRUE(connect().mutex("a").try_lock_for(test_timeout));
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
}

// 002.043, 002-B9: another client that has the session's id and password closes it. The server
// drops packets of a connection whose session is gone, so detection may take the whole TTL.
TEST_F(ZookeeperLoss, a_session_closed_by_another_client_is_reported_within_the_ttl) {
  const auto seen = seen_client(servers.url("/app"));
  auto guard = seen.client.mutex("a", {.ttl = 3s}).lock().value();
  ASSERT_EQ(seen.backend->identities().size(), 2U) << "one for each ttl, and the usual one";
  std::atomic<bool> is_notified = false;
  const std::stop_callback on_lost(guard.lost(), [&] { is_notified = true; });
  const auto before = steady_clock::now();

  for (const auto& one : seen.backend->identities()) {
    ZookeeperShell::close_session(servers.hosts(), one.session, one.password);
  }

  EXPECT_TRUE(eventually([&] { return is_notified.load(); }));
  EXPECT_LT(steady_clock::now() - before, 3s + 2s) << "the ttl, and time for a busy machine";
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
  // And it goes on, in a new session.
  auto again = seen.client.mutex("a", {.ttl = 3s}).try_lock_for(test_timeout);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_GT(again->token(), guard.token());
}

// A waiting request hears of it, too.
TEST_F(ZookeeperLoss, a_wait_ends_with_its_session) {
  const auto ann = connect();
  const auto seen = seen_client(servers.url("/app"));
  const auto guard = ann.mutex("a").lock().value();
  ZookeeperShell shell(servers.hosts());
  std::optional<Errc> end;
  std::jthread waiter([&] {
    const auto lease = seen.client.lease({.ttl = 3s}).value();
    end = seen.client.mutex("a", {.lease = lease}).lock().error().code;
  });
  ASSERT_TRUE(eventually([&] { return shell.list("/app/a").size() == 2; }));

  for (const auto& one : seen.backend->identities()) {
    ZookeeperShell::close_session(servers.hosts(), one.session, one.password);
  }
  waiter.join();

  EXPECT_EQ(end, Errc::lease_lost);
  EXPECT_TRUE(eventually([&] { return shell.list("/app/a").size() == 1; }));
}

// 002-B7: a wait cancelled without a connection: reported in time, and deleted after the reconnect.
TEST_F(ZookeeperLoss, a_wait_cancelled_without_a_connection_is_deleted_later) {
  const auto ann = connect(300ms);
  EXPECT_TRUE(ann.mutex("a").lock());
  servers.pause();

  const auto refused = ann.mutex("a").try_lock_for(50ms);

  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error() == Errc::unavailable || refused.error() == Errc::timed_out)
      << to_string(refused.error());
  servers.resume();
  ZookeeperShell shell(servers.hosts());
  EXPECT_TRUE(eventually([&] { return shell.list("/app/a").empty(); }));
}

/// Client behind a TCP proxy that drops replies or cuts the connection.
class ZookeeperLostAnswer : public ZookeeperTest {
 protected:
  ZookeeperLostAnswer() {
    shell.make(path_of("a"));  // Otherwise the servers would delete the empty container node.
    auto warm = ann.mutex("a").lock().value();
    EXPECT_TRUE(warm.unlock());
  }

  TcpProxy proxy{servers.port()};
  Client ann =
      tenure::connect("zookeeper://" + proxy.address() + chroot, {.request_timeout = test_timeout})
          .value();
};

// 002-B7: the node was made and the answer lost. It is found by its name, and there is no other.
TEST_F(ZookeeperLostAnswer, a_node_whose_creation_reply_was_lost_is_found_again) {
  proxy.deafen();
  std::optional<Result<Guard>> got;
  std::jthread locking([&] { got = ann.mutex("a").lock(); });
  ASSERT_TRUE(has_nodes("a", 1));
  const auto made = nodes("a");

  proxy.cut();
  locking.join();

  ASSERT_TRUE(got->has_value()) << to_string(got->error());
  EXPECT_EQ(nodes("a"), made);
  EXPECT_EQ((*got)->token().get(),
            static_cast<std::uint64_t>(shell.czxid_of(path_of("a") + '/' + made.front())));
  EXPECT_TRUE((*got)->unlock());
  EXPECT_TRUE(has_nodes("a", 0));
}

// 002-B7: the node of a cancelled wait is found and deleted, too.
TEST_F(ZookeeperLostAnswer, a_node_of_a_cancelled_wait_is_found_and_deleted) {
  proxy.deafen();
  std::stop_source hurry;
  std::jthread locking([&] {
    const auto got = ann.mutex("a").lock(hurry.get_token());
    EXPECT_EQ(got.error(), Errc::cancelled);
  });
  ASSERT_TRUE(has_nodes("a", 1));

  hurry.request_stop();
  proxy.cut();
  locking.join();

  EXPECT_TRUE(has_nodes("a", 0));
  EXPECT_TRUE(connect().mutex("a").try_lock());
}

// What was deleted is not there when it is asked for again, and yet it was held.
TEST_F(ZookeeperLostAnswer, a_release_whose_reply_was_lost_succeeds) {
  auto guard = ann.mutex("a").lock().value();
  proxy.deafen();
  Result<void> given_back = fail(Errc::not_held);
  std::jthread unlocking([&] { given_back = guard.unlock(); });
  ASSERT_TRUE(has_nodes("a", 0));

  proxy.cut();
  unlocking.join();

  EXPECT_TRUE(given_back) << to_string(given_back.error());
}

// Guards of folders, which save a list in each cycle, end with the connection. New ones are set,
// also if the answer to the last one was lost.
TEST_F(ZookeeperLostAnswer, an_uncontended_cycle_costs_two_requests_after_a_reconnect) {
  shell.make(path_of("b"));
  const auto seen = seen_client("zookeeper://" + proxy.address() + chroot);
  EXPECT_TRUE(seen.client.mutex("b").lock().value().unlock());
  proxy.deafen();
  std::jthread locking([&] {
    auto mine = seen.client.mutex("b").lock();
    ASSERT_TRUE(mine) << to_string(mine.error());
    EXPECT_TRUE(mine->unlock());
  });
  ASSERT_TRUE(has_nodes("b", 1));
  proxy.cut();
  locking.join();
  EXPECT_TRUE(seen.client.mutex("b").lock().value().unlock());
  const auto before = seen.requests();

  constexpr int cycles = 100;
  for (int n = 0; n < cycles; ++n) {
    EXPECT_TRUE(seen.client.mutex("b").lock().value().unlock());
  }

  EXPECT_LE(seen.requests() - before, 2U * cycles + 10);
}

}  // namespace
}  // namespace tenure::test
