#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "backends/net/pump.hpp"
#include "support/wait_until.hpp"

namespace tenure::backends {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Something that a thread waits for as clients do. Shared, because whoever calls may still be at
/// it when the other one has seen what he waited for.
struct Moment {
  Nap nap;
  std::atomic<bool> is_here = false;

  void arrive(Pump& pump) {
    is_here = true;
    pump.wake(nap);
  }
  void wait(Pump& pump) {
    for (;;) {
      const auto calls = nap.calls();
      if (is_here) {
        return;
      }
      pump.sleep(nap, calls, std::nullopt);
    }
  }
};

TEST(Pumps, what_is_posted_is_done_though_nobody_waits) {
  Pump pump;
  std::atomic<int> done = 0;
  for (int i = 0; i < 100; ++i) {
    pump.post([&] { ++done; });
  }
  EXPECT_TRUE(test::eventually([&] { return done == 100; }));
}

TEST(Pumps, what_is_posted_is_done_in_its_order) {
  Pump pump;
  std::vector<int> order;
  const auto end = std::make_shared<Moment>();
  for (int i = 0; i < 1000; ++i) {
    pump.post([&, i] { order.push_back(i); });
  }
  pump.post([&pump, end] { end->arrive(pump); });
  end->wait(pump);
  ASSERT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Pumps, one_thread_at_a_time_runs_the_loop) {
  Pump pump;
  constexpr int threads = 8;
  constexpr int rounds = 500;
  int count = 0;  // Not protected by anything but the loop.
  {
    std::vector<std::jthread> running;
    for (int n = 0; n < threads; ++n) {
      running.emplace_back([&] {
        for (int i = 0; i < rounds; ++i) {
          const auto counted = std::make_shared<Moment>();
          pump.post([&, counted] {
            ++count;
            counted->arrive(pump);
          });
          counted->wait(pump);
        }
      });
    }
  }
  EXPECT_EQ(count, threads * rounds);
}

TEST(Pumps, a_thread_that_waits_runs_the_loop_itself) {
  Pump pump;
  const auto here = std::this_thread::get_id();
  // Our own thread of the pump may do the first ones; it gives way.
  const auto runs_here = [&] {
    const auto rung = std::make_shared<Moment>();
    std::atomic<std::thread::id> who;
    const auto timer = std::make_shared<boost::asio::steady_timer>(pump.loop());
    pump.post([&, rung, timer] {
      timer->expires_after(1ms);
      timer->async_wait([&, rung](const boost::system::error_code&) {
        who = std::this_thread::get_id();
        rung->arrive(pump);
      });
    });
    rung->wait(pump);
    return who.load() == here;
  };
  EXPECT_TRUE(test::eventually(runs_here));
}

TEST(Pumps, a_deadline_ends_the_sleep_of_the_one_who_runs_and_of_one_who_does_not) {
  Pump pump;
  Nap one;
  Nap two;
  const auto deadline = Clock::now() + 5ms;
  const std::jthread other([&] { pump.sleep(one, one.calls(), deadline); });
  while (Clock::now() < deadline) {
    pump.sleep(two, two.calls(), deadline);
  }
  EXPECT_EQ(two.calls(), 0U);
}

// Who runs the loop for others must not forget the time over it.
TEST(Pumps, a_deadline_ends_the_sleep_of_one_who_always_has_something_to_run) {
  Pump pump;
  boost::asio::steady_timer timer(pump.loop());
  std::function<void(boost::system::error_code)> again = [&](boost::system::error_code cancelled) {
    if (!cancelled) {
      timer.expires_after(20us);
      timer.async_wait(again);
    }
  };
  pump.post([&] { again({}); });
  Nap nap;
  const auto deadline = Clock::now() + 5ms;

  while (Clock::now() < deadline) {
    pump.sleep(nap, nap.calls(), deadline);
  }

  EXPECT_EQ(nap.calls(), 0U);
  pump.stop();
}

TEST(Pumps, a_call_from_another_thread_ends_the_sleep_of_whoever_runs) {
  Pump pump;
  for (int i = 0; i < 200; ++i) {
    const auto called = std::make_shared<Moment>();
    const std::jthread other([&] { called->arrive(pump); });
    called->wait(pump);
  }
}

TEST(Pumps, when_the_runner_goes_another_sleeper_takes_its_place) {
  Pump pump;
  const auto first = std::make_shared<Moment>();
  const auto second = std::make_shared<Moment>();
  std::jthread one([&] { first->wait(pump); });
  std::jthread two([&] { second->wait(pump); });
  first->arrive(pump);
  one.join();
  pump.post([&pump, second] { second->arrive(pump); });
  two.join();
}

/// A thread that sleeps for want of work until it is told to go, as the notifier of a client does.
class Idler {
 public:
  explicit Idler(Pump& pump) : pump_(pump) {}
  ~Idler() {
    is_over_ = true;
    pump_.wake(nap_);
  }
  [[nodiscard]] std::thread::id id() const { return thread_.get_id(); }

