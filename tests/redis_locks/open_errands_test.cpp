#include "backends/redis/open_errands.hpp"

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::backends::redis {
namespace {

std::vector<std::string> commands_of(OpenErrands& open) {
  std::vector<std::string> commands;
  for (const auto id : open.ids()) {
    commands.push_back(open.find(id)->command);
  }
  return commands;
}

TEST(OpenErrands, are_found_by_their_numbers_and_keep_their_order) {
  OpenErrands open;
  const auto a = open.add({.command = "a"});
  const auto b = open.add({.command = "b"});
  const auto c = open.add({.command = "c"});

  EXPECT_NE(a, 0U);
  EXPECT_EQ(open.find(b)->command, "b");
  EXPECT_EQ(open.take(b).command, "b");
  EXPECT_EQ(open.find(b), nullptr);
  EXPECT_EQ(commands_of(open), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(open.take(a).command, "a");
  EXPECT_EQ(open.find(a), nullptr);
  EXPECT_EQ(open.find(c)->command, "c");
}

TEST(OpenErrands, numbers_never_come_again) {
  OpenErrands open;
  const auto first = open.add({});
  std::ignore = open.take(first);
  EXPECT_TRUE(open.empty());

  EXPECT_GT(open.add({}), first);
  EXPECT_FALSE(open.empty());
}

TEST(OpenErrands, what_was_never_given_out_is_not_there) {
  OpenErrands open;
  EXPECT_EQ(open.find(0), nullptr);
  EXPECT_EQ(open.find(1), nullptr);
  open.add({});
  EXPECT_EQ(open.find(0), nullptr);
  EXPECT_EQ(open.find(2), nullptr);
}

TEST(OpenErrands, thousands_are_kept_in_their_order_while_the_first_waits) {
  OpenErrands open;
  const auto first = open.add({.command = "first"});
  std::vector<OpenErrands::Id> ids;
  for (int n = 0; n < 10'000; ++n) {
    ids.push_back(open.add({.command = std::to_string(n)}));
    if (n % 2 == 1) {
      EXPECT_EQ(open.take(ids.back()).command, std::to_string(n));
    }
  }
  EXPECT_EQ(open.find(first)->command, "first");
  EXPECT_EQ(open.ids().size(), 5'001U);
  for (std::size_t n = 0; n < ids.size(); n += 2) {
    EXPECT_EQ(open.take(ids[n]).command, std::to_string(n));
  }
  EXPECT_EQ(open.take(first).command, "first");

  EXPECT_TRUE(open.empty());
  const auto next = open.add({.command = "next"});
  EXPECT_EQ(open.find(next)->command, "next") << "and there is room again";
  EXPECT_EQ(open.ids(), std::vector{next});
}

}  // namespace
}  // namespace tenure::backends::redis
