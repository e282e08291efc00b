#include "backends/redlock/vote_count.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include "backends/redlock/commands.hpp"
#include "backends/redlock/margin.hpp"
#include "backends/redlock/servers.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using backends::redlock::Verdict;
using backends::redlock::VoteCount;

// 003.015
TEST(RedlockVoteCount, a_quorum_is_more_than_half) {
  EXPECT_EQ(VoteCount(1).quorum(), 1U);
  EXPECT_EQ(VoteCount(3).quorum(), 2U);
  EXPECT_EQ(VoteCount(4).quorum(), 3U);
  EXPECT_EQ(VoteCount(5).quorum(), 3U);
}

// 003-B6: who waits for the slowest waits for the one that hangs.
TEST(RedlockVoteCount, is_decided_before_all_have_answered) {
  VoteCount won(5);
  VoteCount lost(5);
  for (std::size_t server = 0; server < 3; ++server) {
    EXPECT_FALSE(won.is_won() || lost.is_hopeless());
    won.cast(server, Verdict::yes);
    lost.cast(server, Verdict::no);
  }

  EXPECT_TRUE(won.is_won());
  EXPECT_TRUE(lost.is_hopeless());
  EXPECT_TRUE(lost.is_refused());
}

// 003.024: who does not answer has not said no, either.
TEST(RedlockVoteCount, failures_make_it_hopeless_and_not_refused) {
  VoteCount count(5);
  for (std::size_t server = 0; server < 3; ++server) {
    count.cast(server, Verdict::failed);
  }

  EXPECT_TRUE(count.is_hopeless());
  EXPECT_FALSE(count.is_refused());
  EXPECT_EQ(count.open(), 2U);
}

TEST(RedlockVoteCount, the_first_word_of_a_server_counts) {
  VoteCount count(3);

  count.cast(0, Verdict::failed);
  count.cast(0, Verdict::yes);

  EXPECT_EQ(count.yes(), 0U);
  EXPECT_EQ(count.of(0), Verdict::failed);
}

// All ways in which five can vote: what is won is not hopeless, and two that are won share a
// server.
TEST(RedlockVoteCount, is_never_won_and_hopeless_at_once) {
  for (unsigned code = 0; code < 1024; ++code) {
    VoteCount count(5);
    for (std::size_t server = 0; server < 5; ++server) {
      count.cast(server, static_cast<Verdict>((code >> (2 * server)) & 3U));
    }
    EXPECT_FALSE(count.is_won() && count.is_hopeless());
    EXPECT_FALSE(count.is_refused() && !count.is_hopeless());
    EXPECT_EQ(count.yes() + count.no() + count.failed() + count.open(), 5U);
  }
}

// 003.017, 003-B7
TEST(RedlockVoteCount, the_margin_for_drift_is_one_percent_and_two_milliseconds) {
  EXPECT_EQ(backends::redlock::drift_margin(10s), 102ms);
}

// 003.016, 003-B15
TEST(RedlockVoteCount, each_acquisition_has_a_value_of_its_own) {
  using backends::RequestId;
  using backends::redlock::member_of;

  EXPECT_EQ(member_of(LeaseId{255}, RequestId{7}), "00000000000000ff.7");
  EXPECT_NE(member_of(LeaseId{255}, RequestId{8}), member_of(LeaseId{255}, RequestId{7}));
}

TEST(RedlockVoteCount, a_vote_says_until_when_it_is_wanted) {
  std::string vote = "…\r\n$16\r\n0000000000000000\r\n";

  backends::redlock::Commands::set_not_after(vote, 1'794'000'000'123'456);

  EXPECT_EQ(vote, "…\r\n$16\r\n1794000000123456\r\n");
}

}  // namespace
}  // namespace tenure::test
