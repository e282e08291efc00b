#include "backends/rpc/endpoint_selector.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::backends::tenured {
namespace {

using namespace std::chrono_literals;

const Endpoint a{.host = "a", .port = 1};
const Endpoint b{.host = "b", .port = 2};
const Endpoint c{.host = "c", .port = 3};
const Endpoint unlisted{.host = "d", .port = 4};
/// Random source that makes each pause the shortest one: half of its upper bound.
std::uint64_t shortest() {
  return 0;
}
const EndpointSelector::Clock::time_point now = EndpointSelector::Clock::now();

TEST(EndpointSelectorTest, the_first_round_has_no_delay_and_later_rounds_back_off) {
  EndpointSelector selector({a, b, c}, shortest);
  std::vector<Endpoint> seen;
  std::vector<EndpointSelector::Delay> pauses;

  for (int tries = 0; tries < 300; ++tries) {
    const auto [server, delay] = selector.next();
    seen.push_back(server);
    pauses.push_back(delay);
  }

  EXPECT_EQ(std::vector(seen.begin(), seen.begin() + 6), (std::vector{a, b, c, a, b, c}));
  EXPECT_EQ(std::vector(pauses.begin(), pauses.begin() + 7),
            (std::vector<EndpointSelector::Delay>{0ms, 0ms, 0ms, 10ms, 10ms, 10ms, 20ms}));
  EXPECT_TRUE(std::ranges::is_sorted(pauses));
  EXPECT_EQ(pauses.back(), EndpointSelector::retry_delay_max / 2);
}

TEST(EndpointSelectorTest, a_single_server_is_tried_at_once_and_then_with_backoff) {
  EndpointSelector selector({a}, shortest);
  EXPECT_EQ(selector.next().delay, 0ms);
  EXPECT_EQ(selector.next().delay, 10ms);

  selector.mark_healthy(a);

  EXPECT_EQ(selector.next().delay, 0ms);
}

TEST(EndpointSelectorTest, a_redirect_is_followed_at_once) {
  EndpointSelector selector({a, b, c});
  for (int tries = 0; tries < 10; ++tries) {
    (void)selector.next();
  }

  ASSERT_TRUE(selector.redirect_to(unlisted, now));

  EXPECT_EQ(selector.next().server, unlisted);
}

// Until there is a new leader the others name the one that has died.
TEST(EndpointSelectorTest, a_redirect_to_a_recently_failed_server_is_ignored) {
  EndpointSelector selector({a, b, c});
  selector.mark_failed(b, now);

  EXPECT_FALSE(selector.redirect_to(b, now + EndpointSelector::failure_cooldown - 1ms));
  EXPECT_TRUE(selector.redirect_to(b, now + EndpointSelector::failure_cooldown));
}

TEST(EndpointSelectorTest, a_healthy_server_clears_its_failure) {
  EndpointSelector selector({a, b, c});
  (void)selector.next();
  selector.mark_failed(b, now);
  selector.mark_healthy(b);

  EXPECT_TRUE(selector.redirect_to(b, now));
}

// Two servers that name each other would keep us busy for ever.
TEST(EndpointSelectorTest, a_chain_of_redirects_is_bounded) {
  EndpointSelector selector({a, b});
  std::size_t followed = 0;

  while (selector.redirect_to(followed % 2 == 0 ? a : b, now)) {
    (void)selector.next();
    ++followed;
  }

  EXPECT_EQ(followed, EndpointSelector::redirects_max);
  // After the pauses of a round they are heard again.
  while (selector.next().delay == 0ms) {
  }
  EXPECT_TRUE(selector.redirect_to(a, now));
}

// While the leadership moves, the old leader and the new one name each other for a moment: a client
// that had had enough of it stayed half a second with the wrong one.
TEST(EndpointSelectorTest, redirects_are_followed_again_after_a_reset) {
  EndpointSelector selector({a, b});
  while (selector.redirect_to(b, now)) {
    (void)selector.next();
  }

  selector.reset_redirects();

  EXPECT_TRUE(selector.redirect_to(b, now));
}

// Members change: all that the URL names may be gone one day.
TEST(EndpointSelectorTest, former_leaders_are_remembered_up_to_a_limit) {
  EndpointSelector selector({a});
  for (std::uint16_t port = 1; port <= 20; ++port) {
    const Endpoint leader{.host = "new", .port = port};
    ASSERT_TRUE(selector.redirect_to(leader, now));
    ASSERT_EQ(selector.next().server, leader);
    selector.mark_healthy(leader);
  }

  EXPECT_EQ(selector.size(), 1 + EndpointSelector::learned_max);
  std::set<std::string> names;
  for (std::size_t tries = 0; tries < selector.size(); ++tries) {
    names.insert(name_of(selector.next().server));
  }
  EXPECT_TRUE(names.contains("a:1"));
  EXPECT_TRUE(names.contains("new:20"));
  EXPECT_FALSE(names.contains("new:1"));
}

TEST(EndpointSelectorTest, an_endpoint_is_parsed_and_an_unusable_one_is_rejected) {
  EXPECT_EQ(endpoint_from("db1.example:7420"), (Endpoint{.host = "db1.example", .port = 7420}));
  EXPECT_EQ(endpoint_from("[::1]:7420"), (Endpoint{.host = "::1", .port = 7420}));
  EXPECT_EQ(name_of(*endpoint_from("[::1]:7420")), "[::1]:7420");

  for (const auto* wrong : {"", "db1", ":7420", "db1:", "db1:0", "db1:65536", "db1:7420x",
                            "0.0.0.0:7420", "[::]:7420", "a b:1", "a/b:1", "a\n:1"}) {
    EXPECT_EQ(endpoint_from(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(endpoint_from(std::string(300, 'a') + ":1"), std::nullopt);
}

}  // namespace
}  // namespace tenure::backends::tenured
