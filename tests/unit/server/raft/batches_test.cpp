#include <chrono>
#include <cstdint>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/raft/group.hpp"

namespace tenure::server::raft {
namespace {

using core::LeaseId;
using std::chrono::milliseconds;
using test::RaftGroup;

core::Command grant(std::uint64_t lease) {
  return core::GrantLease{.id = LeaseId{lease}, .ttl = std::chrono::minutes(10)};
}

// A second entry for the first of these commands would cost every member an additional write.
TEST(RaftBatches, commands_that_arrive_during_a_write_form_one_entry) {
  RaftGroup group(3);
  auto& leader = group.elect();
  group.pass(milliseconds(100));
  group.disk_delay = milliseconds(10);
  const auto before = leader.store().position().last_index;
  std::uint64_t decided = 0;

  for (std::uint64_t lease = 1; lease <= 5; ++lease) {
    leader.propose(grant(lease), [&](const Result<Decided>&) { ++decided; });
    group.pass(milliseconds(1));
  }

  EXPECT_EQ(leader.store().position().last_index, before + 1);
  ASSERT_TRUE(group.eventually([&] { return decided == 5; }));
  EXPECT_EQ(leader.store().position().last_index, before + 2);
}

// Otherwise the disk would be idle while the member applies the entry and replies.
TEST(RaftBatches, the_next_entry_is_on_its_way_to_the_disk_before_the_last_one_is_answered) {
  RaftGroup group(1);
  auto& alone = group.at(1);
  group.pass(milliseconds(5));
  group.disk_delay = milliseconds(10);
  const auto before = alone.store().position().last_index;
  std::vector<std::uint64_t> last_when_decided;

  for (std::uint64_t lease = 1; lease <= 2; ++lease) {
    alone.propose(grant(lease), [&](const Result<Decided>&) {
      last_when_decided.push_back(alone.store().position().last_index);
    });
    group.pass(milliseconds(1));
  }

  ASSERT_TRUE(group.eventually([&] { return last_when_decided.size() == 2; }));
  EXPECT_EQ(last_when_decided, std::vector<std::uint64_t>(2, before + 2));
}

// An entry on a majority is committed, even if the disk of the leader blocks.
TEST(RaftBatches, a_leader_with_a_blocked_disk_commits) {
  RaftGroup group(3);
  auto& leader = group.elect();
  leader.is_disk_stuck = true;

  for (std::uint64_t lease = 1; lease <= 3; ++lease) {
    EXPECT_TRUE(group.propose(leader, grant(lease)).has_value()) << lease;
  }
}

}  // namespace
}  // namespace tenure::server::raft
