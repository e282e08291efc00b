#include "backends/etcd/batch_delay.hpp"

#include <gtest/gtest.h>

namespace tenure::backends::etcd {
namespace {

using namespace std::chrono_literals;
using Time = BatchDelay::Clock::time_point;

constexpr auto way = 400us;  // and so 100 are waited for at most

TEST(EtcdMuster, nobody_waits_before_anything_was_answered) {
  BatchDelay delay;
  EXPECT_EQ(delay.delay_until(1, Time{}), std::nullopt);
}

TEST(EtcdMuster, one_alone_waits_for_nobody) {
  BatchDelay delay;
  delay.on_completed(1, 0, way, Time{});
  EXPECT_EQ(delay.delay_until(1, Time{}), std::nullopt);
}

TEST(EtcdMuster, those_who_were_answered_together_leave_together) {
  BatchDelay delay;
  delay.on_completed(3, 1, way, Time{});
  EXPECT_EQ(delay.delay_until(2, Time{10us}), Time{100us});
  EXPECT_EQ(delay.delay_until(3, Time{20us}), Time{100us});
  EXPECT_EQ(delay.delay_until(4, Time{30us}), std::nullopt);
}

TEST(EtcdMuster, who_does_not_come_within_a_quarter_of_the_way_is_left_behind) {
  BatchDelay delay;
  delay.on_completed(3, 0, way, Time{});
  EXPECT_EQ(delay.delay_until(2, Time{99us}), Time{100us});
  EXPECT_EQ(delay.delay_until(2, Time{100us}), std::nullopt);
  EXPECT_EQ(delay.delay_until(1, Time{100us}), std::nullopt) << "they leave once";
}

// Threads that do something else in between must not be slower by this.
TEST(EtcdMuster, where_they_do_not_come_back_it_becomes_rare) {
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
