#include "sys/wager.hpp"

#include <gtest/gtest.h>

namespace tenure::test {
namespace {

using sys::Wager;

/// How often it is on of so many times, if each is lost.
int tried_in_vain(Wager& wager, int times) {
  int tried = 0;
  for (int n = 0; n < times; ++n) {
    if (wager.is_on()) {
      ++tried;
      wager.lost();
    }
  }
  return tried;
}

TEST(Wagers, one_that_pays_is_always_on) {
  Wager wager;
  for (int n = 0; n < 1000; ++n) {
    EXPECT_TRUE(wager.is_on());
    wager.won();
  }
}

TEST(Wagers, one_that_is_lost_becomes_rare_and_never_ends) {
  Wager wager;
  EXPECT_EQ(tried_in_vain(wager, 3), 3) << "a few are free";
  EXPECT_LT(tried_in_vain(wager, 10'000), 10'000 / 256 + 20);
  EXPECT_GT(tried_in_vain(wager, 10'000), 10'000 / 258 - 2);
}

TEST(Wagers, one_that_pays_again_is_on_again) {
  Wager wager;
  static_cast<void>(tried_in_vain(wager, 10'000));
  int on = 0;
  for (int n = 0; n < 2'000; ++n) {
    if (wager.is_on()) {
      ++on;
      wager.won();
    }
  }
  EXPECT_GT(on, 1'500);
}

TEST(Wagers, what_is_worse_counts_more) {
  Wager mild;
  Wager harsh;
  for (int n = 0; n < 3; ++n) {
    mild.lost();
    harsh.lost(2);
  }
  EXPECT_LT(tried_in_vain(harsh, 100), tried_in_vain(mild, 100));
}

}  // namespace
}  // namespace tenure::test
