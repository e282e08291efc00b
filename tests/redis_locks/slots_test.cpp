#include "backends/redis/slots.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "backends/redis/command_encoder.hpp"

namespace tenure::backends::redis {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes.
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// 000-B20: as the Redis Cluster specification and CLUSTER KEYSLOT define them.
TEST(RedisSlots, key_slots_match_redis_cluster) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363) << "an empty tag is none";
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
}

// 000-B20: for any characters in the name.
TEST(RedisSlots, all_keys_of_a_lock_share_one_slot) {
  const CommandEncoder commands("tenure", "client");
  for (const std::string name : {"a", "a}b", "{a}", "}", "{", "{}", "a:m"}) {
    const auto head = commands.head_of(name);
    for (const auto* end : {":m", ":e", ":q"}) {
      EXPECT_EQ(slot_of(head), slot_of(head + end)) << name;
    }
  }
}

TEST(RedisSlots, a_command_is_routed_by_its_first_key) {
  const CommandEncoder commands("tenure", "client", CommandEncoder::KeyScope::one_slot);

  EXPECT_EQ(first_key_of(commands.expire("a")), "{tenure:a}");
  EXPECT_FALSE(first_key_of("*1\r\n$4\r\nPING\r\n"));
  EXPECT_FALSE(first_key_of("*3\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n0\r\n"));
  EXPECT_FALSE(first_key_of("*4\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n1\r\n$99\r\nx"));
  EXPECT_FALSE(first_key_of(""));
}

TEST(RedisSlots, a_redirection_is_parsed) {
  const auto moved = redirection_from("MOVED 3999 127.0.0.1:6381", "h");
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->endpoint, (Endpoint{.host = "127.0.0.1", .port = 6381}));
  EXPECT_EQ(redirection_from("ASK 1 ::1:6381", "h")->endpoint.host, "::1");
  EXPECT_EQ(redirection_from("MOVED 1 :6381", "h")->endpoint.host, "h") << "its own";
  EXPECT_FALSE(redirection_from("MOVED 16384 127.0.0.1:1", "h"));
  EXPECT_FALSE(redirection_from("MOVED x 127.0.0.1:1", "h"));
  EXPECT_FALSE(redirection_from("MOVED 1 127.0.0.1", "h"));
  EXPECT_FALSE(redirection_from("MOVED 1", "h"));
  EXPECT_FALSE(redirection_from("TRYAGAIN later", "h"));
}

TEST(RedisSlots, a_slot_table_is_parsed_and_invalid_input_is_rejected) {
  const auto table_of = [](std::string_view wire) {
    ReplyReader reader;
    reader.feed(bytes_of(wire));
    const auto* const reply = reader.next();
    return reply == nullptr ? std::nullopt : table_from(*reply, "h");
  };
  const auto table = table_of(
      "*2\r\n"
      "*3\r\n:0\r\n:99\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"
      "*3\r\n:200\r\n:200\r\n*3\r\n$0\r\n\r\n:2\r\n$2\r\nie\r\n");

  ASSERT_TRUE(table);
  ASSERT_EQ(table->owners.size(), 2U);
  EXPECT_EQ(table->owners[1].endpoint, (Endpoint{.host = "h", .port = 2}));
  EXPECT_EQ(table->owner_of[99], 0);
  EXPECT_EQ(table->owner_of[100], SlotTable::unassigned);
  EXPECT_EQ(table->owner_of[200], 1);
  EXPECT_FALSE(table_of("*1\r\n*3\r\n:0\r\n:16384\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"));
  EXPECT_FALSE(table_of("*1\r\n*3\r\n:9\r\n:0\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"));
  EXPECT_FALSE(table_of("*1\r\n*3\r\n:0\r\n:9\r\n*3\r\n$1\r\na\r\n:0\r\n$2\r\nid\r\n"));
  EXPECT_FALSE(table_of("*1\r\n*2\r\n:0\r\n:9\r\n"));
  EXPECT_FALSE(table_of("$2\r\nOK\r\n"));
  EXPECT_EQ(epoch_from("cluster_state:ok\r\ncluster_current_epoch:17\r\n"), 17U);
  EXPECT_EQ(epoch_from("nothing"), 0U);
}

// Only queries of the slot table use the larger limit.
TEST(RedisSlots, the_largest_slot_table_is_parsed_and_larger_ones_are_rejected) {
  std::string wire = "*16384\r\n";
  for (std::size_t slot = 0; slot < slots_count; ++slot) {
    const auto number = ":" + std::to_string(slot) + "\r\n";
    wire += "*5\r\n" + number + number;
    for (int node = 1; node <= 3; ++node) {
      wire += "*4\r\n$1\r\na\r\n:" + std::to_string(node) + "\r\n$2\r\nid\r\n*0\r\n";
    }
  }
  ReplyReader patient(table_elements_max);
  patient.feed(bytes_of(wire));
  ReplyReader usual;
  usual.feed(bytes_of(wire));
  ReplyReader mocked(table_elements_max);
  mocked.feed(bytes_of("*1048577\r\n"));

  const auto* const reply = patient.next();

  ASSERT_NE(reply, nullptr);
  const auto table = table_from(*reply, "h");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->owners.size(), 1U);
  EXPECT_EQ(table->owner_of.back(), 0);
  EXPECT_EQ(usual.next(), nullptr);
  EXPECT_EQ(usual.protocol_error(), "reply with too many elements");
  EXPECT_EQ(mocked.next(), nullptr);
  EXPECT_EQ(mocked.protocol_error(), "reply with too many elements");
}

}  // namespace
}  // namespace tenure::backends::redis
