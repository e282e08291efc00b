#include <chrono>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/rpc/certificates.hpp"
#include "support/rpc/service.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// On a lock service that goes away and comes back.
class RpcRestart : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string url(const std::string& more = {}) const {
    return service_.url("?request_timeout=2s" + more +
                        (is_tls_ ? "&tls_ca=" + authority_.file().string() : ""));
  }
  void stop() { service_.stop(); }
  void start() { service_.start(); }

 private:
  bool is_tls_ = std::string(GetParam()) == "tls";
  Authority authority_;
  RpcService service_{{.tls = is_tls_ ? std::optional(Authority::server_files(authority_.sign({})))
                                      : std::nullopt}};
};
INSTANTIATE_TEST_SUITE_P(Over, RpcRestart, ::testing::Values("plain", "tls"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(RpcRestart, a_hold_a_wait_and_a_watch_survive_the_server) {
  auto ann = connect(url("&owner=ann")).value();
  auto bob = connect(url("&owner=bob")).value();
  auto watch = ann.watch("a").value();
  auto held = ann.mutex("a").lock().value();
  auto waiting = std::async(std::launch::async, [&] { return bob.mutex("a").lock(); });
  ASSERT_EQ(watch.next_for(test_timeout).value().type, LockEventType::granted);
  ASSERT_EQ(watch.next_for(test_timeout).value().type, LockEventType::queued);

  stop();
  start();

  EXPECT_TRUE(held.owns_lock());
  const auto first = held.token();
  EXPECT_TRUE(held.unlock());
  auto next = waiting.get();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), first);
  // Without gap or duplicate.
  EXPECT_EQ(watch.next_for(test_timeout).value().type, LockEventType::released);
  EXPECT_EQ(watch.next_for(test_timeout).value().type, LockEventType::granted);
  EXPECT_TRUE(next->unlock());
  EXPECT_EQ(watch.next_for(test_timeout).value().type, LockEventType::released);
}

TEST_P(RpcRestart, requests_made_without_a_server_complete_after_its_restart) {
  auto ann = connect(url()).value();
  stop();
  auto asked = std::async(std::launch::async, [&] { return ann.mutex("a").lock(); });
  EXPECT_EQ(asked.wait_for(100ms), std::future_status::timeout);

  start();

  EXPECT_TRUE(asked.get());
}

TEST_P(RpcRestart, a_wait_can_be_cancelled_without_a_server) {
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
  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout));
}

// Sent again by its request id: readers enter when the server is back.
TEST_P(RpcRestart, a_downgrade_without_a_server_completes_after_its_restart) {
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
  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared_for(test_timeout));
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(share->owns_lock());
  EXPECT_EQ(share->token(), token);
}

// 003.006
TEST_P(RpcRestart, a_ttl_set_without_a_server_applies_after_its_restart) {
  auto ann = connect(url()).value();
  auto guard = ann.mutex("a", {.ttl = 30s}).lock().value();
  stop();
  auto asked = std::async(std::launch::async, [&] { return guard.extend(60s); });
  EXPECT_EQ(asked.wait_for(10ms), std::future_status::timeout);

  start();

  const auto extended = asked.get();
  ASSERT_TRUE(extended) << to_string(extended.error());
  EXPECT_GT(guard.valid_until(), std::chrono::steady_clock::now() + 40s);
}

TEST_P(RpcRestart, a_lock_is_lost_by_our_own_clock_when_the_server_does_not_come_back) {
  auto ann = connect(url()).value();
  auto held = ann.mutex("a", {.ttl = 500ms}).lock().value();
  const auto lost = held.lost();

  stop();

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_FALSE(held.owns_lock());
}

// A destructor does not throw, and waits no longer than request_timeout.
TEST_P(RpcRestart, a_client_with_a_lock_can_be_destroyed_without_a_server) {
  auto ann = std::make_optional(connect(url()).value());
  auto held = std::make_optional(ann->mutex("a").lock().value());
  stop();
  const auto began = std::chrono::steady_clock::now();

  held.reset();
  ann.reset();

  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
}

TEST_P(RpcRestart, an_unreachable_server_is_unavailable_with_its_address) {
  const auto before = url();
  stop();

  const auto refused = connect(before);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_NE(refused.error().detail.find("127.0.0.1"), std::string::npos) << refused.error().detail;
}

}  // namespace
}  // namespace tenure::test
