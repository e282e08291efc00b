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

}  // namespace
}  // namespace tenure::backends::redis
