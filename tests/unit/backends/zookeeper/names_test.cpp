#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backends/zookeeper/node_value.hpp"
#include "backends/zookeeper/nodes.hpp"
#include "backends/zookeeper/paths.hpp"
#include "backends/zookeeper/session_timing.hpp"

namespace tenure::backends::zookeeper {
namespace {

using namespace std::chrono_literals;

// 002.038, 002-B8: "%010d" of a signed number that wraps.
TEST(ZookeeperNodes, sequences_are_read_as_the_numbers_they_are) {
  EXPECT_EQ(ticket_of("_c_6f9c-lock-0000000012")->sequence.number, 12);
  EXPECT_EQ(ticket_of("_c_6f9c-lock-2147483647")->sequence.number, 2147483647);
  EXPECT_EQ(ticket_of("_c_6f9c-lock--2147483648")->sequence.number, -2147483647 - 1);
  EXPECT_EQ(ticket_of("_c_6f9c-lock--000000001")->sequence.number, -1);
  EXPECT_EQ(ticket_of("x-72057594037927936-0000000003")->sequence.number, 3);
  EXPECT_EQ(ticket_of("x-72057594037927936--000000003")->sequence.number, -3);
}

// 002-B8: sorted by the number and not by the name, across the wrap.
TEST(ZookeeperNodes, the_order_continues_when_the_counter_wraps) {
  constexpr Sequence last{2147483647};
  constexpr Sequence first{-2147483647 - 1};

  EXPECT_TRUE(precedes({9}, {10}));
  EXPECT_FALSE(precedes({10}, {9}));
  EXPECT_FALSE(precedes({9}, {9}));
  EXPECT_TRUE(precedes(last, first));
  EXPECT_FALSE(precedes(first, last));
  EXPECT_TRUE(precedes({-1}, {0}));
  EXPECT_EQ(after(last), first);
}

// Nodes of other libraries must be recognised.
TEST(ZookeeperNodes, nodes_of_other_libraries_are_recognised) {
  EXPECT_EQ(ticket_of("_c_11-__READ__0000000001")->kind, Kind::read);
  EXPECT_EQ(ticket_of("_c_11-__WRIT__0000000001")->kind, Kind::write);
  EXPECT_EQ(ticket_of("_c_11-lease-0000000001")->kind, Kind::lease);
  EXPECT_EQ(ticket_of("lock-0000000001")->kind, Kind::lock);
  EXPECT_EQ(ticket_of("0ab1__lock__0000000001")->kind, Kind::lock);
  EXPECT_EQ(ticket_of("0ab1__rlock__0000000001")->kind, Kind::read);
}

// Child locks and unrelated nodes do not conflict.
TEST(ZookeeperNodes, other_nodes_do_not_belong_to_a_queue) {
  for (const std::string_view name :
       {"", "users", "42", "leases", "locks", "lock-", "lock-1", "lock-00000000001x",
        "job-2024010100", "x-", "x-1", "x-y", "lock-99999999999"}) {
    EXPECT_FALSE(ticket_of(name)) << name;
  }
}

// 002-B7, 002-B6: two acquisitions never share a node.
TEST(ZookeeperNodes, every_prefix_is_unique_and_of_the_form_that_others_expect) {
  const auto one = fresh_prefix(Kind::lock);
  const auto two = fresh_prefix(Kind::lock);

  EXPECT_NE(one, two);
  EXPECT_TRUE(one.starts_with("_c_"));
  EXPECT_EQ(one.size(), std::string_view("_c_").size() + 36 + std::string_view("-lock-").size());
  EXPECT_EQ(ticket_of(one + "0000000007"), (Ticket{.sequence = {7}, .kind = Kind::lock}));
  EXPECT_EQ(ticket_of(fresh_prefix(Kind::read) + "0000000007")->kind, Kind::read);
  EXPECT_EQ(ticket_of(fresh_prefix(Kind::write) + "0000000007")->kind, Kind::write);
  EXPECT_EQ(ticket_of(fresh_prefix(Kind::lease) + "0000000007")->kind, Kind::lease);
}

TEST(ZookeeperPaths, a_name_is_a_path_below_the_chroot) {
  EXPECT_EQ(folder_of("", "a"), "/a");
  EXPECT_EQ(folder_of("/app/locks", "db/users/42"), "/app/locks/db/users/42");
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_EQ(parent_of("/a"), "");
  EXPECT_EQ(last_of("/a/b"), "b");
}

// A name that is an invalid ZooKeeper path is still a valid and distinct lock name.
TEST(ZookeeperPaths, invalid_path_characters_are_escaped_without_collisions) {
  const std::vector<std::string> names{"a//b",
                                       "a/",
                                       "/a",
                                       "a/./b",
                                       "a/../b",
                                       "a/%2E/b",
                                       "a/%/b",
                                       "%",
                                       "a%b",
                                       "a%25b",
                                       "zookeeper",
                                       "/",
                                       "//",
                                       ".",
                                       "..",
                                       "\xEE\x80\x80",
                                       "\xC2\x85",
                                       "\xF0\x9F\x98\x80",
                                       "zookeeper/quota"};
  std::set<std::string> paths;
  for (const auto& name : names) {
    const auto path = folder_of("", name);
    EXPECT_EQ(flaw_of_chroot(path), "") << path;
    EXPECT_FALSE(path == "/zookeeper" || path.starts_with("/zookeeper/"));
    paths.insert(path);
  }

  EXPECT_EQ(paths.size(), names.size());
}

TEST(ZookeeperPaths, an_invalid_chroot_is_rejected_with_the_reason) {
  EXPECT_EQ(flaw_of_chroot("/a/b"), "");
  EXPECT_NE(flaw_of_chroot("/a/"), "");
  EXPECT_NE(flaw_of_chroot("/a//b"), "");
  EXPECT_NE(flaw_of_chroot("/a/../b"), "");
  EXPECT_NE(flaw_of_chroot("/."), "");
  EXPECT_NE(flaw_of_chroot(std::string_view("/a\x01")), "");
  EXPECT_NE(flaw_of_chroot("/\xFF"), "");
}

// docs/decisions/0020: a client never trusts a lease longer than the servers keep the session.
TEST(ZookeeperSessionTiming, a_session_outlives_the_lease_deadline_of_the_client) {
  constexpr auto half_a_tick = 1000ms;
  for (auto ttl = 2250ms; ttl < 600'000ms; ttl += 250ms) {
    const auto timeout = timeout_for(ttl);

    EXPECT_GE(timeout - heartbeat_interval(timeout) - half_a_tick, ttl);
    EXPECT_GE(shortest_ttl(timeout) + 1ms, ttl);
  }
}

// Servers may give less than was asked for. What is taken then holds with the beat of what is
// given.
TEST(ZookeeperSessionTiming, a_session_outlives_its_longest_ttl) {
  constexpr auto half_a_tick = 1000ms;
  for (auto timeout = 4000ms; timeout < 600'000ms; timeout += 250ms) {
    EXPECT_GE(timeout - heartbeat_interval(timeout) - half_a_tick, longest_ttl(timeout));
  }
}

TEST(ZookeeperSessionTiming, the_default_ttl_fits_the_default_session_limits) {
  EXPECT_GE(longest_ttl(40'000ms), 30'000ms);
  EXPECT_LE(shortest_ttl(4000ms), 2250ms);
}

TEST(ZookeeperNodeValue, a_node_value_round_trips) {
  const auto text = write_value({.owner = "ann",
                                 .lease = LeaseId{0xFEDCBA9876543210},
                                 .request = RequestId{7},
                                 .capacity = 3,
                                 .metadata = "nightly\nreport"});
  const auto value = read_value(text);

  EXPECT_EQ(value.owner, "ann");
  EXPECT_EQ(value.lease, LeaseId{0xFEDCBA9876543210});
  EXPECT_EQ(value.request, RequestId{7});
  EXPECT_EQ(value.capacity, 3U);
  EXPECT_EQ(value.metadata, "nightly\nreport");
}

// Others write what they like: their address, JSON, nothing, rubbish.
TEST(ZookeeperNodeValue, an_invalid_node_value_is_accepted) {
  EXPECT_EQ(read_value("10.0.0.1").owner, "10.0.0.1");
  EXPECT_EQ(read_value("").owner, "");
  EXPECT_EQ(read_value("a\nlease=zz capacity=-1 request= =7 lease\n").lease, LeaseId{});
  EXPECT_EQ(read_value("a\ncapacity=99999999999").capacity, 0U);
  EXPECT_LE(read_value(std::string(1'000'000, 'x')).owner.size(), 256U);
}

}  // namespace
}  // namespace tenure::backends::zookeeper
