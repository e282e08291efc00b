#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/coroutine.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto minimum = 700ms;

class HoldAtLeastContract : public Contract {
 protected:
  /// Options whose TTL is much longer than the minimum, so that the tests distinguish them.
  static LockOptions options() { return {.ttl = 60s, .hold_at_least = minimum}; }

  /// True if the backend supports the option; verifies that it is refused otherwise.
  [[nodiscard]] bool is_supported() {
    if (supports(backends::Capability::new_ttl)) {
      return true;
    }
    EXPECT_EQ(ann.mutex("a", options()).lock().error(), Errc::unsupported);
    return false;
  }

  /// Expects that the lock stays held for `minimum` after `granted`, but not for its whole TTL.
  void expect_free_at_minimum(steady_clock::time_point granted) {
    const auto next = bob.mutex("a").try_lock_for(test_timeout);
    ASSERT_TRUE(next) << to_string(next.error());
    EXPECT_GE(steady_clock::now(), granted + minimum);
  }
};

/// Result of a coroutine.
struct Outcome {
  steady_clock::duration left{};           ///< Time until the end of the lease after the grant.
  std::optional<Result<void>> unlocked{};  ///< Absent without a grant.
  std::atomic<bool> is_done = false;
};

Detached lock_and_unlock(Mutex mutex, std::shared_ptr<Outcome> outcome) {
  {
    auto guard = co_await mutex.lock_async();
    if (guard) {
      outcome->unlocked = co_await guard->unlock_async();
    }
  }
  outcome->is_done = true;
}

Detached lock_and_measure(Mutex mutex, std::shared_ptr<Outcome> outcome) {
  auto guard = co_await mutex.lock_async();
  if (guard) {
    outcome->left = guard->valid_until() - steady_clock::now();
  }
  outcome->is_done = true;
}

INSTANTIATE_TEST_SUITE_P(Backends, HoldAtLeastContract, ::testing::ValuesIn(contract_backends()),
                         [](const auto& backend) { return backend.param.name; });

TEST_P(HoldAtLeastContract, an_early_unlock_leaves_the_lock_held_for_the_minimum_time) {
  if (!is_supported()) {
    return;
  }
  const auto before = steady_clock::now();
  auto guard = ann.mutex("a", options()).lock().value();

  const auto unlocked = guard.unlock();

  EXPECT_TRUE(unlocked) << to_string(unlocked.error());
  EXPECT_EQ(guard.state(), GuardState::released);
  expect_free_at_minimum(before);
}

// The destructor of the client revokes its leases, except those that it has left.
TEST_P(HoldAtLeastContract, a_dropped_guard_leaves_the_lock_held_after_its_client_is_destroyed) {
  if (!is_supported()) {
    return;
  }
  std::optional<steady_clock::time_point> before;
  {
    const auto short_lived = connect({.owner = "cid"});
    before = steady_clock::now();
    const auto guard = short_lived.mutex("a", options()).lock().value();
  }
  expect_free_at_minimum(*before);
}

TEST_P(HoldAtLeastContract, an_unlock_after_the_minimum_time_frees_the_lock_at_once) {
  if (!is_supported()) {
    return;
  }
  auto guard = ann.mutex("a", options()).lock().value();
  const auto end = steady_clock::now() + minimum;
  ASSERT_TRUE(eventually([&] { return steady_clock::now() > end; }));
  EXPECT_TRUE(guard.owns_lock());

  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// The local validity ends before the TTL, and the client revokes a lease that has expired locally.
TEST_P(HoldAtLeastContract, a_hold_without_renewals_lasts_for_the_minimum_time) {
  if (!is_supported()) {
    return;
  }
  const auto before = steady_clock::now();
  auto guard = ann.mutex("a", {.ttl = 200ms, .renewals_per_ttl = 0, .hold_at_least = minimum})
                   .lock()
                   .value();
  EXPECT_GE(guard.valid_until(), before + minimum);

  expect_free_at_minimum(before);

  EXPECT_EQ(guard.state(), GuardState::lost);
}

// The service confirms the last renewal; its lease has ended for the client by then.
TEST_P(HoldAtLeastContract, an_early_unlock_of_a_coroutine_succeeds) {
  if (!is_supported()) {
    return;
  }
  const auto outcome = std::make_shared<Outcome>();
  lock_and_unlock(ann.mutex("a", options()), outcome);

  ASSERT_TRUE(eventually([&] { return outcome->is_done.load(); }));
  ASSERT_TRUE(outcome->unlocked);
  EXPECT_TRUE(outcome->unlocked->has_value()) << to_string(outcome->unlocked->error());
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
}

// A coroutine whose renewal gets no reply must not keep the client alive, nor destroy it on a
// thread of its own. The lock is not left without an owner.
TEST_P(HoldAtLeastContract, a_coroutine_without_a_reply_fails_and_frees_the_lock) {
  if (!is_supported()) {
    return;
  }
  const auto network = std::make_shared<Network>();
  network->loses_ttl_changes = true;
  const auto outcome = std::make_shared<Outcome>();
  lock_and_unlock(connect({.owner = "cut", .request_timeout = 1s}, network).mutex("a", options()),
                  outcome);

  ASSERT_TRUE(eventually([&] { return outcome->is_done.load(); }));

  EXPECT_FALSE(outcome->unlocked);
  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
}

// A waiter's lease is renewed while it waits, so at the grant less than a TTL may be left.
TEST_P(HoldAtLeastContract, the_minimum_time_counts_from_the_grant_to_a_waiter) {
  if (!is_supported()) {
    return;
  }
  auto first = bob.mutex("a").lock().value();
  auto options_of_waiter = options();
  options_of_waiter.ttl = 1s;
  options_of_waiter.hold_at_least = 30s;
  const auto cid = connect({.owner = "cid"});
  const auto outcome = std::make_shared<Outcome>();
  lock_and_measure(cid.mutex("a", options_of_waiter), outcome);

  EXPECT_TRUE(first.unlock());

  ASSERT_TRUE(eventually([&] { return outcome->is_done.load(); }));
  EXPECT_GT(outcome->left, 25s);
}

TEST_P(HoldAtLeastContract, invalid_minimum_times_are_rejected) {
  const auto limits = service->open()->limits();
  EXPECT_EQ(ann.mutex("a", {.hold_at_least = -1ms}).lock().error(), Errc::invalid_argument);
  EXPECT_EQ(ann.mutex("a", {.hold_at_least = limits.ttl_max + 1ms}).lock().error(),
            Errc::invalid_argument);
  if (!supports(backends::Capability::one_lease)) {
    return;
  }
  const auto lease = ann.lease().value();
  EXPECT_EQ(ann.mutex("a", {.hold_at_least = 1s, .lease = lease}).lock().error(),
            Errc::invalid_argument);
}

}  // namespace
}  // namespace tenure::test
