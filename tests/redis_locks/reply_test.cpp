#include "backends/redis/reply.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace tenure::backends::redis {
namespace {

TEST(RedisReply, a_field_of_info_is_found_by_its_whole_name) {
  constexpr std::string_view info =
      "# Memory\r\nmaxmemory_policy:noeviction\r\nmaxmemory:1048576\r\nempty:\r\nlast:a:b";

  EXPECT_EQ(info_field(info, "maxmemory"), "1048576");
  EXPECT_EQ(info_field(info, "maxmemory_policy"), "noeviction");
  EXPECT_EQ(info_field(info, "empty"), "");
  EXPECT_EQ(info_field(info, "last"), "a:b");
  EXPECT_EQ(info_field(info, "memory"), "") << "the end of another name";
  EXPECT_EQ(info_field(info, "uptime"), "");
  EXPECT_EQ(info_field("", "maxmemory"), "");
}

}  // namespace
}  // namespace tenure::backends::redis
