#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redlock/servers.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Clients that acquire one lock in turn and check that no other client holds it.
class Contenders {
 public:
  explicit Contenders(const std::string& url, int clients) {
    for (int n = 0; n < clients; ++n) {
      threads_.emplace_back([this, url](const std::stop_token& stop) { run(url, stop); });
    }
  }

  [[nodiscard]] int turns() const { return turns_; }
  [[nodiscard]] int overlaps() const { return overlaps_; }
  [[nodiscard]] int stale_tokens() const { return stale_tokens_; }
  [[nodiscard]] bool makes_progress() {
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
      overlaps_ += is_held_.exchange(true) ? 1 : 0;
      stale_tokens_ += last_.exchange(token) >= token ? 1 : 0;
      // A client that was suspended for too long notices that; another holder is legitimate then.
      const bool was_ours = guard->owns_lock();
      is_held_ = false;
      turns_ += was_ours ? 1 : 0;
    }
  }

  std::atomic<bool> is_held_ = false;
  std::atomic<std::uint64_t> last_ = 0;
  std::atomic<int> turns_ = 0;
  std::atomic<int> overlaps_ = 0;
  std::atomic<int> stale_tokens_ = 0;
  std::vector<std::jthread> threads_;
};

// 003.002, 003.003, 003.033, 003.034: whatever happens to a minority, two clients never hold the
// lock.
TEST(RedlockChaos, a_failing_minority_never_lets_two_clients_hold_the_lock) {
  RedlockServers servers;
  // All servers are old enough to vote, so that only a restart excludes them.
  const auto aged = [] {
    const auto until = steady_clock::now() + 1600ms;
    return eventually([&] { return steady_clock::now() > until; });
  };
  ASSERT_TRUE(aged());
  Contenders contenders(servers.url("?node_timeout=50ms&retry_delay=20ms"), 4);
  ASSERT_TRUE(contenders.makes_progress());

  for (const std::size_t server : {0U, 3U}) {
    servers[server].kill();
    servers[(server + 1) % 5].pause();
    EXPECT_TRUE(contenders.makes_progress()) << "one dead, one hung";
    servers[(server + 1) % 5].resume();
    EXPECT_TRUE(contenders.makes_progress());
    servers[server].start();
    EXPECT_TRUE(contenders.makes_progress()) << "one is empty";
    ASSERT_TRUE(aged());
    EXPECT_TRUE(contenders.makes_progress());
  }
  contenders.stop();

  EXPECT_EQ(contenders.overlaps(), 0) << "of " << contenders.turns();
  EXPECT_EQ(contenders.stale_tokens(), 0) << "of " << contenders.turns();
}

}  // namespace
}  // namespace tenure::test
