#include "server/raft/snapshot_scheduler.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;

constexpr Space is_full{.is_short = true};
constexpr Space has_space{.is_next_ready = true};

class RaftSnapshotScheduler : public ::testing::Test {
 protected:
  void begin(std::uint64_t index) { scheduler.begin({.index = Index{index}}, now); }
  [[nodiscard]] auto finish(const Result<std::size_t>& bytes, std::uint64_t newest) {
    return scheduler.finish(bytes, Index{newest}, now).outcome;
  }
  [[nodiscard]] SnapshotScheduler::Done record() {
    return [this](const Result<std::uint64_t>& result) { results.push_back(result); };
  }

  using Outcome = SnapshotScheduler::Outcome;

  Time now{std::chrono::seconds(1000)};
  std::vector<Result<std::uint64_t>> results;
  SnapshotScheduler scheduler{
      {.log_bytes = 100, .factor = 2, .retry = milliseconds(10), .resend = milliseconds(5)}, 60};
};

TEST_F(RaftSnapshotScheduler, a_snapshot_is_due_when_the_log_outgrows_the_last_one) {
  scheduler.applied(120);
  EXPECT_FALSE(scheduler.is_due(Index{}, has_space)) << "twice the snapshot of 60 bytes";

  scheduler.applied(1);

  EXPECT_TRUE(scheduler.is_due(Index{}, has_space));
}

TEST_F(RaftSnapshotScheduler, a_full_disk_makes_a_snapshot_due_if_the_log_has_anything) {
  EXPECT_FALSE(scheduler.is_due(Index{}, is_full));

  scheduler.applied(1);

  EXPECT_TRUE(scheduler.is_due(Index{}, is_full));
}

TEST_F(RaftSnapshotScheduler, at_most_one_snapshot_is_written_at_a_time) {
  scheduler.applied(1000);
  begin(7);

  EXPECT_FALSE(scheduler.is_due(Index{}, has_space));
  EXPECT_EQ(finish(std::size_t{10}, 0), Outcome::taken);
  EXPECT_EQ(scheduler.log_bytes(), 0U);
  EXPECT_EQ(scheduler.snapshot_bytes(), 10U);
}

// Catches a snapshot that is reported to libraft before its entries are durable.
TEST_F(RaftSnapshotScheduler, the_next_snapshot_waits_until_the_last_one_counts) {
  begin(7);
  EXPECT_EQ(finish(std::size_t{10}, 0), Outcome::taken);
  scheduler.applied(1000);

  EXPECT_FALSE(scheduler.is_due(Index{6}, has_space));
  EXPECT_TRUE(scheduler.is_due(Index{7}, has_space));
}

TEST_F(RaftSnapshotScheduler, the_log_written_during_a_snapshot_counts_for_the_next_one) {
  scheduler.applied(1000);
  begin(7);
  scheduler.applied(30);

  static_cast<void>(finish(std::size_t{10}, 0));

  EXPECT_EQ(scheduler.log_bytes(), 30U);
}

TEST_F(RaftSnapshotScheduler, a_failed_snapshot_is_repeated_after_a_pause) {
  scheduler.applied(1000);
  begin(7);
  EXPECT_EQ(finish(fail(Errc::unavailable, "disk"), 0), Outcome::failed);

  EXPECT_FALSE(scheduler.is_due(Index{}, has_space));
  EXPECT_EQ(scheduler.deadline(), now + milliseconds(10));
  now += milliseconds(10);
  scheduler.resume_if_due(now);

  EXPECT_TRUE(scheduler.is_due(Index{}, has_space));
}

// R7: a snapshot that is older than an installed one must not be reported.
TEST_F(RaftSnapshotScheduler, a_snapshot_that_an_install_overtook_does_not_count) {
  begin(7);
  scheduler.restored(500);

  EXPECT_EQ(finish(std::size_t{10}, 9), Outcome::overtaken);
  EXPECT_EQ(scheduler.snapshot_bytes(), 500U);
}

TEST_F(RaftSnapshotScheduler, a_request_is_complete_when_a_snapshot_covers_it) {
  scheduler.request(Index{5}, record());
  scheduler.request(Index{8}, record());
  EXPECT_TRUE(scheduler.is_due(Index{}, has_space)) << "at any size of the log";

  scheduler.complete_requests(Index{7});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].value(), 7U);
  scheduler.fail_requests({.code = Errc::unavailable});

  ASSERT_EQ(results.size(), 2U);
  EXPECT_FALSE(results[1].has_value());
}

TEST_F(RaftSnapshotScheduler, each_log_truncation_is_requested_once) {
  scheduler.start(Index{3});
  EXPECT_EQ(scheduler.cut(Index{3}), std::nullopt);

  EXPECT_EQ(scheduler.cut(Index{9}), Index{8});
  EXPECT_EQ(scheduler.cut(Index{9}), std::nullopt);
}

// A peer without the snapshot rejects every heartbeat, and each rejection asks for one more.
TEST_F(RaftSnapshotScheduler, the_same_snapshot_is_not_sent_again_while_it_is_on_its_way) {
  EXPECT_TRUE(scheduler.may_send(MemberId{2}, Index{7}, now));
  EXPECT_FALSE(scheduler.may_send(MemberId{2}, Index{7}, now));
  EXPECT_TRUE(scheduler.may_send(MemberId{3}, Index{7}, now)) << "another peer";
  EXPECT_TRUE(scheduler.may_send(MemberId{2}, Index{9}, now)) << "a newer snapshot";

  now += milliseconds(5);

  EXPECT_TRUE(scheduler.may_send(MemberId{2}, Index{9}, now));
}

TEST_F(RaftSnapshotScheduler, an_unreadable_snapshot_is_reported_once_and_replaced) {
  EXPECT_TRUE(scheduler.mark_unreadable(Index{7}));
  EXPECT_FALSE(scheduler.mark_unreadable(Index{7}));
  EXPECT_TRUE(scheduler.is_due(Index{7}, has_space)) << "of a later entry";

  scheduler.fail_requests({.code = Errc::unavailable});

  EXPECT_TRUE(scheduler.mark_unreadable(Index{7})) << "the replacement failed";
}

}  // namespace
}  // namespace tenure::server::raft
