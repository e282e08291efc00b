#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>

#include <tenure/client/client.hpp>

#include "support/etcd/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

// 002-B4: what was waited for is forgotten by etcd, and the connection is lost: look again.
TEST(EtcdFailure, a_wait_survives_a_restart_and_a_compaction) {
  EtcdServer server;
  const auto ann = connect(server.url(), {.request_timeout = 20s}).value();
  const auto etcdctl = server.begin_etcdctl({"lock", "--ttl", "60", "a"});
  const auto theirs = etcdctl->hear();
  std::atomic<bool> is_in = false;
  std::jthread waiter([&] {
    auto mine = ann.mutex("a", {.ttl = 60s}).lock();
    ASSERT_TRUE(mine) << to_string(mine.error());
    is_in = true;
  });
  ASSERT_TRUE(eventually([&] { return server.keys("a/").kvs_size() == 2; }));

  server.kill();
  server.start();
  server.compact();
  EXPECT_FALSE(is_in);
  server.remove(theirs);

  EXPECT_TRUE(eventually([&] { return is_in.load(); }));
}

// 000.099: a hanging server must not extend a client's trust in its lease.
TEST(EtcdFailure, a_paused_server_loses_the_lock_within_its_ttl) {
  EtcdServer server;
  const auto ann = connect(server.url(), {.request_timeout = 500ms}).value();
  auto guard = ann.mutex("a", {.ttl = 2s}).lock().value();
  const auto end = guard.valid_until();

  server.pause();

  EXPECT_TRUE(eventually([&] { return guard.lost().stop_requested(); }));
  // A renewal may have been confirmed between the two; the rest is for a machine that is busy.
  EXPECT_LT(std::chrono::steady_clock::now(), end + 2s + 2s);
  EXPECT_EQ(guard.state(), GuardState::lost);
  server.resume();
  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout));
}

/// Three members on one machine.
class EtcdCluster : public ::testing::Test {
 protected:
  EtcdCluster() {
    std::string all;
    for (int n = 0; n < 3; ++n) {
      members.push_back(std::make_unique<EtcdServer>(
          EtcdServer::Options{.starts = false, .name = "m" + std::to_string(n)}));
      all += (n == 0 ? "m" : ",m") + std::to_string(n) + "=" + members.back()->peer_url();
    }
    for (auto& member : members) {
      member->set_initial_cluster(all);
      member->launch();
    }
    for (auto& member : members) {
      member->await();
    }
  }
  [[nodiscard]] std::string url() const {
    return "etcd://" + members[0]->address() + "," + members[1]->address() + "," +
           members[2]->address();
  }
  [[nodiscard]] std::size_t leader() const {
    std::size_t found = 0;
    EXPECT_TRUE(eventually([&] {
      for (found = 0; found < 3; ++found) {
        if (members[found]->leads()) {
          return true;
        }
      }
      return false;
    }));
    return found;
  }
  /// Some member that is not this one.
  [[nodiscard]] const EtcdServer& another(std::size_t than) const {
    return *members[(than + 1) % 3];
  }

  std::vector<std::unique_ptr<EtcdServer>> members;
};

// 002.051: only the latency changes.
TEST_F(EtcdCluster, waiters_are_granted_after_the_loss_of_the_leader) {
  const auto ann = connect(url(), {.owner = "ann", .request_timeout = 20s}).value();
  const auto bob = connect(url(), {.owner = "bob", .request_timeout = 20s}).value();
  auto guard = ann.mutex("a", {.ttl = 30s}).lock().value();
  std::vector<FencingToken> tokens{guard.token()};
  std::vector<std::jthread> waiters;
  const auto lead = leader();
  for (int n = 0; n < 4; ++n) {
    waiters.emplace_back([&, n] {
      auto mine = (n % 2 == 0 ? ann : bob).mutex("a", {.ttl = 30s}).lock();
      ASSERT_TRUE(mine) << to_string(mine.error());
      tokens.push_back(mine->token());
      const auto given_back = mine->unlock();
      EXPECT_TRUE(given_back || given_back.error() == Errc::unavailable);
    });
    ASSERT_TRUE(eventually([&] { return another(lead).keys("a/").kvs_size() == n + 2; }));
  }

  members[lead]->kill();
  const auto given_back = guard.unlock();
  EXPECT_TRUE(given_back || given_back.error() == Errc::unavailable);
  waiters.clear();

  EXPECT_EQ(tokens.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(tokens));
  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout));
}

// A member that hangs is noticed by its silence, and left for another one.
TEST_F(EtcdCluster, a_paused_member_is_replaced_by_another) {
  const auto ann = connect(url(), {.owner = "ann", .request_timeout = 20s}).value();
  auto guard = ann.mutex("a", {.ttl = 30s}).lock().value();

  members[0]->pause();  // The first of the URL.
  const auto other = ann.mutex("b", {.ttl = 30s}).lock();
  EXPECT_TRUE(other) << to_string(other.error());
  const auto given_back = guard.unlock();
  members[0]->resume();

  EXPECT_TRUE(given_back) << to_string(given_back.error());
  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout));
}

}  // namespace
}  // namespace tenure::test
