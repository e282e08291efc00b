#include "sys/steered_clock.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "sys/boot_clock.hpp"

namespace tenure::sys {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Two clocks that advance at different rates.
struct Clocks {
  ClockPair now{.steered = seconds(1000), .raw = seconds(400)};

  /// `percent`: how much faster the steered clock is.
  ClockPair pass(nanoseconds time, int percent) {
    now.raw += time;
    now.steered += time + time * percent / 100;
    return now;
  }
};

TEST(ShorterTime, a_clock_that_ntp_speeds_up_counts_no_faster_than_the_raw_one) {
  Clocks clocks;
  ShorterTime time(clocks.now);

  EXPECT_EQ(time.at(clocks.pass(seconds(100), 8)), seconds(1100));
}

TEST(ShorterTime, a_clock_that_ntp_slows_down_is_followed) {
  Clocks clocks;
  ShorterTime time(clocks.now);

  EXPECT_EQ(time.at(clocks.pass(seconds(100), -8)), seconds(1092));
}

// The steered clock catches up what it lost before: that must not count as time within the lease.
TEST(ShorterTime, a_slow_phase_does_not_make_up_for_a_later_fast_one) {
  Clocks clocks;
  ShorterTime time(clocks.now);
  auto before = nanoseconds{};
  for (int i = 0; i < 1000; ++i) {
    before = time.at(clocks.pass(milliseconds(1), -8));
  }
  auto after = before;
  for (int i = 0; i < 1000; ++i) {
    after = time.at(clocks.pass(milliseconds(1), 8));
  }

  EXPECT_LE(after - before, seconds(1) + milliseconds(1));
  EXPECT_GE(after - before, milliseconds(990));
}

TEST(ShorterTime, time_never_goes_back) {
  Clocks clocks;
  ShorterTime time(clocks.now);
  const auto later = time.at(clocks.pass(milliseconds(5), 0));

  clocks.now.raw -= milliseconds(3);

  EXPECT_GE(time.at(clocks.now), later);
}

TEST(BootClock, an_interval_is_as_long_as_on_the_raw_clock) {
  const auto before = BootClock::now();
  const auto raw = read_clock(CLOCK_MONOTONIC_RAW);
  while (read_clock(CLOCK_MONOTONIC_RAW) - raw < milliseconds(50)) {
    std::this_thread::yield();
  }

  // Less by the time that may pass between reading one clock and the other.
  EXPECT_GE(BootClock::now() - before, milliseconds(45));
}

/// Reads the clock until `end` and counts readings that are less than what any thread had read.
void watch_clock(std::atomic<nanoseconds::rep>& newest, std::atomic<int>& backwards, BootTime end) {
  for (auto now = BootClock::now(); now < end;) {
    auto known = newest.load();
    now = BootClock::now();
    const auto count = now.time_since_epoch().count();
    backwards += count < known ? 1 : 0;
    while (known < count && !newest.compare_exchange_weak(known, count)) {
    }
  }
}

TEST(BootClock, time_never_goes_back_for_any_thread) {
  std::atomic<nanoseconds::rep> newest = 0;
  std::atomic<int> backwards = 0;
  const auto end = BootClock::now() + milliseconds(200);
  {
    std::array<std::jthread, 4> threads;
    for (auto& thread : threads) {
      thread = std::jthread([&] { watch_clock(newest, backwards, end); });
    }
  }

  EXPECT_EQ(backwards, 0);
}

TEST(Deadline, a_deadline_is_checked_before_a_slowed_clock_could_miss_it) {
  const auto now = read_clock(CLOCK_BOOTTIME);
  const auto deadline = Deadline::at(BootClock::now() + seconds(100));

  const auto look = deadline.look_at();
  const auto ahead = seconds(look.tv_sec) + nanoseconds(look.tv_nsec) - now;

  EXPECT_LE(ahead, seconds(92));
  EXPECT_GE(ahead, seconds(80));
  EXPECT_GT(deadline.left(), seconds(90));
}

TEST(Deadline, a_deadline_has_passed_when_either_clock_reaches_it) {
  auto deadline = Deadline::at(BootClock::now() + seconds(100));
  deadline.due.raw = read_clock(CLOCK_MONOTONIC_RAW);

  EXPECT_LE(deadline.left(), nanoseconds::zero());
}

TEST(Deadline, a_deadline_in_the_past_is_checked_now) {
  const auto look = Deadline::at(BootTime{}).look_at();

  EXPECT_TRUE(look.tv_sec > 0 || look.tv_nsec > 0);
}

}  // namespace
}  // namespace tenure::sys
