#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backends/net/loop_backend.hpp"
#include "support/wait_until.hpp"

namespace tenure::backends {
namespace {

using namespace std::chrono_literals;

/// Does nothing but what it is posted.
class Bare final : public LoopBackend {
 public:
  ~Bare() override { stop(); }

  using LoopBackend::do_now;
  using LoopBackend::do_posted;
  using LoopBackend::post;

  std::atomic<std::size_t> worth = 1;
  std::atomic<int> sent = 0;

  [[nodiscard]] Promises promises() const noexcept override { return {}; }
  [[nodiscard]] Bounds bounds() const noexcept override { return {}; }
  void start(Listener& /*listener*/) override {}
  void grant_lease(LeaseRequest /*request*/, Done<void> done) override { done({}); }
  void renew_leases(std::vector<LeaseId> /*leases*/, Done<Renewed> done) override { done({}); }
  void revoke_lease(LeaseId /*lease*/, Done<void> done) override { done({}); }
  void acquire(AcquireRequest /*request*/, Done<Granted> done) override { done({}); }
  void abandon(LeaseId /*lease*/, RequestId /*request*/) override {}
  void release(ReleaseRequest /*request*/, Done<void> done) override { done({}); }
  void holders(std::string /*name*/, Done<std::vector<Holder>> done) override { done({}); }

 private:
  void send_all() override { ++sent; }
  [[nodiscard]] std::size_t worth_a_look() const override { return worth; }
};

TEST(LoopBackends, what_is_posted_is_done_and_sent) {
  Bare backend;
  std::atomic<int> done = 0;
  backend.post([&] { ++done; });

  EXPECT_TRUE(test::eventually([&] { return done == 1 && backend.sent > 0; }));
}

TEST(LoopBackends, what_waits_for_answers_is_done_with_them) {
  Bare backend;
  backend.worth = 1'000;
  backend.do_now([] {});
  std::atomic<int> done = 0;
  backend.do_now([&] {
    // Nothing else runs on the loop meanwhile.
    std::thread([&] { backend.post([&] { ++done; }); }).join();
    EXPECT_EQ(done, 0);
    backend.do_posted();
    EXPECT_EQ(done, 1);
  });
}

TEST(LoopBackends, when_so_many_are_posted_the_loop_is_told) {
  Bare backend;
  backend.worth = 3;
  backend.do_now([] {});
  std::atomic<int> done = 0;
  for (int n = 0; n < 3; ++n) {
    backend.post([&] { ++done; });
  }

  EXPECT_TRUE(test::eventually([&] { return done == 3; }));
}

// The server may be slow, or gone.
TEST(LoopBackends, what_waits_for_answers_that_are_late_is_done_all_the_same) {
  Bare backend;
  backend.worth = 1'000;
  backend.do_now([] {});
  std::atomic<int> done = 0;
  for (int n = 1; n <= 3; ++n) {
    backend.post([&] { ++done; });

    EXPECT_TRUE(test::eventually([&] { return done == n; }));
  }
}

TEST(LoopBackends, what_was_posted_before_is_done_before_what_is_waited_for) {
  Bare backend;
  backend.worth = 1'000;
  backend.do_now([] {});
  int done = 0;
  backend.post([&] { ++done; });
  int seen = 0;
  backend.do_now([&] { seen = done; });

  EXPECT_EQ(seen, 1);
}

// Those who came while the loop believed that they had to wait do not tell it.
TEST(LoopBackends, of_many_that_come_while_that_changes_none_is_forgotten) {
  Bare backend;
  std::atomic<int> done = 0;
  std::atomic<int> posted = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int n = 0; n < 2'000; ++n) {
          backend.worth = 1 + static_cast<std::size_t>(n % 3) * 50;
          ++posted;
          backend.post([&] { ++done; });
        }
      });
    }
  }

  EXPECT_TRUE(test::eventually([&] { return done == posted; }));
}

}  // namespace
}  // namespace tenure::backends
