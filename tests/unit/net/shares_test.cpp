#include "net/shares.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <gtest/gtest.h>

#include "net/handshake_limiter.hpp"

namespace tenure::net {
namespace {

using namespace std::chrono_literals;

TEST(Shares, a_party_gets_three_quarters_and_another_the_rest) {
  Shares shares(Shares::three_quarters_of(4));
  std::vector<Shares::Share> taken;
  for (int n = 0; n < 3; ++n) {
    auto share = shares.take("a");
    ASSERT_TRUE(share);
    taken.push_back(*std::move(share));
  }
  EXPECT_FALSE(shares.take("a"));
  auto other = shares.take("b");
  ASSERT_TRUE(other);
  EXPECT_FALSE(shares.take("c"));
  EXPECT_EQ(shares.taken(), 4U);

  taken.pop_back();

  EXPECT_EQ(shares.taken(), 3U);
  EXPECT_TRUE(shares.take("c"));
}

TEST(Shares, a_limit_of_one_can_be_used) {
  Shares shares(Shares::three_quarters_of(1));
  auto share = shares.take("a");
  ASSERT_TRUE(share);
  share->release();
  EXPECT_TRUE(shares.take("b"));
}

TEST(Shares, an_ipv6_client_is_known_by_its_network) {
  EXPECT_EQ(network_of("10.0.0.1:80"), "10.0.0.1");
  EXPECT_EQ(network_of("[2001:db8::1]:80"), network_of("[2001:db8::2]:81"));
  EXPECT_NE(network_of("[2001:db8::1]:80"), network_of("[2001:db8:0:1::1]:80"));
  EXPECT_EQ(network_of(boost::asio::ip::make_address("::ffff:10.0.0.1")), "10.0.0.1");
}

TEST(HandshakeLimiter, a_network_does_not_exhaust_the_handshakes_of_a_second) {
  HandshakeLimiter limiter({.in_progress = {.total_max = 100, .each_max = 100},
                            .per_second = {.total_max = 4, .each_max = 2}});
  const auto now = HandshakeLimiter::Clock::now();
  EXPECT_TRUE(limiter.admit("a", now));
  EXPECT_TRUE(limiter.admit("a", now));
  EXPECT_FALSE(limiter.admit("a", now));
  EXPECT_TRUE(limiter.admit("b", now));
  EXPECT_TRUE(limiter.admit("b", now));
  EXPECT_FALSE(limiter.admit("c", now));

  EXPECT_FALSE(limiter.admit("a", now + 999ms));
  EXPECT_TRUE(limiter.admit("a", now + 1s));
}

TEST(HandshakeLimiter, handshakes_in_progress_are_limited_until_they_end) {
  HandshakeLimiter limiter({.in_progress = {.total_max = 2, .each_max = 1},
                            .per_second = {.total_max = 100, .each_max = 100}});
  const auto now = HandshakeLimiter::Clock::now();
  auto first = limiter.admit("a", now);
  ASSERT_TRUE(first);
  EXPECT_FALSE(limiter.admit("a", now));
  const auto second = limiter.admit("b", now);
  EXPECT_TRUE(second);
  EXPECT_FALSE(limiter.admit("c", now));

  first->release();

  EXPECT_TRUE(limiter.admit("c", now));
}

}  // namespace
}  // namespace tenure::net
