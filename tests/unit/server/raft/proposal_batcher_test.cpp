#include "server/raft/proposal_batcher.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t idle = 0;
constexpr std::size_t writing = 1;
const DiskState roomy{.space = {.left = 1 << 20, .is_next_ready = true}, .segment_bytes = 1 << 20};

DiskState full_disk(std::size_t left) {
  return {.space = {.left = left, .is_short = true}, .segment_bytes = 32768};
}

core::Command growing() {
  return core::GrantLease{.id = core::LeaseId{1}, .ttl = std::chrono::minutes(1)};
}

core::Command keeping() {
  return core::RenewLeases{.leases = {core::LeaseId{1}}};
}

class RaftProposalBatcher : public ::testing::Test {
 protected:
  void push(core::Command command, std::size_t bytes = 100) {
    Proposal proposal{
        .command = std::move(command),
        .decided =
            [this](const Result<Decided>& result) {
              errors.push_back(result ? std::nullopt : std::optional(result.error().code));
            },
        .bytes = bytes};
    static_cast<void>(batcher.queue().push(proposal));
  }
  [[nodiscard]] ProposedEntry make(const DiskState& disk, std::optional<Error> refusal = {}) {
    const auto room = batcher.room(disk);
    auto entry = batcher.admit(batcher.gather(room, now), room, refusal, now);
    entry.index = Index{++last};
    entry.term = Term{1};
    return entry;
  }
  void submit(std::size_t bytes = 100) {
    push(keeping(), bytes);
    batcher.add_in_flight(make(roomy));
  }

  Time now{std::chrono::seconds(1000)};
  std::uint64_t last = 0;
  std::vector<std::optional<Errc>> errors;  ///< Results of the completed proposals.
  ProposalBatcher batcher{{.in_flight = {.commands = 10},
                           .commands_max = 3,
                           .entries_max = 2,
                           .space_retry = milliseconds(10)}};
};

TEST_F(RaftProposalBatcher, own_commands_come_first_and_the_entry_is_limited) {
  for (int i = 0; i < 4; ++i) {
    push(keeping());
  }
  batcher.add_own(core::Tick{});

  const auto entry = make(roomy);

  ASSERT_EQ(entry.batch.commands.size(), 4U) << "one own command and three of the queue";
  EXPECT_TRUE(std::holds_alternative<core::Tick>(entry.batch.commands.front()));
  EXPECT_EQ(entry.decisions.size(), 4U);
  EXPECT_EQ(entry.proposals, 3U);
  EXPECT_EQ(entry.bytes, 300U);
  EXPECT_TRUE(batcher.has_more());
}

// Two small entries cost every member two writes instead of one.
TEST_F(RaftProposalBatcher, the_next_entry_waits_while_the_disk_writes_the_last_one) {
  EXPECT_TRUE(batcher.is_next_due(writing)) << "nothing of its own is in flight";
  submit();

  EXPECT_FALSE(batcher.is_next_due(writing));
  EXPECT_TRUE(batcher.is_next_due(idle));
  submit();
  EXPECT_FALSE(batcher.is_next_due(idle)) << "two entries are in flight";
  EXPECT_TRUE(batcher.take_applied(Index{1}, Term{1}).has_value());

  EXPECT_TRUE(batcher.is_next_due(idle));
}

TEST_F(RaftProposalBatcher, a_full_disk_admits_only_what_keeps_or_releases) {
  push(growing());
  push(keeping());

  const auto entry = make(full_disk(8192));

  EXPECT_EQ(entry.proposals, 1U);
  EXPECT_EQ(errors, std::vector{std::optional(Errc::resource_exhausted)});
}

TEST_F(RaftProposalBatcher, entries_in_flight_take_room_on_a_full_disk) {
  const auto before = batcher.room(full_disk(20000)).for_all;

  submit(1000);

  EXPECT_EQ(batcher.room(full_disk(20000)).for_all, before - 1000 - 4096);
  EXPECT_EQ(batcher.room(full_disk(100)).for_all, 0U);
}

// Limits, ticks and the cluster version must not be lost when the disk is full.
TEST_F(RaftProposalBatcher, own_commands_without_room_are_gathered_again_after_a_pause) {
  batcher.add_own(core::Tick{});

  EXPECT_TRUE(make(full_disk(0)).batch.commands.empty());
  EXPECT_TRUE(batcher.has_own());
  EXPECT_EQ(batcher.deadline(), now + milliseconds(10));
  EXPECT_FALSE(batcher.take_retry(now));
  EXPECT_TRUE(batcher.take_retry(now + milliseconds(10)));
  EXPECT_FALSE(batcher.take_retry(now + milliseconds(10))) << "once";

  EXPECT_EQ(make(roomy).batch.commands.size(), 1U);
}

TEST_F(RaftProposalBatcher, a_member_that_does_not_lead_refuses_every_proposal) {
  push(keeping());

  const auto entry = make(roomy, Error{.code = Errc::unavailable});

  EXPECT_TRUE(entry.batch.commands.empty());
  EXPECT_EQ(errors, std::vector{std::optional(Errc::unavailable)});
}

// An entry of another leader may replace the proposed one at its index.
TEST_F(RaftProposalBatcher, an_entry_of_another_term_is_not_taken_for_the_proposed_one) {
  submit();

  EXPECT_FALSE(batcher.take_applied(Index{1}, Term{2}).has_value());
  EXPECT_FALSE(batcher.take_applied(Index{2}, Term{1}).has_value());
  EXPECT_TRUE(batcher.take_applied(Index{1}, Term{1}).has_value());
}

TEST_F(RaftProposalBatcher, a_failed_entry_completes_its_proposals_and_frees_the_queue) {
  for (int i = 0; i < 10; ++i) {
    push(keeping());
  }
  batcher.add_in_flight(make(roomy));
  Proposal one_more{.command = keeping(), .decided = {}, .bytes = 1};
  ASSERT_EQ(batcher.queue().push(one_more), ProposalQueue::PushResult::full);

  batcher.give_up_all({.code = Errc::unavailable});

  EXPECT_EQ(errors.size(), 3U);
  EXPECT_NE(batcher.queue().push(one_more), ProposalQueue::PushResult::full);
}

TEST_F(RaftProposalBatcher, the_second_half_of_a_segment_waits_for_the_next_segment) {
  const auto is_known = [](std::size_t left, bool is_next_ready, bool is_short) {
    return ProposalBatcher::is_space_known(
        {.space = {.left = left, .is_next_ready = is_next_ready, .is_short = is_short},
         .segment_bytes = 100});
  };

  EXPECT_TRUE(is_known(51, false, false));
  EXPECT_FALSE(is_known(50, false, false));
  EXPECT_TRUE(is_known(50, true, false));
  EXPECT_TRUE(is_known(50, false, true)) << "the remaining space is limited";
}

TEST_F(RaftProposalBatcher, a_paused_batcher_asks_for_no_drain) {
  push(keeping());
  batcher.pause();
  EXPECT_FALSE(batcher.has_more());

  batcher.resume();

  EXPECT_TRUE(batcher.has_more());
}

}  // namespace
}  // namespace tenure::server::raft
