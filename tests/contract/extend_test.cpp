#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

TENURE_CONTRACT(ExtendContract);

constexpr auto test_timeout = 20s;

// 003.006
TEST_P(ExtendContract, a_longer_ttl_is_valid_longer_and_stays) {
  auto guard = ann.mutex("a", {.ttl = 1s}).lock().value();
  if (!supports(backends::Capability::new_ttl)) {
    EXPECT_EQ(guard.extend(60s).error(), Errc::unsupported);
    return;
  }
  const auto before = steady_clock::now();

  const auto extended = guard.extend(60s);

  ASSERT_TRUE(extended) << to_string(extended.error());
  EXPECT_GT(guard.valid_until(), before + 59s);
  EXPECT_LT(guard.valid_until(), steady_clock::now() + 60s);
  EXPECT_TRUE(guard.extend());
  EXPECT_GT(guard.valid_until(), before + 59s) << "a renewal without a ttl counts the same";
  EXPECT_EQ(guard.state(), GuardState::held);
}

// 003.006: client and service both count the TTL. Without a renewal the next waiter is granted when
// it has passed.
TEST_P(ExtendContract, a_shorter_ttl_ends_sooner_for_the_holder_and_then_for_the_service) {
  if (!supports(backends::Capability::new_ttl)) {
    return;
  }
  auto guard = ann.mutex("a", {.ttl = 60s, .renewals_per_ttl = 0}).lock().value();

  ASSERT_TRUE(guard.extend(200ms));
  EXPECT_LT(guard.valid_until(), steady_clock::now() + 200ms);
  const auto next = bob.mutex("a").try_lock_for(test_timeout);

  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_EQ(guard.state(), GuardState::lost);
  EXPECT_TRUE(guard.lost().stop_requested());
}

// 003.006: renewed every third of the new one, and so kept for several times as long.
TEST_P(ExtendContract, a_shorter_ttl_is_kept_by_renewals_of_its_own) {
  if (!supports(backends::Capability::new_ttl)) {
    return;
  }
  auto guard = ann.mutex("a", {.ttl = 60s}).lock().value();
  ASSERT_TRUE(guard.extend(1s));
  const auto first_end = guard.valid_until();

  EXPECT_TRUE(eventually([&] { return steady_clock::now() > first_end + 200ms; }));

  EXPECT_TRUE(guard.owns_lock());
  EXPECT_LT(guard.valid_until(), steady_clock::now() + 1s);
  EXPECT_FALSE(bob.mutex("a").try_lock());
  EXPECT_TRUE(guard.unlock());
}

// 003.006, 003-B17
TEST_P(ExtendContract, a_ttl_outside_the_limits_is_rejected_and_changes_nothing) {
  const auto limits = service->open()->limits();
  auto guard = ann.mutex("a", {.ttl = 60s}).lock().value();
  const auto before = guard.valid_until();

  EXPECT_EQ(guard.extend(0ms).error(), Errc::invalid_argument);
  EXPECT_EQ(guard.extend(-1s).error(), Errc::invalid_argument);
  EXPECT_EQ(guard.extend(limits.ttl_min - 1ms).error(), Errc::invalid_argument);
  EXPECT_EQ(guard.extend(limits.ttl_max + 1ms).error(), Errc::invalid_argument);

  EXPECT_GE(guard.valid_until() + 1ms, before);
  EXPECT_TRUE(guard.unlock());
  EXPECT_EQ(guard.extend(60s).error(), Errc::not_held);
}

// 003.006: one lease, one ttl.
TEST_P(ExtendContract, extending_a_lease_or_one_of_its_guards_extends_all_its_locks) {
  if (!supports(backends::Capability::new_ttl) || !supports(backends::Capability::one_lease)) {
    return;
  }
  const auto lease = ann.lease({.ttl = 1s}).value();
  auto first = ann.mutex("a", {.lease = lease}).lock().value();
  auto second = ann.mutex("b", {.lease = lease}).lock().value();

  ASSERT_TRUE(lease.renew(30s));
  EXPECT_GT(first.valid_until(), steady_clock::now() + 20s);
  ASSERT_TRUE(second.extend(60s));

  EXPECT_GT(first.valid_until(), steady_clock::now() + 50s);
  EXPECT_GT(lease.valid_until(), steady_clock::now() + 50s);
  EXPECT_EQ(lease.renew(0ms).error(), Errc::invalid_argument);
}

// The lease of a hold is used again by later ones, but not for another ttl than they ask for.
TEST_P(ExtendContract, the_next_hold_has_the_ttl_it_asks_for) {
  if (!supports(backends::Capability::new_ttl)) {
    return;
  }
  auto guard = ann.mutex("a", {.ttl = 60s}).lock().value();
  ASSERT_TRUE(guard.extend(5s));
  ASSERT_TRUE(guard.unlock());

  const auto next = ann.mutex("a", {.ttl = 60s}).lock().value();
  const auto other = ann.mutex("b", {.ttl = 5s}).lock().value();

  EXPECT_GT(next.valid_until(), steady_clock::now() + 50s);
  EXPECT_LT(other.valid_until(), steady_clock::now() + 5s);
}

// 003.006, 003-B12: without a reply the client must not trust the lease longer than the service.
TEST_P(ExtendContract, without_a_reply_the_shorter_ttl_counts) {
  if (!supports(backends::Capability::new_ttl)) {
    return;
  }
  const auto network = std::make_shared<Network>();
  const auto cut = connect({.owner = "cut", .request_timeout = 10ms}, network);
  auto shorter = cut.mutex("a", {.ttl = 60s}).lock().value();
  auto longer = cut.mutex("b", {.ttl = 10s}).lock().value();
  network->is_silent = true;

  EXPECT_EQ(shorter.extend(5s).error(), Errc::unavailable);
  EXPECT_EQ(longer.extend(60s).error(), Errc::unavailable);

  EXPECT_LT(shorter.valid_until(), steady_clock::now() + 5s);
  EXPECT_LT(longer.valid_until(), steady_clock::now() + 10s);
  EXPECT_EQ(shorter.extend(60s).error(), Errc::unavailable) << "one at a time";
  EXPECT_TRUE(shorter.owns_lock());
}

}  // namespace
}  // namespace tenure::test
