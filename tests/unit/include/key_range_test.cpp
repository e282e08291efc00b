#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <tenure/key_range.hpp>

namespace tenure::test {
namespace {

constexpr std::uint64_t last_key = std::numeric_limits<std::uint64_t>::max();

// 004.064
TEST(KeyRanges, both_ends_are_inside) {
  const KeyRange range = KeyRange::of(100, 200).value();

  EXPECT_EQ(range.start(), 100U);
  EXPECT_EQ(range.end(), 200U);
  EXPECT_TRUE(range.contains(100) && range.contains(150) && range.contains(200));
  EXPECT_FALSE(range.contains(99) || range.contains(201));
}

// 004.064
TEST(KeyRanges, a_range_that_ends_before_it_starts_cannot_be_made) {
  EXPECT_EQ(KeyRange::of(5, 4), std::nullopt);
  EXPECT_NE(KeyRange::of(5, 5), std::nullopt);
}

// 004.065
TEST(KeyRanges, a_point_contains_its_key_and_no_other) {
  const KeyRange point = KeyRange::point(42);

  EXPECT_EQ(point.start(), 42U);
  EXPECT_EQ(point.end(), 42U);
  EXPECT_FALSE(point.contains(41) || point.contains(43));
}

// 004.067
TEST(KeyRanges, ranges_that_share_a_bound_overlap_and_neighbours_do_not) {
  const KeyRange range = KeyRange::of(100, 200).value();

  EXPECT_TRUE(range.overlaps(KeyRange::of(200, 300).value()));
  EXPECT_FALSE(range.overlaps(KeyRange::of(201, 300).value()));
}

// 004.069
TEST(KeyRanges, a_range_overlaps_what_it_contains) {
  const KeyRange outer = KeyRange::of(1, 100).value();
  const KeyRange inner = KeyRange::of(40, 50).value();

  EXPECT_TRUE(outer.contains(inner) && !inner.contains(outer));
  EXPECT_TRUE(outer.overlaps(inner) && inner.overlaps(outer));
}

// 004.068: half-open ends kept as such would wrap to zero here.
TEST(KeyRanges, the_largest_key_needs_no_special_case) {
  const KeyRange top = KeyRange::point(last_key);

  EXPECT_TRUE(top.contains(last_key));
  EXPECT_TRUE(KeyRange::all().overlaps(top));
  EXPECT_TRUE(KeyRange::at_least(last_key) == top);
  EXPECT_FALSE(KeyRange::of(0, last_key - 1)->overlaps(top));
  EXPECT_EQ(KeyRange::open(last_key, last_key), std::nullopt);
  EXPECT_EQ(KeyRange::open(last_key - 1, last_key), std::nullopt);
}

// 004-B20
TEST(KeyRanges, unbounded_ends_reach_the_first_and_the_last_key) {
  EXPECT_EQ(KeyRange::at_most(9), KeyRange::of(0, 9));
  EXPECT_EQ(KeyRange::at_least(9), KeyRange::of(9, last_key));
  EXPECT_EQ(KeyRange::all(), KeyRange::of(0, last_key));
}

// 004.063, 004.064, 004.066
TEST(KeyRanges, all_queries_are_constant_expressions) {
  static_assert(KeyRange::of(1, 2)->contains(2));
  static_assert(!KeyRange::of(2, 1));
  static_assert(KeyRange::point(3).overlaps(KeyRange::all()));
  static_assert(KeyRange::half_open(1, 3) == KeyRange::of(1, 2));
  static_assert(KeyRange::point(1) < KeyRange::point(2));
  SUCCEED();
}

/// A key out of few, so that ends meet; at the low or the high end of the domain.
rc::Gen<std::uint64_t> some_key() {
  return rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 12),
                        rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 12),
                                     [](std::uint64_t below) { return last_key - below; }));
}

rc::Gen<KeyRange> some_range() {
  return rc::gen::map(rc::gen::pair(some_key(), some_key()), [](const auto& ends) {
    return KeyRange::of(std::min(ends.first, ends.second), std::max(ends.first, ends.second))
        .value();
  });
}

/// Every key that some_key() can make: deciding by them is deciding for all.
std::vector<std::uint64_t> every_key() {
  std::vector<std::uint64_t> all;
  for (std::uint64_t key = 0; key < 12; ++key) {
    all.push_back(key);
    all.push_back(last_key - key);
  }
  return all;
}

// 004.066
RC_GTEST_PROP(KeyRangeLaws, ranges_overlap_exactly_if_they_share_a_key, ()) {
  const KeyRange a = *some_range();
  const KeyRange b = *some_range();

  bool share = false;
  for (const std::uint64_t key : every_key()) {
    share = share || (a.contains(key) && b.contains(key));
  }

  RC_ASSERT(a.overlaps(b) == share);
}

// 004.066
RC_GTEST_PROP(KeyRangeLaws, overlapping_is_symmetric, ()) {
  const KeyRange a = *some_range();
  const KeyRange b = *some_range();

  RC_ASSERT(a.overlaps(b) == b.overlaps(a));
}

// 004.066, 004.069
RC_GTEST_PROP(KeyRangeLaws, a_range_contains_another_exactly_if_it_has_all_its_keys, ()) {
  const KeyRange a = *some_range();
  const KeyRange b = *some_range();

  bool has_all = true;
  for (const std::uint64_t key : every_key()) {
    has_all = has_all && (!b.contains(key) || a.contains(key));
  }

  RC_ASSERT(a.contains(b) == has_all);
}

// 004-B20
RC_GTEST_PROP(KeyRangeLaws, open_ends_leave_out_their_key, ()) {
  const std::uint64_t start = *some_key();
  const std::uint64_t end = *some_key();
  const auto half_open = KeyRange::half_open(start, end);
  const auto open = KeyRange::open(start, end);

  for (const std::uint64_t key : every_key()) {
    RC_ASSERT((half_open && half_open->contains(key)) == (start <= key && key < end));
    RC_ASSERT((open && open->contains(key)) == (start < key && key < end));
  }
}

}  // namespace
}  // namespace tenure::test
