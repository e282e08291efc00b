#include "sys/spin_wait.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace tenure::sys {
namespace {

using namespace std::chrono_literals;

TEST(SpinWait, a_condition_that_is_true_is_evaluated_once) {
  int polls = 0;
  EXPECT_TRUE(poll_until([&] { return ++polls == 1; }, 1min));
  EXPECT_EQ(polls, 1);
}

TEST(SpinWait, a_condition_that_becomes_true_ends_the_wait) {
  int polls = 0;
  EXPECT_TRUE(poll_until([&] { return ++polls == 1'000; }, 1min));
  EXPECT_EQ(polls, 1'000);
}

TEST(SpinWait, a_condition_that_stays_false_is_polled_until_the_limit) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(poll_until([] { return false; }, 2ms));
  EXPECT_GE(std::chrono::steady_clock::now() - began, 2ms);
}

// The default of ConnectOptions::busy_poll: not even one poll, which is a system call.
TEST(SpinWait, a_limit_of_zero_polls_nothing) {
  int polls = 0;
  EXPECT_FALSE(poll_until([&] { return ++polls > 0; }, 0us));
  EXPECT_EQ(polls, 0);
}

}  // namespace
}  // namespace tenure::sys
