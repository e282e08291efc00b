#include "net/backoff.hpp"

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "sys/jitter.hpp"

namespace tenure::net {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using sys::Jitter;

std::uint64_t zero() {
  return 0;
}

/// Counts up, so that a few thousand draws reach every delay of a millisecond.
std::uint64_t counter() {
  static std::uint64_t next = 0;
  return next++;
}

TEST(Jitter, equal_jitter_reaches_every_delay_from_half_to_the_whole) {
  std::set<microseconds> seen;
  for (int n = 0; n < 2000; ++n) {
    seen.insert(sys::with_jitter(1001us, Jitter::equal, counter));
  }
  EXPECT_EQ(*seen.begin(), 500us);
  EXPECT_EQ(*seen.rbegin(), 1001us);
  EXPECT_EQ(seen.size(), 502U);
}

TEST(Jitter, full_jitter_reaches_every_delay_from_zero_to_the_whole) {
  std::set<microseconds> seen;
  for (int n = 0; n < 2000; ++n) {
    seen.insert(sys::with_jitter(1000us, Jitter::full, counter));
  }
  EXPECT_EQ(*seen.begin(), 0us);
  EXPECT_EQ(*seen.rbegin(), 1000us);
  EXPECT_EQ(seen.size(), 1001U);
}

// A modulus of 0 would crash.
TEST(Jitter, a_delay_of_zero_stays_zero) {
  EXPECT_EQ(sys::with_jitter(0us, Jitter::equal), 0us);
  EXPECT_EQ(sys::with_jitter(0us, Jitter::full), 0us);
}

TEST(Backoff, delays_double_from_min_to_max) {
  Backoff backoff({.min = 20ms, .max = 100ms}, zero);
  std::vector<microseconds> delays;
  for (int n = 0; n < 5; ++n) {
    delays.push_back(backoff.next());
  }
  EXPECT_EQ(delays, (std::vector<microseconds>{10ms, 20ms, 40ms, 50ms, 50ms}));
}

TEST(Backoff, a_delay_is_between_half_its_bound_and_its_bound) {
  Backoff backoff({.min = 16ms, .max = 1000ms});
  for (microseconds bound = 16ms; bound <= 1s; bound *= 2) {
    const auto delay = backoff.next();
    EXPECT_GE(delay, bound / 2);
    EXPECT_LE(delay, bound);
  }
}

TEST(Backoff, a_delay_with_full_jitter_may_be_zero) {
  Backoff backoff({.min = 20ms, .max = 1000ms, .jitter = Jitter::full}, zero);
  EXPECT_EQ(backoff.next(), 0ms);
}

TEST(Backoff, no_delay_is_longer_than_max_even_if_min_is) {
  Backoff backoff({.min = 20ms, .max = 5ms});
  EXPECT_LE(backoff.next(), 5ms);
}

// 2^63 times 20 ms overflows.
TEST(Backoff, thousands_of_attempts_stay_at_max) {
  Backoff backoff({.min = 1us, .max = std::chrono::hours(24)}, zero);
  for (int n = 0; n < 10'000; ++n) {
    static_cast<void>(backoff.next());
  }
  EXPECT_EQ(backoff.next(), std::chrono::hours(12));
}

TEST(Backoff, a_reset_makes_the_next_delay_the_first) {
  Backoff backoff({.min = 20ms, .max = 1000ms}, zero);
  for (int n = 0; n < 5; ++n) {
    static_cast<void>(backoff.next());
  }

  backoff.reset();

  EXPECT_EQ(backoff.next(), 10ms);
}

TEST(Backoff, a_limit_shortens_one_delay_and_the_next_one_still_doubles) {
  Backoff backoff({.min = 20ms, .max = 1000ms}, zero);
  EXPECT_EQ(backoff.next(4ms), 2ms);
  EXPECT_EQ(backoff.next(), 20ms);
}

TEST(Backoff, equal_random_sources_yield_equal_delays) {
  Backoff one({.min = 1ms, .max = 8ms}, [] { return std::uint64_t{12345}; });
  Backoff other({.min = 1ms, .max = 8ms}, [] { return std::uint64_t{12345}; });
  for (int n = 0; n < 6; ++n) {
    EXPECT_EQ(one.next(), other.next());
  }
}

}  // namespace
}  // namespace tenure::net