 private:
  void run() {
    for (;;) {
      const auto calls = nap_.calls();
      if (is_over_) {
        return;
      }
      pump_.sleep(nap_, calls, std::nullopt, SleepFor::work);
    }
  }

  Pump& pump_;
  Nap nap_;
  std::atomic<bool> is_over_ = false;
  std::jthread thread_{[this] { run(); }};
};

TEST(Pumps, one_that_sleeps_for_work_runs_the_loop_when_nobody_waits) {
  Pump pump;
  const Idler idler(pump);
  EXPECT_TRUE(test::eventually([&] {
    const auto rung = std::make_shared<std::atomic<bool>>(false);
    const auto who = std::make_shared<std::atomic<std::thread::id>>();
    const auto timer = std::make_shared<boost::asio::steady_timer>(pump.loop());
    pump.post([=] {
      timer->expires_after(5ms);
      timer->async_wait([=](const boost::system::error_code&) {
        *who = std::this_thread::get_id();
        *rung = true;
      });
    });
    return test::eventually([&] { return rung->load(); }) && who->load() == idler.id();
  }));
}

// What it posts between two sleeps leaves together, but a long burst must not wait for its end.
TEST(Pumps, one_that_sleeps_for_work_can_hurry_what_it_posted) {
  Pump pump;
  std::atomic<bool> is_done = false;
  std::jthread idler([&] {
    Nap nap;
    pump.sleep(nap, nap.calls(), Clock::now() + 1ms, SleepFor::work);
    pump.post([&] { is_done = true; });
    while (!is_done) {
      pump.hurry();
    }
  });
  idler.join();
  EXPECT_TRUE(is_done);
}

TEST(Pumps, one_that_sleeps_for_work_gives_way_to_those_who_wait) {
  Pump pump;
  const Idler idler(pump);
  int count = 0;  // Not protected by anything but the loop.
  {
    std::vector<std::jthread> running;
    for (int n = 0; n < 4; ++n) {
      running.emplace_back([&] {
        for (int i = 0; i < 300; ++i) {
          const auto counted = std::make_shared<Moment>();
          pump.post([&, counted] {
            ++count;
            counted->arrive(pump);
          });
          counted->wait(pump);
        }
      });
    }
  }
  EXPECT_EQ(count, 1200);
}

/// Jobs without end, as those of many threads that post all the time.
class Flood {
 public:
  explicit Flood(Pump& pump) : pump_(pump) {}
  void begin() {
    pump_.post([this] { go_on(); });
  }
  void end() { is_over_ = true; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  void go_on() {
    ++count_;
    if (!is_over_) {
      pump_.hurry();  // Whoever is about to go is asked to stay.
      boost::asio::post(pump_.loop(), [this] { go_on(); });
    }
  }

  Pump& pump_;
  std::atomic<bool> is_over_ = false;
  std::atomic<std::uint64_t> count_ = 0;
};

// One who runs the loop for all of them would have to wait for a core among all the others.
TEST(Pumps, a_crowd_takes_turns_to_look_for_answers) {
  constexpr int threads = 32;
  Pump pump;
  std::atomic<bool> is_over = false;
  std::mutex mutex;
  std::set<std::thread::id> crowd;
  std::atomic<int> ended = 0;
  // On the loop, as this:
  std::vector<std::shared_ptr<Moment>> asleep;
  std::set<std::thread::id> found;  // Who found that an answer is there.
  std::atomic<std::size_t> found_by = 0;
  boost::asio::steady_timer answer(pump.loop());
  std::function<void()> answer_again = [&] {
    answer.expires_after(50us);
    answer.async_wait([&](const boost::system::error_code& error) {
      if (error) {
        return;
      }
      for (const auto& one : std::exchange(asleep, {})) {
        one->arrive(pump);
      }
      {
        const std::lock_guard lock(mutex);
        if (crowd.contains(std::this_thread::get_id())) {
          found.insert(std::this_thread::get_id());
          found_by = found.size();
        }
      }
      answer_again();
    });
  };
  {
    std::vector<std::jthread> running;
    for (int n = 0; n < threads; ++n) {
      running.emplace_back([&] {
        {
          const std::lock_guard lock(mutex);
          crowd.insert(std::this_thread::get_id());
        }
        while (!is_over) {
          const auto moment = std::make_shared<Moment>();
          pump.post([&, moment] { asleep.push_back(moment); });
          moment->wait(pump);
        }
        ++ended;
      });
    }
    pump.post([&] { answer_again(); });

    EXPECT_TRUE(test::eventually([&] { return found_by > threads / 2; }));

    is_over = true;
    EXPECT_TRUE(test::eventually([&] { return ended == threads; })) << "nobody is forgotten";
  }
  pump.post([&] { answer.cancel(); });
  pump.stop();
}

// Whoever of a crowd would run the loop next would have to wait for a core among all the others.
TEST(Pumps, where_nobody_stays_awake_a_crowd_is_served_by_a_thread_that_is_not_of_it) {
  constexpr int threads = 32;
  Pump pump(0us);
  std::atomic<bool> is_over = false;
  std::atomic<int> served = 0;  // By none of them.
  std::mutex mutex;
  std::vector<std::thread::id> crowd;
  std::atomic<int> ended = 0;
  std::vector<std::shared_ptr<Moment>> asleep;  // On the loop, as this:
  const auto wake_all = [&] {
    for (const auto& one : std::exchange(asleep, {})) {
      one->arrive(pump);
    }
  };
  {
    std::vector<std::jthread> running;
    for (int n = 0; n < threads; ++n) {
      running.emplace_back([&] {
        {
          const std::lock_guard lock(mutex);
          crowd.push_back(std::this_thread::get_id());
        }
        while (!is_over) {
          const auto moment = std::make_shared<Moment>();
          pump.post([&, moment] {
            asleep.push_back(moment);
            if (asleep.size() < threads / 2) {
              return;
            }
            wake_all();
            const std::lock_guard lock(mutex);
            served += std::ranges::find(crowd, std::this_thread::get_id()) == crowd.end() ? 1 : 0;
          });
          moment->wait(pump);
        }
        ++ended;
      });
    }

    EXPECT_TRUE(test::eventually([&] { return served > 100; }));

    is_over = true;
    // Also those who are too few to be answered together.
    EXPECT_TRUE(test::eventually([&] {
      pump.post([&] { wake_all(); });
      return ended == threads;
    }));
  }
  pump.stop();
}

// A watch() that only wanted to post its request did the work of all others, however long there was
// some.
TEST(Pumps, who_posts_does_the_jobs_of_others_for_a_moment_only) {
  Pump pump;
  Flood flood(pump);
  // Then the pump's own thread gives way for a moment, and who posts has to do it.
  Nap nap;
  pump.sleep(nap, nap.calls(), Clock::now() + 1ms);

  flood.begin();
  const auto before = flood.count();

  EXPECT_TRUE(test::eventually([&] { return flood.count() > before + 10'000; }))
      << "somebody else goes on";
  flood.end();
  pump.stop();
}

TEST(Pumps, a_deadline_ends_the_sleep_of_one_whom_the_others_keep_busy) {
  Pump pump;
  Flood flood(pump);
  flood.begin();
  for (int n = 0; n < 10; ++n) {
    Nap nap;
    const auto deadline = Clock::now() + 1ms;
    while (Clock::now() < deadline) {
      pump.sleep(nap, nap.calls(), deadline);
    }
    EXPECT_EQ(nap.calls(), 0U);
  }

  const auto before = flood.count();
  EXPECT_TRUE(test::eventually([&] { return flood.count() > before + 10'000; }));
  flood.end();
  pump.stop();
}

TEST(Pumps, a_job_may_post_another_one) {
  Pump pump;
  std::atomic<int> left = 1000;
  std::function<void()> again = [&] {
    if (--left > 0) {
      pump.post(again);
    }
  };
  pump.post(again);
  EXPECT_TRUE(test::eventually([&] { return left == 0; }));
}

}  // namespace
}  // namespace tenure::backends
