#include "sys/vigil.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using sys::Vigil;

/// How often it looked until it gave up.
int looks_in_vain(Vigil& vigil) {
  int looks = 0;
  EXPECT_FALSE(vigil.keep([&] {
    ++looks;
    return false;
  }));
  return looks;
}

bool has_two_cores() {
  return std::thread::hardware_concurrency() > 1;
}

TEST(Vigils, one_that_finds_something_looks_no_further) {
  Vigil vigil(1min);
  int looks = 0;

  const bool is_found = vigil.keep([&] { return ++looks == 1; });

  EXPECT_EQ(is_found, has_two_cores());
  EXPECT_EQ(looks, has_two_cores() ? 1 : 0);
}

TEST(Vigils, one_of_no_length_never_looks) {
  Vigil vigil(0us);
  for (int n = 0; n < 1000; ++n) {
    EXPECT_EQ(looks_in_vain(vigil), 0);
  }
}

// The kernel's threads that write for the other end want a core, too, for a moment.
TEST(Vigils, a_short_turn_of_another_does_not_end_one) {
  const auto survives = [] {
    Vigil vigil(1min);
    int looks = 0;
    return vigil.keep([&] {
      for (const auto end = std::chrono::steady_clock::now() + 30us;
           std::chrono::steady_clock::now() < end;) {
      }
      return ++looks == 3;
    });
  };
  int survived = 0;
  for (int n = 0; n < 1000 && survived == 0; ++n) {  // On a busy machine turns are long.
    survived += survives() ? 1 : 0;
  }
  EXPECT_EQ(survived, has_two_cores() ? 1 : 0);
}

// An idle server must not burn its core: whatever wakes it, it seldom stays awake in vain.
TEST(Vigils, in_vain_they_become_rare) {
  Vigil vigil(1us);
  int kept = 0;
  for (int n = 0; n < 10'000; ++n) {
    kept += looks_in_vain(vigil) > 0 ? 1 : 0;
  }
  EXPECT_LT(kept, 10'000 / 256 + 20);
}

TEST(Vigils, they_are_kept_again_when_they_pay_again) {
  Vigil vigil(1ms);
  for (int n = 0; n < 10'000; ++n) {
    static_cast<void>(looks_in_vain(vigil));
  }
  // Who looks in the first place always finds something now.
  int found = 0;
  for (int n = 0; n < 10'000; ++n) {
    found += vigil.keep([] { return true; }) ? 1 : 0;
  }
  if (has_two_cores()) {
    EXPECT_GT(found, 5'000);
  } else {
    EXPECT_EQ(found, 0) << "nobody stays awake on a single core";
  }
}

}  // namespace
}  // namespace tenure::test
