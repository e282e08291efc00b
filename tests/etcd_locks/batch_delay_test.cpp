#include "backends/etcd/batch_delay.hpp"

#include <gtest/gtest.h>

namespace tenure::backends::etcd {
namespace {

using namespace std::chrono_literals;
using Time = BatchDelay::Clock::time_point;

constexpr auto way = 400us;  // and so 100 are waited for at most

TEST(EtcdBatchDelay, the_first_batch_is_not_delayed) {
  BatchDelay delay;
  EXPECT_EQ(delay.delay_until(1, Time{}), std::nullopt);
}

TEST(EtcdBatchDelay, a_single_request_is_not_delayed) {
  BatchDelay delay;
  delay.on_completed(1, 0, way, Time{});
  EXPECT_EQ(delay.delay_until(1, Time{}), std::nullopt);
}

TEST(EtcdBatchDelay, requests_completed_together_are_batched_again) {
  BatchDelay delay;
  delay.on_completed(3, 1, way, Time{});
  EXPECT_EQ(delay.delay_until(2, Time{10us}), Time{100us});
  EXPECT_EQ(delay.delay_until(3, Time{20us}), Time{100us});
  EXPECT_EQ(delay.delay_until(4, Time{30us}), std::nullopt);
}

TEST(EtcdBatchDelay, the_delay_ends_after_a_quarter_of_the_round_trip) {
  BatchDelay delay;
  delay.on_completed(3, 0, way, Time{});
  EXPECT_EQ(delay.delay_until(2, Time{99us}), Time{100us});
  EXPECT_EQ(delay.delay_until(2, Time{100us}), std::nullopt);
  EXPECT_EQ(delay.delay_until(1, Time{100us}), std::nullopt) << "they leave once";
}

// Threads that do something else in between must not be slower by this.
TEST(EtcdBatchDelay, fruitless_delays_become_rare) {
  BatchDelay delay;
  int waited = 0;
  for (int n = 0; n < 10'000; ++n) {
    delay.on_completed(3, 0, way, Time{});
    waited += delay.delay_until(1, Time{}).has_value() ? 1 : 0;
    EXPECT_EQ(delay.delay_until(1, Time{100us}), std::nullopt);
  }
  EXPECT_LT(waited, 10'000 / 256 + 20);
}

}  // namespace
}  // namespace tenure::backends::etcd
