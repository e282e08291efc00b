#include "backends/net/loop_backend.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/wait_until.hpp"

namespace tenure::backends {
namespace {

using namespace std::chrono_literals;

/// Backend that runs posted jobs and nothing else.
class TestBackend final : public LoopBackend {
 public:
  ~TestBackend() override { stop(); }

  using LoopBackend::do_now;
  using LoopBackend::post;

  std::atomic<int> sent = 0;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  [[nodiscard]] Limits limits() const noexcept override { return {}; }
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
};

TEST(LoopBackends, a_posted_job_is_run_and_flushed) {
  TestBackend backend;
  std::atomic<int> done = 0;
  backend.post([&] { ++done; });

  EXPECT_TRUE(test::eventually([&] { return done == 1 && backend.sent > 0; }));
}

TEST(LoopBackends, do_now_runs_after_the_jobs_posted_before) {
  TestBackend backend;
  int done = 0;
  backend.post([&] { ++done; });
  int seen = 0;
  backend.do_now([&] { seen = done; });

  EXPECT_EQ(seen, 1);
}

// A job may be pushed while the loop empties the queue.
TEST(LoopBackends, every_job_of_many_threads_is_run) {
  TestBackend backend;
  std::atomic<int> done = 0;
  std::atomic<int> posted = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int n = 0; n < 2'000; ++n) {
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
