#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client.hpp>

#include "server/raft/node.hpp"
#include "server/rpc/rpc_server.hpp"
#include "support/raft_folder.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// A lock service that can be taken away and brought back, on the same port with the same folder.
class RpcRestart : public ::testing::Test {
 protected:
  RpcRestart() { start(); }
  ~RpcRestart() override { stop(); }

  void start() {
    node_ = server::raft::Node::open({.folder = folder_.path()}).value();
    rpc_ = std::make_unique<server::RpcServer>(
        *node_, server::RpcOptions{.address = "127.0.0.1:" + std::to_string(port_)});
    node_->start();
    port_ = rpc_->start().value();
  }
  void stop() {
    if (rpc_) {
      rpc_->stop();
      node_->stop();
      rpc_.reset();
      node_.reset();
    }
  }
  [[nodiscard]] std::string url(const std::string& options = {}) const {
    return "tenure://127.0.0.1:" + std::to_string(port_) + options;
  }

 private:
  TemporaryFolder folder_;
  int port_ = 0;
  std::unique_ptr<server::raft::Node> node_;
  std::unique_ptr<server::RpcServer> rpc_;
};

TEST_F(RpcRestart, a_hold_a_wait_and_a_watch_survive_the_server) {
  auto ann = connect(url("?owner=ann")).value();
  auto bob = connect(url("?owner=bob")).value();
  auto watch = ann.watch("a").value();
  auto held = ann.mutex("a").lock().value();
  auto waiting = std::async(std::launch::async, [&] { return bob.mutex("a").lock(); });
  ASSERT_EQ(watch.next_for(patience).value().type, LockEventType::granted);
  ASSERT_EQ(watch.next_for(patience).value().type, LockEventType::queued);

  stop();
  start();

  EXPECT_TRUE(held.owns_lock());
  const auto first = held.token();
  EXPECT_TRUE(held.unlock());
  auto next = waiting.get();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), first);
  // Without gap or duplicate.
  EXPECT_EQ(watch.next_for(patience).value().type, LockEventType::released);
  EXPECT_EQ(watch.next_for(patience).value().type, LockEventType::granted);
  EXPECT_TRUE(next->unlock());
  EXPECT_EQ(watch.next_for(patience).value().type, LockEventType::released);
}

TEST_F(RpcRestart, what_is_asked_while_nobody_is_there_is_answered_later) {
  auto ann = connect(url()).value();
  stop();
  auto asked = std::async(std::launch::async, [&] { return ann.mutex("a").lock(); });
  EXPECT_EQ(asked.wait_for(100ms), std::future_status::timeout);

  start();

  EXPECT_TRUE(asked.get());
}

TEST_F(RpcRestart, a_wait_can_be_called_off_while_nobody_is_there) {
  auto ann = connect(url()).value();
  auto bob = connect(url()).value();
  auto held = ann.mutex("a").lock().value();
  std::stop_source hurry;
  auto waiting =
      std::async(std::launch::async, [&] { return bob.mutex("a").lock(hurry.get_token()); });
  ASSERT_TRUE(eventually([&] { return ann.mutex("a").try_lock().error() == Errc::would_block; }));
  stop();

  hurry.request_stop();

  EXPECT_EQ(waiting.get().error(), Errc::cancelled);
  start();
  EXPECT_TRUE(held.unlock());
  EXPECT_TRUE(ann.mutex("a").try_lock_for(patience));
}

// Sent again by its request id: readers enter when the server is back.
TEST_F(RpcRestart, a_downgrade_while_nobody_is_there_happens_later) {
  auto ann = connect(url()).value();
  auto bob = connect(url()).value();
  auto guard = ann.rw_lock("a").lock().value();
  const auto token = guard.token();
  stop();
  auto asked = std::async(std::launch::async, [&] { return ann.rw_lock("a").downgrade(guard); });
  EXPECT_EQ(asked.wait_for(10ms), std::future_status::timeout);

  start();

  const auto share = asked.get();
  ASSERT_TRUE(share) << to_string(share.error());
  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared_for(patience));
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(share->owns_lock());
  EXPECT_EQ(share->token(), token);
}

TEST_F(RpcRestart, a_lock_is_lost_by_our_own_clock_when_the_server_does_not_come_back) {
  auto ann = connect(url()).value();
  auto held = ann.mutex("a", {.ttl = 500ms}).lock().value();
  const auto lost = held.lost();

  stop();

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_FALSE(held.owns_lock());
}

TEST_F(RpcRestart, nobody_there_is_unavailable_and_says_who) {
  const auto before = url();
  stop();

  const auto refused = connect(before);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_NE(refused.error().detail.find("127.0.0.1"), std::string::npos) << refused.error().detail;
}

TEST_F(RpcRestart, the_first_of_several_that_answers_is_taken) {
  const auto only = url().substr(std::string("tenure://").size());

  EXPECT_TRUE(connect("tenure://127.0.0.1:1," + only));
  EXPECT_EQ(connect("tenure://127.0.0.1:1,127.0.0.1:2").error(), Errc::unavailable);
}

TEST_F(RpcRestart, wrong_urls_say_where) {
  EXPECT_EQ(connect(url("/path")).error(), Errc::invalid_argument);
  EXPECT_EQ(connect(url("?colour=red")).error(), Errc::invalid_argument);
  const auto unreadable = connect(url("?tls_ca=/nowhere/ca.pem"));
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error(), Errc::invalid_argument);
  EXPECT_NE(unreadable.error().detail.find("/nowhere/ca.pem"), std::string::npos);
}

}  // namespace
}  // namespace tenure::test
