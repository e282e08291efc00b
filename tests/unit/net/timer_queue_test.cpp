#include "net/timer_queue.hpp"

#include <chrono>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace tenure::net {
namespace {

using namespace std::chrono_literals;
using Clock = TimerQueue::Clock;

TEST(TimerQueue, callbacks_run_in_the_order_of_their_times) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  std::vector<int> ran;
  const auto now = Clock::now();
  for (const int n : {3, 1, 2}) {
    timers.call_at(now + n * 2ms, [&ran, n] { ran.push_back(n); });
  }

  loop.run();

  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
}

TEST(TimerQueue, callbacks_of_the_same_time_run_in_the_order_in_which_they_were_added) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  std::vector<int> ran;
  const auto now = Clock::now();
  for (const int n : {1, 2, 3}) {
    timers.call_at(now, [&ran, n] { ran.push_back(n); });
  }

  loop.run();

  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
}

TEST(TimerQueue, no_callback_runs_before_its_time) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  const auto when = Clock::now() + 10ms;
  Clock::time_point ran;
  timers.call_at(when, [&] { ran = Clock::now(); });

  loop.run();

  EXPECT_GE(ran, when);
}

// The timer is set to the first callback; an earlier one has to move it.
TEST(TimerQueue, a_later_callback_does_not_delay_an_earlier_one_that_is_added_after_it) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  bool has_run = false;
  timers.call_at(Clock::now() + 1h, [] {});
  timers.call_at(Clock::now(), [&] {
    has_run = true;
    timers.clear();
  });

  loop.run();

  EXPECT_TRUE(has_run);
}

TEST(TimerQueue, a_callback_can_add_another_one) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  int ran = 0;
  timers.call_at(Clock::now(), [&] { timers.call_at(Clock::now() + 1ms, [&] { ++ran; }); });

  loop.run();

  EXPECT_EQ(ran, 1);
}

TEST(TimerQueue, a_cleared_queue_destroys_its_callbacks_and_ends_its_wait) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  const auto owned = std::make_shared<int>();
  timers.call_at(Clock::now() + 1h, [owned] {});

  timers.clear();
  loop.run();

  EXPECT_EQ(owned.use_count(), 1);
}

// The queue took the cleared callback's time for the time that the timer is set to.
TEST(TimerQueue, a_callback_that_is_added_after_clear_runs) {
  boost::asio::io_context loop;
  TimerQueue timers(loop);
  bool has_run = false;
  timers.call_at(Clock::now(), [] {});
  timers.clear();
  timers.call_at(Clock::now() + 1ms, [&] { has_run = true; });

  loop.run();

  EXPECT_TRUE(has_run);
}

}  // namespace
}  // namespace tenure::net
