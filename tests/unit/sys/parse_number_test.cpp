#include "sys/parse_number.hpp"

#include <cstdint>
#include <limits>
#include <string_view>

#include <gtest/gtest.h>

namespace tenure::sys {
namespace {

TEST(ParseNumber, digits_in_the_given_base_are_a_number) {
  EXPECT_EQ(parse_number<std::uint64_t>("0"), 0U);
  EXPECT_EQ(parse_number<std::uint64_t>("007"), 7U);
  EXPECT_EQ(parse_number<std::uint64_t>("ff", 16), 255U);
  EXPECT_EQ(parse_number<std::int32_t>("-5"), -5);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
}

// A port 65536 must not become port 0.
TEST(ParseNumber, a_number_that_does_not_fit_is_none) {
  EXPECT_FALSE(parse_number<std::uint16_t>("65536"));
  EXPECT_FALSE(parse_number<std::uint64_t>("18446744073709551616"));
  EXPECT_FALSE(parse_number<std::uint16_t>("-1"));
}

TEST(ParseNumber, a_text_with_any_other_character_is_none) {
  for (const std::string_view text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.0", "--1"}) {
    EXPECT_FALSE(parse_number<std::int64_t>(text)) << text;
  }
  EXPECT_FALSE(parse_number<std::int64_t>(std::string_view("1\0", 2)));
}

}  // namespace
}  // namespace tenure::sys
