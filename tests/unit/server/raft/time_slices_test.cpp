#include "server/store/time_slices.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

namespace tenure::server {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

/// Runs for at least one time slice.
void keep_busy(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(TimeSlices, handlers_run_in_the_order_of_their_arrival) {
  asio::io_context loop;
  TimeSlices slices(loop, 1ms);
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    asio::post(slices.executor(), [&order, name] { order += name; });
  }
  loop.run();
  EXPECT_EQ(order, "abc");
}

// A flood of client work must not delay heartbeats.
TEST(TimeSlices, a_handler_of_the_loop_waits_for_one_slice_only) {
  asio::io_context loop;
  TimeSlices slices(loop, 1ms);
  int done = 0;
  int done_before_urgent = -1;
  for (int n = 0; n < 100; ++n) {
    asio::post(slices.executor(), [&] {
      if (done == 0) {
        asio::post(loop, [&] { done_before_urgent = done; });
      }
      ++done;
      keep_busy(1ms);
    });
  }
  loop.run();
  EXPECT_EQ(done, 100);
  EXPECT_EQ(done_before_urgent, 1);
}

TEST(TimeSlices, a_timer_of_the_loop_runs_between_two_slices) {
  asio::io_context loop;
  TimeSlices slices(loop, 1ms);
  int done = 0;
  int done_before_timer = -1;
  asio::steady_timer timer(loop);
  for (int n = 0; n < 100; ++n) {
    asio::post(slices.executor(), [&] {
      if (done == 10) {
        timer.expires_after(0ms);
        timer.async_wait([&](const boost::system::error_code&) { done_before_timer = done; });
      }
      ++done;
      keep_busy(1ms);
    });
  }
  loop.run();
  EXPECT_GT(done_before_timer, 10);
  EXPECT_LT(done_before_timer, 20);
}

TEST(TimeSlices, work_from_another_thread_arrives) {
  asio::io_context loop;
  TimeSlices slices(loop, 1ms);
  const asio::any_io_executor executor = slices.executor();
  std::thread::id ran_on;
  std::thread other([&] { asio::post(executor, [&] { ran_on = std::this_thread::get_id(); }); });
  other.join();
  loop.run();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

}  // namespace
}  // namespace tenure::server
