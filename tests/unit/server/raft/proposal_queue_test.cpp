#include "server/raft/proposal_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::server::raft {
namespace {

constexpr std::size_t plenty = 1'000'000;

/// Names a proposal by the lease that it revokes.
Proposal proposal(std::uint64_t lease, std::size_t bytes = 10) {
  return {
      .command = core::RevokeLease{.lease = core::LeaseId{lease}}, .decided = {}, .bytes = bytes};
}

void push(ProposalQueue& proposal_queue, std::initializer_list<std::uint64_t> leases,
          std::size_t bytes = 10) {
  for (const auto lease : leases) {
    auto one = proposal(lease, bytes);
    EXPECT_NE(proposal_queue.push(one), ProposalQueue::PushResult::full);
  }
}

std::vector<std::uint64_t> names(const std::vector<Proposal>& proposals) {
  std::vector<std::uint64_t> leases;
  for (const auto& one : proposals) {
    leases.push_back(std::get<core::RevokeLease>(one.command).lease.get());
  }
  return leases;
}

using Names = std::vector<std::uint64_t>;

TEST(RaftProposalQueue, proposals_leave_in_fifo_order) {
  ProposalQueue proposal_queue({});
  push(proposal_queue, {1, 2, 3, 4, 5});

  EXPECT_EQ(names(proposal_queue.take(2, plenty)), (Names{1, 2}));
  push(proposal_queue, {6});
  EXPECT_EQ(names(proposal_queue.take(1, plenty)), (Names{3}));
  EXPECT_FALSE(proposal_queue.go_idle());
  EXPECT_EQ(names(proposal_queue.take(plenty, plenty)), (Names{4, 5, 6}));
  EXPECT_TRUE(proposal_queue.go_idle());
  EXPECT_EQ(names(proposal_queue.take(plenty, plenty)), (Names{}));
}

TEST(RaftProposalQueue, take_returns_at_least_one_proposal_within_the_byte_limit) {
  ProposalQueue proposal_queue({});
  push(proposal_queue, {1, 2, 3}, 100);

  EXPECT_EQ(names(proposal_queue.take(plenty, 200)), (Names{1, 2}));
  EXPECT_EQ(names(proposal_queue.take(plenty, 1)), (Names{3}));
  EXPECT_TRUE(proposal_queue.go_idle());
}

TEST(RaftProposalQueue, the_first_push_to_an_idle_queue_reports_queued_first) {
  ProposalQueue proposal_queue({});
  auto first = proposal(1);
  auto second = proposal(2);
  auto third = proposal(3);

  EXPECT_EQ(proposal_queue.push(first), ProposalQueue::PushResult::queued_first);
  EXPECT_EQ(proposal_queue.push(second), ProposalQueue::PushResult::queued);
  EXPECT_EQ(proposal_queue.take(plenty, plenty).size(), 2U);
  EXPECT_TRUE(proposal_queue.go_idle());
  EXPECT_EQ(proposal_queue.push(third), ProposalQueue::PushResult::queued_first);
}

TEST(RaftProposalQueue, taken_proposals_count_until_they_are_finished) {
  ProposalQueue proposal_queue({.commands = 2, .bytes = plenty});
  push(proposal_queue, {1, 2});
  EXPECT_EQ(proposal_queue.take(1, plenty).size(), 1U);
  auto third = proposal(3);

  EXPECT_EQ(proposal_queue.push(third), ProposalQueue::PushResult::full);
  proposal_queue.finished(1, 10);
  EXPECT_EQ(proposal_queue.push(third), ProposalQueue::PushResult::queued);
}

TEST(RaftProposalQueue, close_returns_the_waiting_proposals) {
  ProposalQueue proposal_queue({});
  push(proposal_queue, {1, 2, 3});
  EXPECT_EQ(proposal_queue.take(1, plenty).size(), 1U);
  auto late = proposal(4);

  EXPECT_EQ(names(proposal_queue.close()), (Names{2, 3}));
  EXPECT_EQ(proposal_queue.push(late), ProposalQueue::PushResult::closed);
}

}  // namespace
}  // namespace tenure::server::raft
