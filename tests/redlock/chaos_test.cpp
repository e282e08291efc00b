#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client.hpp>

#include "support/redlock_servers.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Clients who take turns on one lock, and look whether they are alone in there.
class Crowd {
 public:
  explicit Crowd(const std::string& url, int clients) {
    for (int n = 0; n < clients; ++n) {
      threads_.emplace_back([this, url](const std::stop_token& stop) { run(url, stop); });
    }
  }

  [[nodiscard]] int turns() const { return turns_; }
  [[nodiscard]] int meetings() const { return meetings_; }
  [[nodiscard]] int old_tokens() const { return old_tokens_; }
  [[nodiscard]] bool goes_on() {
    const auto goal = turns_ + 10;
    return eventually([&] { return turns_ >= goal; });
  }
  void stop() { threads_.clear(); }

 private:
  void run(const std::string& url, const std::stop_token& stop) {
    const auto client = connect(url, {.request_timeout = 5s}).value();
    const auto mutex = client.mutex("a", {.ttl = 500ms, .fencing = Fencing::demanded});
    while (!stop.stop_requested()) {
      auto guard = mutex.try_lock_for(100ms);
      if (!guard) {
        continue;
      }
      const auto token = guard->token().get();
      meetings_ += is_inside_.exchange(true) ? 1 : 0;
      old_tokens_ += last_.exchange(token) >= token ? 1 : 0;
      // Who was stopped for too long would know; then it is not alone for good reason.
      const bool was_ours = guard->owns_lock();
      is_inside_ = false;
      turns_ += was_ours ? 1 : 0;
    }
  }

  std::atomic<bool> is_inside_ = false;
  std::atomic<std::uint64_t> last_ = 0;
  std::atomic<int> turns_ = 0;
  std::atomic<int> meetings_ = 0;
  std::atomic<int> old_tokens_ = 0;
  std::vector<std::jthread> threads_;
};

// 003.002, 003.003, 003.033, 003.034: all that a minority may do, and nobody meets anybody.
TEST(RedlockChaos, nobody_is_in_beside_another_whatever_happens_to_a_minority) {
  RedlockServers servers;
  // So that a restart is the only reason to be held back.
  const auto aged = [] {
    const auto until = steady_clock::now() + 1600ms;
    return eventually([&] { return steady_clock::now() > until; });
  };
  ASSERT_TRUE(aged());
  Crowd crowd(servers.url("?node_timeout=50ms&retry_delay=20ms"), 4);
  ASSERT_TRUE(crowd.goes_on());

  for (const std::size_t server : {0U, 3U}) {
    servers[server].kill();
    servers[(server + 1) % 5].pause();
    EXPECT_TRUE(crowd.goes_on()) << "one dead, one hung";
    servers[(server + 1) % 5].resume();
    EXPECT_TRUE(crowd.goes_on());
    servers[server].start();
    EXPECT_TRUE(crowd.goes_on()) << "one is empty";
    ASSERT_TRUE(aged());
    EXPECT_TRUE(crowd.goes_on());
  }
  crowd.stop();

  EXPECT_EQ(crowd.meetings(), 0) << "of " << crowd.turns();
  EXPECT_EQ(crowd.old_tokens(), 0) << "of " << crowd.turns();
}

}  // namespace
}  // namespace tenure::test
