#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "backends/net/inbox.hpp"

namespace tenure::backends {
namespace {

TEST(Inbox, what_is_put_in_is_done_in_order) {
  Inbox inbox;
  std::vector<int> done;
  for (int n = 0; n < 5; ++n) {
    inbox.add([&done, n] { done.push_back(n); });
  }

  inbox.run_all();

  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(inbox.size(), 0);
}

TEST(Inbox, each_is_told_how_many_there_are) {
  Inbox inbox;
  EXPECT_EQ(inbox.add([] {}), 1);
  EXPECT_EQ(inbox.add([] {}), 2);
  inbox.run_all();

  EXPECT_EQ(inbox.add([] {}), 1);
}

TEST(Inbox, what_a_job_puts_in_stays_for_the_next_time) {
  Inbox inbox;
  int done = 0;
  inbox.add([&] { inbox.add([&] { ++done; }); });

  inbox.run_all();
  EXPECT_EQ(done, 0);

  inbox.run_all();
  EXPECT_EQ(done, 1);
}

TEST(Inbox, what_is_never_done_is_let_go) {
  const auto kept = std::make_shared<int>();
  {
    Inbox inbox;
    inbox.add([kept] {});
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(Inbox, of_many_threads_nothing_is_lost_and_each_keeps_its_order) {
  constexpr int threads = 4;
  constexpr int each = 20'000;
  Inbox inbox;
  std::vector<int> next(threads, 0);
  int done = 0;
  bool is_in_order = true;
  {
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        for (int n = 0; n < each; ++n) {
          inbox.add([&, thread, n] {
            is_in_order = is_in_order && next[static_cast<std::size_t>(thread)]++ == n;
            ++done;
          });
        }
      });
    }
    while (done < threads * each) {
      inbox.run_all();
    }
  }

  EXPECT_TRUE(is_in_order);
  EXPECT_EQ(inbox.size(), 0);
}

}  // namespace
}  // namespace tenure::backends
