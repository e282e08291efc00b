#include <algorithm>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/fence.hpp>

#include "support/refusals.hpp"

namespace tenure::test {
namespace {

using Reason = FenceError::Reason;

constexpr FencingToken ann{100};
constexpr FencingToken bob{101};

// 002.053
TEST(Fence, starts_without_a_token) {
  const Fence fence;

  EXPECT_EQ(fence.highest("accounts/42"), FencingToken{0});
}

// 002.056
TEST(Fence, admits_and_records_a_newer_token) {
  Fence fence;

  EXPECT_TRUE(fence.admit("accounts/42", ann));
  EXPECT_TRUE(fence.admit("accounts/42", bob));
  EXPECT_EQ(fence.highest("accounts/42"), bob);
}

// 002.054: the error contains both tokens, as fields and as text.
TEST(Fence, rejects_an_older_token_and_reports_the_highest) {
  Fence fence;
  ASSERT_TRUE(fence.admit("accounts/42", bob));

  const auto admitted = fence.admit("accounts/42", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::stale);
  EXPECT_EQ(admitted.error().token, ann);
  EXPECT_EQ(admitted.error().highest, bob);
  EXPECT_EQ(to_string(admitted.error()),
            R"(lease_lost: token 100 is stale: 101 was admitted for "accounts/42")");
  EXPECT_EQ(fence.highest("accounts/42"), bob);
}

// 002.055 as corrected by 002-B11: a holder may write more than once.
TEST(Fence, admits_the_same_token_again) {
  Fence fence;
  ASSERT_TRUE(fence.admit("accounts/42", ann));

  EXPECT_TRUE(fence.admit("accounts/42", ann));
}

// 002.055
TEST(Fence, admit_once_rejects_a_repeated_token) {
  Fence fence;
  ASSERT_TRUE(fence.admit_once("accounts/42", ann));

  const auto admitted = fence.admit_once("accounts/42", ann);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::reused);
  EXPECT_EQ(admitted.error().highest, ann);
  EXPECT_EQ(to_string(admitted.error()),
            R"(invalid_argument: token 100 was admitted before for "accounts/42")");
}

TEST(Fence, admit_once_rejects_an_older_token_as_stale) {
  Fence fence;
  ASSERT_TRUE(fence.admit_once("accounts/42", bob));

  EXPECT_EQ(reason_of(fence.admit_once("accounts/42", ann)), Reason::stale);
  EXPECT_TRUE(fence.admit_once("accounts/42", FencingToken{102}));
}

// 002.053
TEST(Fence, resources_are_independent) {
  Fence fence;
  ASSERT_TRUE(fence.admit("accounts/42", bob));

  EXPECT_TRUE(fence.admit("accounts/4", ann));
  EXPECT_TRUE(fence.admit(std::string_view("accounts/42\0", 12), ann));
  EXPECT_EQ(fence.highest("accounts/42"), bob);
}

TEST(Fence, a_rejection_does_not_add_a_resource) {
  Fence fence;

  EXPECT_FALSE(fence.admit("accounts/42", FencingToken{0}));
  EXPECT_EQ(fence.highest("accounts/42"), FencingToken{0});
}

TEST(Fence, accepts_names_up_to_1024_bytes_and_tokens_up_to_63_bits) {
  Fence fence;
  const std::string longest(1024, 'x');

  EXPECT_TRUE(fence.admit(longest, fencing_token_max));
  for (const auto& name : {std::string(), longest + 'x'}) {
    const auto admitted = fence.admit(name, ann);
    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().reason, Reason::not_checked);
    EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
  }
  for (const auto token : {FencingToken{0}, FencingToken{fencing_token_max.get() + 1}}) {
    const auto admitted = fence.admit("a", token);
    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().reason, Reason::not_checked);
    EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
    EXPECT_EQ(admitted.error().token, token);
  }
}

TEST(Fence, rejects_resources_beyond_the_limit_and_forgets_none) {
  Fence fence({.resources_max = 2});
  ASSERT_TRUE(fence.admit("a", bob));
  ASSERT_TRUE(fence.admit("b", bob));

  const auto admitted = fence.admit("c", bob);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().error, Errc::resource_exhausted);
  EXPECT_FALSE(fence.admit("a", ann));
  EXPECT_TRUE(fence.admit("b", FencingToken{102}));
}

TEST(Fence, a_name_that_would_break_a_log_line_is_escaped) {
  Fence fence;
  ASSERT_TRUE(fence.admit("a\n\"b", bob));

  EXPECT_EQ(to_string(fence.admit("a\n\"b", ann).error()),
            R"(lease_lost: token 100 is stale: 101 was admitted for "a\n\"b")");
}

// 002.056, 002-B12: without the mutex, an older write could follow a newer one.
TEST(Fence, under_the_mutex_of_the_data_no_older_write_follows_a_newer_one) {
  std::mutex mutex;
  Fence fence;
  std::vector<FencingToken> written;
  std::vector<std::jthread> writers;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    writers.emplace_back([&, seed] {
      std::mt19937_64 chance(seed);
      for (std::uint64_t round = 1; round <= 2000; ++round) {
        const FencingToken token{round + chance() % 50};
        const std::lock_guard guard(mutex);
        if (fence.admit("log", token)) {
          written.push_back(token);
        }
      }
    });
  }
  writers.clear();

  EXPECT_TRUE(std::ranges::is_sorted(written));
  EXPECT_EQ(written.back(), fence.highest("log"));
}

}  // namespace
}  // namespace tenure::test
