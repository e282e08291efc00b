#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "server/raft/intake.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::size_t plenty = 1'000'000;

/// Names a proposal by the lease that it revokes.
Proposal proposal(std::uint64_t lease, std::size_t bytes = 10) {
  return {
      .command = core::RevokeLease{.lease = core::LeaseId{lease}}, .decided = {}, .bytes = bytes};
}

void push(Intake& intake, std::initializer_list<std::uint64_t> leases, std::size_t bytes = 10) {
  for (const auto lease : leases) {
    auto one = proposal(lease, bytes);
    EXPECT_NE(intake.push(one), Intake::Answer::full);
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

TEST(RaftIntake, gives_the_oldest_first_however_few_are_taken) {
  Intake intake({});
  push(intake, {1, 2, 3, 4, 5});

  EXPECT_EQ(names(intake.take(2, plenty)), (Names{1, 2}));
  push(intake, {6});
  EXPECT_EQ(names(intake.take(1, plenty)), (Names{3}));
  EXPECT_FALSE(intake.rest());
  EXPECT_EQ(names(intake.take(plenty, plenty)), (Names{4, 5, 6}));
  EXPECT_TRUE(intake.rest());
  EXPECT_EQ(names(intake.take(plenty, plenty)), (Names{}));
}

TEST(RaftIntake, gives_as_many_bytes_as_fit_and_one_proposal_in_any_case) {
  Intake intake({});
  push(intake, {1, 2, 3}, 100);

  EXPECT_EQ(names(intake.take(plenty, 200)), (Names{1, 2}));
  EXPECT_EQ(names(intake.take(plenty, 1)), (Names{3}));
  EXPECT_TRUE(intake.rest());
}

TEST(RaftIntake, the_first_push_after_a_rest_has_to_wake) {
  Intake intake({});
  auto first = proposal(1);
  auto second = proposal(2);
  auto third = proposal(3);

  EXPECT_EQ(intake.push(first), Intake::Answer::queued_first);
  EXPECT_EQ(intake.push(second), Intake::Answer::queued);
  EXPECT_EQ(intake.take(plenty, plenty).size(), 2U);
  EXPECT_TRUE(intake.rest());
  EXPECT_EQ(intake.push(third), Intake::Answer::queued_first);
}

TEST(RaftIntake, what_was_taken_counts_until_it_is_finished) {
  Intake intake({.commands = 2, .bytes = plenty});
  push(intake, {1, 2});
  EXPECT_EQ(intake.take(1, plenty).size(), 1U);
  auto third = proposal(3);

  EXPECT_EQ(intake.push(third), Intake::Answer::full);
  intake.finished(1, 10);
  EXPECT_EQ(intake.push(third), Intake::Answer::queued);
}

TEST(RaftIntake, closing_gives_back_what_was_not_taken) {
  Intake intake({});
  push(intake, {1, 2, 3});
  EXPECT_EQ(intake.take(1, plenty).size(), 1U);
  auto late = proposal(4);

  EXPECT_EQ(names(intake.close()), (Names{2, 3}));
  EXPECT_EQ(intake.push(late), Intake::Answer::closed);
}

}  // namespace
}  // namespace tenure::server::raft
