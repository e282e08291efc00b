#include "net/event_loop_runner.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "support/wait_until.hpp"

namespace tenure::net {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using sys::WaitSlot;

std::chrono::nanoseconds cpu_time(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Signals `slot` from the loop after `delay`, and records the thread.
void signal_after(EventLoopRunner& runner, std::chrono::milliseconds delay, WaitSlot& slot,
                  std::thread::id& ran_on) {
  auto timer = std::make_shared<boost::asio::steady_timer>(runner.loop());
  runner.post([&runner, &slot, &ran_on, delay, timer] {
    timer->expires_after(delay);
    timer->async_wait([&runner, &slot, &ran_on, timer](const boost::system::error_code&) {
      ran_on = std::this_thread::get_id();
      runner.signal(slot);
    });
  });
}

/// Posts a job and waits until it has run.
void run_on_loop(EventLoopRunner& runner, const std::function<void()>& job) {
  WaitSlot slot;
  runner.post([&] {
    job();
    runner.signal(slot);
  });
  runner.wait(slot, std::nullopt);
}

/// A job that posts itself again until it is stopped: the loop always has a handler to run.
class Flood {
 public:
  explicit Flood(EventLoopRunner& runner) : runner_(runner) {}
  void start() {
    runner_.post([this] { go_on(); });
  }
  void stop() {
    is_stopped_ = true;
    ASSERT_TRUE(test::eventually([this] { return has_ended_.load(); }));
  }

 private:
  void go_on() {
    if (is_stopped_) {
      has_ended_ = true;
    } else {
      boost::asio::post(runner_.loop(), [this] { go_on(); });
    }
  }

  EventLoopRunner& runner_;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> has_ended_ = false;
};

// Callbacks, renewals and coroutines have no thread that waits for them.
TEST(EventLoopRunner, the_dedicated_thread_runs_jobs_while_no_thread_waits) {
  EventLoopRunner runner;
  std::atomic<int> runs = 0;
  for (int n = 0; n < 100; ++n) {
    runner.post([&] { ++runs; });
  }
  EXPECT_TRUE(test::eventually([&] { return runs == 100; }));
}

TEST(EventLoopRunner, the_dedicated_thread_resumes_after_the_last_waiter_has_left) {
  EventLoopRunner runner;
  for (int n = 0; n < 20; ++n) {
    run_on_loop(runner, [] {});
    std::atomic<bool> has_run = false;
    runner.post([&] { has_run = true; });
    EXPECT_TRUE(test::eventually([&] { return has_run.load(); }));
  }
}

TEST(EventLoopRunner, posted_jobs_run_in_order) {
  EventLoopRunner runner;
  std::vector<int> order;
  for (int n = 0; n < 1'000; ++n) {
    runner.post([&, n] { order.push_back(n); });
  }
  run_on_loop(runner, [] {});
  ASSERT_EQ(order.size(), 1'000U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(EventLoopRunner, a_job_may_post_another_job) {
  EventLoopRunner runner;
  WaitSlot done;
  int left = 100;
  std::function<void()> again = [&] {
    if (--left == 0) {
      runner.signal(done);
    } else {
      runner.post(again);
    }
  };
  runner.post(again);
  runner.wait(done, std::nullopt);
  EXPECT_EQ(left, 0);
}

// The reason for the class: the reply wakes the thread that needs it, and no other thread.
TEST(EventLoopRunner, a_waiting_thread_runs_the_loop_itself) {
  EventLoopRunner runner;
  int ran_here = 0;
  for (int n = 0; n < 20; ++n) {
    WaitSlot slot;
    std::thread::id ran_on;
    signal_after(runner, 5ms, slot, ran_on);
    runner.wait(slot, std::nullopt);
    ran_here += ran_on == std::this_thread::get_id() ? 1 : 0;
  }
  // Not all, if this thread loses its core for 5 ms before it waits.
  EXPECT_GT(ran_here, 10);
}

TEST(EventLoopRunner, a_slot_that_is_already_signalled_is_not_waited_for) {
  EventLoopRunner runner;
  WaitSlot slot;
  runner.signal(slot);
  runner.wait(slot, std::nullopt);
  EXPECT_TRUE(slot.is_signalled());
}

TEST(EventLoopRunner, a_deadline_ends_the_wait_of_the_leader_and_of_a_follower) {
  EventLoopRunner runner;
  const auto deadline = Clock::now() + 20ms;
  const auto wait = [&] {
    WaitSlot slot;
    runner.wait(slot, deadline);
    EXPECT_FALSE(slot.is_signalled());
    EXPECT_GE(Clock::now(), deadline);
  };
  const std::jthread other(wait);
  wait();
}

TEST(EventLoopRunner, a_deadline_ends_the_wait_of_a_leader_that_always_has_a_handler_to_run) {
  EventLoopRunner runner;
  Flood flood(runner);
  flood.start();
  for (int n = 0; n < 10; ++n) {
    WaitSlot slot;
    runner.wait(slot, Clock::now() + 2ms);
    EXPECT_FALSE(slot.is_signalled());
  }
  flood.stop();
}

// A cancelled wait is signalled by the thread that cancels.
TEST(EventLoopRunner, a_signal_from_another_thread_ends_the_wait_of_the_leader) {
  EventLoopRunner runner;
  for (int n = 0; n < 200; ++n) {
    WaitSlot slot;
    const std::jthread other([&] { runner.signal(slot); });
    runner.wait(slot, std::nullopt);
    EXPECT_TRUE(slot.is_signalled());
  }
}

TEST(EventLoopRunner, a_follower_is_promoted_when_the_leader_leaves) {
  EventLoopRunner runner;
  for (int n = 0; n < 20; ++n) {
    WaitSlot first;
    WaitSlot second;
    std::jthread leader([&] { runner.wait(first, std::nullopt); });
    const std::jthread follower([&] { runner.wait(second, std::nullopt); });
    const auto follower_id = follower.get_id();
    runner.post([&] { runner.signal(first); });
    leader.join();
    EXPECT_TRUE(test::eventually([&] {
      std::atomic<std::thread::id> ran_on;
      runner.post([&] { ran_on = std::this_thread::get_id(); });
      return test::eventually([&] { return ran_on.load() != std::thread::id(); }) &&
             ran_on.load() == follower_id;
    }));
    runner.signal(second);
  }
}

// A handler that wakes all waiters leaves followers in the queue that are about to return.
TEST(EventLoopRunner, a_signalled_follower_is_not_promoted) {
  EventLoopRunner runner;
  constexpr int count = 8;
  for (int n = 0; n < 50; ++n) {
    std::vector<std::unique_ptr<WaitSlot>> slots;
    for (int slot = 0; slot < count; ++slot) {
      slots.push_back(std::make_unique<WaitSlot>());
    }
    WaitSlot last;
    std::vector<std::jthread> threads;
    for (const auto& slot : slots) {
      threads.emplace_back([&runner, &slot = *slot] { runner.wait(slot, std::nullopt); });
    }
    threads.emplace_back([&] { runner.wait(last, std::nullopt); });
    runner.post([&] {
      for (const auto& slot : slots) {
        runner.signal(*slot);
      }
    });
    std::thread::id unused;
    signal_after(runner, 2ms, last, unused);
    threads.clear();
    EXPECT_TRUE(last.is_signalled());
  }
}

TEST(EventLoopRunner, a_slot_can_be_used_again_after_a_reset) {
  EventLoopRunner runner;
  WaitSlot slot;
  for (int n = 0; n < 100; ++n) {
    slot.reset();
    EXPECT_FALSE(slot.is_signalled());
    runner.post([&] { runner.signal(slot); });
    runner.wait(slot, std::nullopt);
    EXPECT_TRUE(slot.is_signalled());
  }
}

// A release in a destructor leaves at once, though no thread waits for its reply.
TEST(EventLoopRunner, flush_runs_jobs_on_the_calling_thread_while_no_thread_runs_the_loop) {
  EventLoopRunner runner;
  EXPECT_TRUE(test::eventually([&] {
    // Afterwards no thread runs the loop, until the dedicated thread takes over.
    run_on_loop(runner, [] {});
    std::atomic<std::thread::id> ran_on;
    runner.post([&] { ran_on = std::this_thread::get_id(); });
    runner.flush();
    EXPECT_TRUE(test::eventually([&] { return ran_on.load() != std::thread::id(); }));
    return ran_on.load() == std::this_thread::get_id();
  }));
}

TEST(EventLoopRunner, flush_returns_though_the_loop_always_has_a_handler_to_run) {
  EventLoopRunner runner;
  Flood flood(runner);
  run_on_loop(runner, [] {});
  flood.start();
  for (int n = 0; n < 100; ++n) {
    runner.flush();
  }
  flood.stop();
}

// Coroutines and callbacks must make progress beside threads that lock and unlock in a loop.
TEST(EventLoopRunner, background_operations_run_beside_a_thread_that_waits_again_and_again) {
  EventLoopRunner runner;
  runner.begin_background();
  std::atomic<int> left = 200;
  std::function<void()> again = [&] {
    if (--left > 0) {
      runner.post(again);
    }
  };
  runner.post(again);
  while (left > 0) {
    run_on_loop(runner, [] {});
  }
  runner.end_background();
  std::atomic<bool> has_run = false;
  runner.post([&] { has_run = true; });
  EXPECT_TRUE(test::eventually([&] { return has_run.load(); }));
}

// The default: a process that waits for a lock for minutes must not use a core.
TEST(EventLoopRunner, no_thread_polls_while_threads_wait_and_busy_polling_is_off) {
  EventLoopRunner runner;
  const auto process_before = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
  const auto wait = [&] {
    const auto before = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    WaitSlot slot;
    runner.wait(slot, Clock::now() + 300ms);
    EXPECT_LT(cpu_time(CLOCK_THREAD_CPUTIME_ID) - before, 30ms);
  };
  {
    const std::jthread other(wait);
    wait();
  }
  EXPECT_LT(cpu_time(CLOCK_PROCESS_CPUTIME_ID) - process_before, 100ms);
}

TEST(EventLoopRunner, no_thread_polls_while_the_loop_is_idle) {
  EventLoopRunner runner;
  boost::asio::steady_timer timer(runner.loop());
  std::atomic<bool> has_rung = false;
  const auto before = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
  runner.post([&] {
    timer.expires_after(300ms);
    timer.async_wait([&](const boost::system::error_code&) {
      has_rung = true;
      has_rung.notify_one();
    });
  });
  has_rung.wait(false);
  EXPECT_LT(cpu_time(CLOCK_PROCESS_CPUTIME_ID) - before, 100ms);
}

TEST(EventLoopRunner, a_leader_that_polls_gets_its_reply_and_keeps_its_deadline) {
  EventLoopRunner runner;
  ASSERT_TRUE(runner.set_busy_poll(200us));
  for (int n = 0; n < 20; ++n) {
    WaitSlot slot;
    std::thread::id ran_on;
    signal_after(runner, 1ms, slot, ran_on);
    runner.wait(slot, std::nullopt);
    EXPECT_TRUE(slot.is_signalled());
  }
  WaitSlot slot;
  runner.wait(slot, Clock::now() + 2ms);
  EXPECT_FALSE(slot.is_signalled());
}

TEST(EventLoopRunner, a_parker_without_a_loop_cannot_poll) {
  EXPECT_FALSE(sys::thread_parker().set_busy_poll(50us));
}

/// Threads that wait, time out, post, flush and signal each other.
void stress(EventLoopRunner& runner) {
  constexpr int count = 8;
  constexpr int rounds = 500;
  std::uint64_t unprotected = 0;  // Only handlers change it, so one thread at a time does.
  std::atomic<bool> is_running = false;
  std::atomic<int> overlaps = 0;
  const auto work = [&] {
    overlaps += is_running.exchange(true) ? 1 : 0;
    ++unprotected;
    is_running = false;
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < count; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < rounds; ++round) {
          if ((thread + round) % 4 == 0) {
            runner.post(work);
            runner.flush();
            WaitSlot never;
            runner.wait(never, Clock::now() + 20us);
            EXPECT_FALSE(never.is_signalled());
          } else {
            run_on_loop(runner, work);
          }
        }
      });
    }
  }
  std::uint64_t total = 0;
  ASSERT_TRUE(test::eventually([&] {
    run_on_loop(runner, [&] { total = unprotected; });
    return total == std::uint64_t{count} * rounds;
  }));
  EXPECT_EQ(overlaps, 0);
}

TEST(EventLoopRunner, at_most_one_thread_runs_the_loop) {
  EventLoopRunner runner;
  stress(runner);
}

TEST(EventLoopRunner, at_most_one_thread_runs_the_loop_with_busy_polling) {
  EventLoopRunner runner;
  ASSERT_TRUE(runner.set_busy_poll(20us));
  stress(runner);
}

}  // namespace
}  // namespace tenure::net
