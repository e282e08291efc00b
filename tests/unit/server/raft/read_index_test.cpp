#include "server/raft/read_index.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "support/raft/voters.hpp"

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;
using test::three;

constexpr MemberId self{1};

class RaftReadIndex : public ::testing::Test {
 protected:
  void add() {
    reads.add([](const Result<View>&) {}, now);
  }
  [[nodiscard]] std::size_t confirmed() { return reads.take_confirmed(three).size(); }

  Time now{std::chrono::seconds(1000)};
  ReadIndex reads{
      {.self = self, .reads_max = 2, .timeout = milliseconds(300), .repeat = milliseconds(50)}};
};

TEST_F(RaftReadIndex, a_read_waits_until_a_quorum_has_acknowledged_its_round) {
  add();
  const auto round = reads.next_round(now);
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(confirmed(), 0U) << "the leader alone is no quorum";

  reads.acknowledge(MemberId{3}, *round);

  EXPECT_EQ(confirmed(), 1U);
}

// The leader may have been deposed between the beginning of the round and the read.
TEST_F(RaftReadIndex, a_round_does_not_confirm_a_read_that_arrived_after_its_beginning) {
  add();
  const auto first = reads.next_round(now);
  add();
  EXPECT_EQ(reads.next_round(now), std::nullopt) << "one round at a time";

  reads.acknowledge(MemberId{2}, first.value());
  EXPECT_EQ(confirmed(), 1U);
  const auto second = reads.next_round(now);
  ASSERT_TRUE(second.has_value());
  reads.acknowledge(MemberId{2}, *second);

  EXPECT_EQ(confirmed(), 1U);
}

TEST_F(RaftReadIndex, a_learner_does_not_count_for_the_quorum) {
  const std::vector<Member> members{{.id = MemberId{1}},
                                    {.id = MemberId{2}},
                                    {.id = MemberId{3}},
                                    {.id = MemberId{4}, .role = MemberRole::learner}};
  add();
  const auto round = reads.next_round(now);

  reads.acknowledge(MemberId{4}, round.value());

  EXPECT_TRUE(reads.take_confirmed(members).empty());
}

TEST_F(RaftReadIndex, a_lost_round_is_repeated_for_all_waiting_reads) {
  add();
  const auto first = reads.next_round(now);
  add();
  EXPECT_EQ(reads.deadline(), now + milliseconds(50));

  now += milliseconds(50);
  const auto second = reads.next_round(now);
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(*second, first.value());
  reads.acknowledge(MemberId{2}, *second);

  EXPECT_EQ(confirmed(), 2U);
}

TEST_F(RaftReadIndex, a_read_expires_when_no_quorum_acknowledges) {
  add();
  static_cast<void>(reads.next_round(now));

  EXPECT_TRUE(reads.take_expired(now + milliseconds(299)).empty());
  EXPECT_EQ(reads.take_expired(now + milliseconds(300)).size(), 1U);
  EXPECT_EQ(reads.deadline(), std::nullopt);
}

// The acknowledgement may come from a time before another member led.
TEST_F(RaftReadIndex, an_acknowledgement_of_a_former_leadership_confirms_nothing) {
  add();
  const auto old = reads.next_round(now);
  EXPECT_EQ(reads.take_all().size(), 1U);
  add();
  const auto present = reads.next_round(now);
  ASSERT_NE(present, old);

  reads.acknowledge(MemberId{2}, old.value());

  EXPECT_EQ(confirmed(), 0U);
}

TEST_F(RaftReadIndex, the_number_of_waiting_reads_is_limited) {
  add();
  EXPECT_FALSE(reads.is_full());
  add();

  EXPECT_TRUE(reads.is_full());
}

}  // namespace
}  // namespace tenure::server::raft
