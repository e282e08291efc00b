#include "server/raft/leadership_transfer.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "server/raft/lost_entry_detector.hpp"

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;

class RaftLeadershipTransfer : public ::testing::Test {
 protected:
  [[nodiscard]] LeadershipTransfer::Done record() {
    return [this](const Result<void>& result) { results.push_back(result); };
  }

  Time now{std::chrono::seconds(1000)};
  std::vector<Result<void>> results;
  LeadershipTransfer transfer{milliseconds(400)};
};

TEST_F(RaftLeadershipTransfer, a_transfer_succeeds_when_this_member_ceases_to_lead) {
  transfer.begin(MemberId{2}, record(), now);
  transfer.complete(now);
  EXPECT_TRUE(results.empty());

  transfer.cease_to_lead();
  EXPECT_TRUE(results.empty()) << "callbacks run at the end of the event";
  transfer.complete(now);

  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].has_value());
  EXPECT_FALSE(transfer.is_active());
}

TEST_F(RaftLeadershipTransfer, a_transfer_that_takes_too_long_times_out) {
  transfer.begin(MemberId{2}, record(), now);
  EXPECT_EQ(transfer.deadline(), now + milliseconds(400));

  transfer.complete(now + milliseconds(400));

  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().code, Errc::timed_out);
}

TEST_F(RaftLeadershipTransfer, a_second_callback_gets_the_same_result) {
  transfer.begin(MemberId{2}, record(), now);
  transfer.also_notify(record());

  transfer.fail({.code = Errc::unavailable});

  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].error().code, Errc::unavailable);
}

TEST(RaftSuccessor, a_recently_heard_member_precedes_one_with_a_longer_log) {
  const std::vector<TransferCandidate> candidates{
      {.id = MemberId{2}, .was_heard_lately = false, .match = Index{9}},
      {.id = MemberId{3}, .was_heard_lately = true, .match = Index{5}},
      {.id = MemberId{4}, .was_heard_lately = true, .match = Index{7}}};

  EXPECT_EQ(best_successor(candidates), MemberId{4});
  EXPECT_EQ(best_successor({}), MemberId{});
}

class RaftLostEntryDetector : public ::testing::Test {
 protected:
  [[nodiscard]] bool reject(std::uint64_t last) {
    return detector.observe(MemberId{2}, {.rejected = Index{11}, .last = Index{last}}, Index{10},
                            now);
  }
  void accept() {
    static_cast<void>(detector.observe(MemberId{2}, {.last = Index{10}}, Index{10}, now));
  }

  Time now{std::chrono::seconds(1000)};
  LostEntryDetector detector{
      {.confirm_after = milliseconds(600), .repeat_after = milliseconds(2400)}};
};

// R4: such a rejection is ignored by the replica.
TEST_F(RaftLostEntryDetector, a_single_late_rejection_proves_nothing) {
  EXPECT_FALSE(reject(8));
  EXPECT_TRUE(detector.is_suspect(MemberId{2}));
  now += milliseconds(599);
  EXPECT_FALSE(reject(8));

  accept();

  EXPECT_FALSE(detector.is_suspect(MemberId{2}));
  now += milliseconds(1);
  EXPECT_FALSE(reject(8)) << "the interval restarts";
}

TEST_F(RaftLostEntryDetector, repeated_rejections_below_the_acknowledged_index_are_a_loss) {
  EXPECT_FALSE(reject(8));
  now += milliseconds(600);

  EXPECT_TRUE(reject(8));
  now += milliseconds(2399);
  EXPECT_FALSE(reject(8)) << "not reported for every message";
  now += milliseconds(1);
  EXPECT_TRUE(reject(8));
}

TEST_F(RaftLostEntryDetector, a_rejection_that_keeps_the_acknowledged_entries_is_no_loss) {
  EXPECT_FALSE(reject(10));
  EXPECT_FALSE(detector.is_suspect(MemberId{2}));
}

}  // namespace
}  // namespace tenure::server::raft
