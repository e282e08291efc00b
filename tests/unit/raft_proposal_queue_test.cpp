#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "server/raft/proposal_queue.hpp"

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

TEST(RaftProposalQueue, gives_the_oldest_first_however_few_are_taken) {
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

TEST(RaftProposalQueue, gives_as_many_bytes_as_fit_and_one_proposal_in_any_case) {
  ProposalQueue proposal_queue({});
  push(proposal_queue, {1, 2, 3}, 100);

  EXPECT_EQ(names(proposal_queue.take(plenty, 200)), (Names{1, 2}));
  EXPECT_EQ(names(proposal_queue.take(plenty, 1)), (Names{3}));
  EXPECT_TRUE(proposal_queue.go_idle());
}

TEST(RaftProposalQueue, the_first_push_after_a_rest_has_to_wake) {
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

TEST(RaftProposalQueue, what_was_taken_counts_until_it_is_finished) {
  ProposalQueue proposal_queue({.commands = 2, .bytes = plenty});
  push(proposal_queue, {1, 2});
  EXPECT_EQ(proposal_queue.take(1, plenty).size(), 1U);
  auto third = proposal(3);

  EXPECT_EQ(proposal_queue.push(third), ProposalQueue::PushResult::full);
  proposal_queue.finished(1, 10);
  EXPECT_EQ(proposal_queue.push(third), ProposalQueue::PushResult::queued);
}

TEST(RaftProposalQueue, closing_gives_back_what_was_not_taken) {
  ProposalQueue proposal_queue({});
  push(proposal_queue, {1, 2, 3});
  EXPECT_EQ(proposal_queue.take(1, plenty).size(), 1U);
  auto late = proposal(4);

  EXPECT_EQ(names(proposal_queue.close()), (Names{2, 3}));
  EXPECT_EQ(proposal_queue.push(late), ProposalQueue::PushResult::closed);
}

}  // namespace
}  // namespace tenure::server::raft
