#include "backends/redlock/vote_tally.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include "backends/redlock/command_encoder.hpp"
#include "backends/redlock/drift_margin.hpp"
#include "backends/redlock/url.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using backends::redlock::Verdict;
using backends::redlock::VoteTally;

// 003.015
TEST(RedlockVoteTally, a_quorum_is_more_than_half) {
  EXPECT_EQ(VoteTally(1).quorum(), 1U);
  EXPECT_EQ(VoteTally(3).quorum(), 2U);
  EXPECT_EQ(VoteTally(4).quorum(), 3U);
  EXPECT_EQ(VoteTally(5).quorum(), 3U);
}

// 003-B6: a call that waits for the slowest server waits for a hung one.
TEST(RedlockVoteTally, a_tally_is_decided_before_all_servers_reply) {
  VoteTally won(5);
  VoteTally lost(5);
  for (std::size_t server = 0; server < 3; ++server) {
    EXPECT_FALSE(won.is_won() || lost.cannot_win());
    won.cast(server, Verdict::yes);
    lost.cast(server, Verdict::no);
  }

  EXPECT_TRUE(won.is_won());
  EXPECT_TRUE(lost.cannot_win());
  EXPECT_TRUE(lost.is_refused());
}

// 003.024: a missing reply is not a refusal.
TEST(RedlockVoteTally, failures_prevent_a_win_without_a_refusal) {
  VoteTally count(5);
  for (std::size_t server = 0; server < 3; ++server) {
    count.cast(server, Verdict::failed);
  }

  EXPECT_TRUE(count.cannot_win());
  EXPECT_FALSE(count.is_refused());
  EXPECT_EQ(count.open(), 2U);
}

TEST(RedlockVoteTally, the_first_verdict_of_a_server_counts) {
  VoteTally count(3);

  count.cast(0, Verdict::failed);
  count.cast(0, Verdict::yes);

  EXPECT_EQ(count.yes(), 0U);
  EXPECT_EQ(count.of(0), Verdict::failed);
}

// All combinations of five verdicts.
TEST(RedlockVoteTally, a_tally_is_never_won_and_unwinnable_at_once) {
  for (unsigned code = 0; code < 1024; ++code) {
    VoteTally count(5);
    for (std::size_t server = 0; server < 5; ++server) {
      count.cast(server, static_cast<Verdict>((code >> (2 * server)) & 3U));
    }
    EXPECT_FALSE(count.is_won() && count.cannot_win());
    EXPECT_FALSE(count.is_refused() && !count.cannot_win());
    EXPECT_EQ(count.yes() + count.no() + count.failed() + count.open(), 5U);
  }
}

// 003.017, 003-B7
TEST(RedlockVoteTally, the_margin_for_drift_is_one_percent_and_two_milliseconds) {
  EXPECT_EQ(backends::redlock::drift_margin(10s), 102ms);
}

// 003.016, 003-B15
TEST(RedlockVoteTally, each_acquisition_has_its_own_member_id) {
  using backends::RequestId;
  using backends::redlock::member_of;

  EXPECT_EQ(member_of(LeaseId{255}, RequestId{7}), "00000000000000ff.7");
  EXPECT_NE(member_of(LeaseId{255}, RequestId{8}), member_of(LeaseId{255}, RequestId{7}));
}

TEST(RedlockVoteTally, a_vote_carries_its_deadline) {
  std::string vote = "…\r\n$16\r\n0000000000000000\r\n";

  backends::redlock::CommandEncoder::set_not_after(vote, 1'794'000'000'123'456);

  EXPECT_EQ(vote, "…\r\n$16\r\n1794000000123456\r\n");
}

}  // namespace
}  // namespace tenure::test
