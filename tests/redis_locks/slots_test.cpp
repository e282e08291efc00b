#include "backends/redis/slots.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "backends/redis/commands.hpp"

namespace tenure::backends::redis {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes.
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// 000-B20: as the specification of Redis Cluster has it, and redis-server answers to CLUSTER
// KEYSLOT.
TEST(RedisSlots, are_those_that_a_cluster_counts) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363) << "an empty tag is none";
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
}

// 000-B20: whatever is in the name.
TEST(RedisSlots, all_keys_of_a_lock_have_the_same) {
  const Commands commands("tenure", "client");
  for (const std::string name : {"a", "a}b", "{a}", "}", "{", "{}", "a:m"}) {
    const auto head = commands.head_of(name);
    for (const auto* end : {":m", ":e", ":q"}) {
      EXPECT_EQ(slot_of(head), slot_of(head + end)) << name;
    }
  }
}

TEST(RedisSlots, a_command_is_about_its_first_key) {
  const Commands commands("tenure", "client", Commands::Reach::one_slot);

  EXPECT_EQ(first_key_of(commands.look("a")), "{tenure:a}");
  EXPECT_FALSE(first_key_of("*1\r\n$4\r\nPING\r\n"));
  EXPECT_FALSE(first_key_of("*3\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n0\r\n"));
  EXPECT_FALSE(first_key_of("*4\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n1\r\n$99\r\nx"));
  EXPECT_FALSE(first_key_of(""));
}

TEST(RedisSlots, where_a_node_sends_us_is_read) {
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

TEST(RedisSlots, a_table_is_read_and_nonsense_is_none) {
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
  EXPECT_EQ(table->owner_of[100], SlotTable::nobody);
  EXPECT_EQ(table->owner_of[200], 1);
  EXPECT_FALSE(table_of("*1\r\n*3\r\n:0\r\n:16384\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"));
  EXPECT_FALSE(table_of("*1\r\n*3\r\n:9\r\n:0\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"));
  EXPECT_FALSE(table_of("*1\r\n*3\r\n:0\r\n:9\r\n*3\r\n$1\r\na\r\n:0\r\n$2\r\nid\r\n"));
  EXPECT_FALSE(table_of("*1\r\n*2\r\n:0\r\n:9\r\n"));
  EXPECT_FALSE(table_of("$2\r\nOK\r\n"));
  EXPECT_EQ(epoch_from("cluster_state:ok\r\ncluster_current_epoch:17\r\n"), 17U);
  EXPECT_EQ(epoch_from("nothing"), 0U);
}

// Only who asks about the cluster believes in so much.
TEST(RedisSlots, a_table_of_all_slots_one_by_one_is_read_and_no_more) {
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
  EXPECT_EQ(usual.fault(), "a reply with too many elements");
  EXPECT_EQ(mocked.next(), nullptr);
  EXPECT_EQ(mocked.fault(), "a reply with too many elements");
}

}  // namespace
}  // namespace tenure::backends::redis
