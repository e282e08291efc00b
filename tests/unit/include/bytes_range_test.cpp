#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <tenure/key_range.hpp>

namespace tenure::test {
namespace {

using namespace std::string_view_literals;

// 004-B20
TEST(BytesRanges, both_ends_are_inside) {
  const BytesRange range = BytesRange::of("b", "d").value();

  EXPECT_TRUE(range.contains("b") && range.contains("cat") && range.contains("d"));
  EXPECT_FALSE(range.contains("a") || range.contains("d\0"sv) || range.contains("da"));
}

// 004-B20
TEST(BytesRanges, an_empty_range_cannot_be_made) {
  EXPECT_EQ(BytesRange::of("b", "a"), std::nullopt);
  EXPECT_EQ(BytesRange::half_open("a", "a"), std::nullopt);
  EXPECT_EQ(BytesRange::open("a", "a\0"sv), std::nullopt);
  EXPECT_NE(BytesRange::of("a", "a"), std::nullopt);
  EXPECT_NE(BytesRange::of("", ""), std::nullopt);
}

// 004-B20
TEST(BytesRanges, a_prefix_contains_every_key_that_begins_with_it) {
  const BytesRange users = BytesRange::prefix("user/");

  EXPECT_TRUE(users.contains("user/") && users.contains("user/42") && users.contains("user/\xFF"));
  EXPECT_FALSE(users.contains("user") || users.contains("user0") || users.contains("v"));
}

// 004-B20: adding one to 0xFF would wrap and make the range empty.
TEST(BytesRanges, a_prefix_that_ends_in_the_largest_byte_has_an_end) {
  const BytesRange range = BytesRange::prefix("a\xFF\xFF");

  EXPECT_TRUE(range.contains("a\xFF\xFFz"));
  EXPECT_FALSE(range.contains("b") || range.contains("a\xFF"));
}

// 004-B20
TEST(BytesRanges, a_prefix_of_largest_bytes_only_has_no_end) {
  const BytesRange range = BytesRange::prefix("\xFF\xFF");

  EXPECT_EQ(range.end(), std::nullopt);
  EXPECT_TRUE(range.contains("\xFF\xFF\xFF"));
  EXPECT_FALSE(range.contains("\xFF"));
}

// 004-B20
TEST(BytesRanges, the_empty_prefix_contains_every_key) {
  EXPECT_EQ(BytesRange::prefix(""), BytesRange::all());
  EXPECT_TRUE(BytesRange::all().contains(""));
  EXPECT_TRUE(BytesRange::all().contains("\xFF\xFF"));
}

// Signed comparison of char would put 0x80 before 0x7F.
TEST(BytesRanges, bytes_are_compared_unsigned) {
  EXPECT_NE(BytesRange::half_open("\x7F", "\x80"), std::nullopt);
  EXPECT_TRUE(BytesRange::at_least("\x7F").contains("\x80"));
}

/// Every string of up to three bytes out of 0x00, 'a' and 0xFF.
const std::vector<std::string>& every_string() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> strings{""};
    for (std::size_t from = 0; from < strings.size(); ++from) {
      if (strings[from].size() == 3) {
        break;
      }
      for (const char byte : {'\0', 'a', '\xFF'}) {
        strings.push_back(strings[from] + byte);
      }
    }
    return strings;
  }();
  return all;
}

/// A string of up to two bytes: whatever such ranges share, they share a string of every_string().
rc::Gen<std::string> some_string() {
  return rc::gen::suchThat(rc::gen::elementOf(every_string()),
                           [](const std::string& text) { return text.size() <= 2; });
}

rc::Gen<BytesRange> some_bytes_range() {
  const auto make = [](const std::string& one, const std::string& other, int kind) {
    switch (kind) {
      case 0: return BytesRange::of(std::min(one, other), std::max(one, other)).value();
      case 1: return BytesRange::prefix(one);
      case 2: return BytesRange::at_least(one);
      case 3: return BytesRange::at_most(one);
      case 4: return BytesRange::all();
      default: return BytesRange::point(one);
    }
  };
  return rc::gen::map(rc::gen::tuple(some_string(), some_string(), rc::gen::inRange(0, 6)),
                      [make](const auto& drawn) { return std::apply(make, drawn); });
}

// 004-B20
RC_GTEST_PROP(BytesRangeLaws, ranges_overlap_exactly_if_they_share_a_string, ()) {
  const BytesRange a = *some_bytes_range();
  const BytesRange b = *some_bytes_range();

  const bool share = std::ranges::any_of(every_string(), [&](const std::string& text) {
    return a.contains(text) && b.contains(text);
  });

  RC_ASSERT(a.overlaps(b) == share);
  RC_ASSERT(b.overlaps(a) == share);
}

// 004-B20
RC_GTEST_PROP(BytesRangeLaws, a_range_contains_all_keys_of_a_range_it_contains, ()) {
  const BytesRange a = *some_bytes_range();
  const BytesRange b = *some_bytes_range();
  RC_PRE(a.contains(b));

  for (const std::string& text : every_string()) {
    RC_ASSERT(!b.contains(text) || a.contains(text));
  }
}

// 004-B20
RC_GTEST_PROP(BytesRangeLaws, every_form_of_ends_holds_what_it_says, ()) {
  const std::string start = *some_string();
  const std::string end = *some_string();
  const auto closed = BytesRange::of(start, end);
  const auto half_open = BytesRange::half_open(start, end);
  const auto open = BytesRange::open(start, end);
  const BytesRange prefix = BytesRange::prefix(start);

  for (const std::string& text : every_string()) {
    RC_ASSERT((closed && closed->contains(text)) == (start <= text && text <= end));
    RC_ASSERT((half_open && half_open->contains(text)) == (start <= text && text < end));
    RC_ASSERT((open && open->contains(text)) == (start < text && text < end));
    RC_ASSERT(prefix.contains(text) == text.starts_with(start));
  }
}

}  // namespace
}  // namespace tenure::test
