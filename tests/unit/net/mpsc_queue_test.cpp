#include "net/mpsc_queue.hpp"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::net {
namespace {

TEST(MpscQueue, jobs_run_in_the_order_in_which_they_were_pushed) {
  MpscQueue queue;
  std::vector<int> done;
  for (int n = 0; n < 5; ++n) {
    queue.push([&done, n] { done.push_back(n); });
  }

  queue.run_all();

  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(queue.size(), 0);
}

TEST(MpscQueue, push_returns_the_queue_length) {
  MpscQueue queue;
  EXPECT_EQ(queue.push([] {}), 1);
  EXPECT_EQ(queue.push([] {}), 2);
  queue.run_all();

  EXPECT_EQ(queue.push([] {}), 1);
}

TEST(MpscQueue, a_job_that_is_pushed_by_a_job_stays_for_the_next_run) {
  MpscQueue queue;
  int done = 0;
  queue.push([&] { queue.push([&] { ++done; }); });

  queue.run_all();
  EXPECT_EQ(done, 0);

  queue.run_all();
  EXPECT_EQ(done, 1);
}

TEST(MpscQueue, a_job_that_never_runs_is_destroyed_with_the_queue) {
  const auto kept = std::make_shared<int>();
  {
    MpscQueue queue;
    queue.push([kept] {});
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(MpscQueue, no_job_of_concurrent_producers_is_lost_and_each_producer_keeps_its_order) {
  constexpr int threads = 4;
  constexpr int each = 20'000;
  MpscQueue queue;
  std::vector<int> next(threads, 0);
  int done = 0;
  bool is_in_order = true;
  {
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        for (int n = 0; n < each; ++n) {
          queue.push([&, thread, n] {
            is_in_order = is_in_order && next[static_cast<std::size_t>(thread)]++ == n;
            ++done;
          });
        }
      });
    }
    while (done < threads * each) {
      queue.run_all();
    }
  }

  EXPECT_TRUE(is_in_order);
  EXPECT_EQ(queue.size(), 0);
}

}  // namespace
}  // namespace tenure::net
