#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/contract/queue.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(SemaphoreContract);
using LeaseContract = Contract;
INSTANTIATE_TEST_SUITE_P(Backends, LeaseContract, ::testing::ValuesIn(contract_backends()),
                         [](const auto& backend) { return backend.param.name; });

TEST_P(SemaphoreContract, granted_permits_never_exceed_the_capacity) {
  const auto semaphore = ann.semaphore("pool", {.capacity = 2});
  if (!supports(backends::Capability::semaphore)) {
    EXPECT_EQ(semaphore.acquire().error(), Errc::unsupported);
    return;
  }
  auto one = semaphore.acquire().value();
  const auto two = bob.semaphore("pool", {.capacity = 2}).try_acquire();
  ASSERT_TRUE(two);

  EXPECT_EQ(semaphore.try_acquire().error(), Errc::would_block);
  EXPECT_EQ(semaphore.try_acquire_for(5ms).error(), Errc::timed_out);
  EXPECT_EQ(semaphore.try_acquire({.count = 2, .delay = 1ms}).error(), Errc::would_block);
  EXPECT_TRUE(one.unlock());

  EXPECT_TRUE(semaphore.try_acquire());
}

TEST_P(SemaphoreContract, several_permits_are_acquired_at_once) {
  if (!supports(backends::Capability::semaphore)) {
    return;
  }
  const auto one = ann.semaphore("pool", {.capacity = 3}).acquire().value();

  EXPECT_FALSE(bob.semaphore("pool", {.capacity = 3, .taken_at_once = 3}).try_acquire());
  EXPECT_TRUE(bob.semaphore("pool", {.capacity = 3, .taken_at_once = 2}).try_acquire());
}

// Two programs that disagree on the capacity would both be wrong.
TEST_P(SemaphoreContract, a_different_capacity_is_rejected) {
  if (!supports(backends::Capability::semaphore)) {
    return;
  }
  const auto one = ann.semaphore("pool", {.capacity = 3}).acquire().value();

  EXPECT_EQ(bob.semaphore("pool", {.capacity = 4}).try_acquire().error(), Errc::invalid_argument);
  EXPECT_EQ(bob.semaphore("x", {.capacity = 0}).acquire().error(), Errc::invalid_argument);
  EXPECT_EQ(bob.semaphore("x", {.capacity = 1, .taken_at_once = 2}).acquire().error(),
            Errc::invalid_argument);
}

TEST_P(LeaseContract, locks_of_one_lease_end_with_it) {
  if (!supports(backends::Capability::one_lease)) {
    EXPECT_EQ(ann.lease().error(), Errc::unsupported);
    return;
  }
  const auto lease = ann.lease({.ttl = 10s}).value();
  auto a = ann.mutex("a", {.lease = lease}).lock().value();
  auto b = ann.mutex("b", {.lease = lease}).lock().value();
  EXPECT_TRUE(lease.is_alive());
  EXPECT_TRUE(lease.renew());

  EXPECT_TRUE(lease.revoke());

  EXPECT_FALSE(lease.is_alive());
  EXPECT_EQ(a.state(), GuardState::lost);
  EXPECT_EQ(b.unlock().error(), Errc::lease_lost);
  EXPECT_TRUE(a.lost().stop_requested());
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.revoke().error(), Errc::lease_lost);
  EXPECT_EQ(ann.mutex("a", {.lease = lease}).lock().error(), Errc::lease_lost);
  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
  EXPECT_TRUE(bob.mutex("b").try_lock_for(test_timeout));
}

TEST_P(LeaseContract, a_lease_lives_as_long_as_something_made_with_it) {
  if (!supports(backends::Capability::one_lease)) {
    return;
  }
  std::optional<Guard> guard;
  {
    const auto lease = ann.lease().value();
    guard = ann.mutex("a", {.lease = lease}).lock().value();
  }
  EXPECT_TRUE(guard->owns_lock());
  EXPECT_FALSE(bob.mutex("a").try_lock());

  guard.reset();

  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
}

// 002-B16, 000-B16: one explicit policy.
TEST_P(LeaseContract, a_self_blocking_request_fails_at_once) {
  if (!supports(backends::Capability::one_lease) || !supports(backends::Capability::deadlocks)) {
    return;
  }
  const auto lease = ann.lease().value();
  const auto mutex = ann.mutex("a", {.lease = lease});
  const auto guard = mutex.lock().value();

  EXPECT_EQ(mutex.lock().error(), Errc::deadlock);
}

// 000.064, 000-B16: reentry is counted, or it is no reentry.
TEST_P(LeaseContract, reentry_is_counted) {
  EXPECT_EQ(ann.mutex("a", {.reentry = Reentry::counted}).lock().error(), Errc::invalid_argument);
  if (!supports(backends::Capability::reentry)) {
    return;
  }
  const auto lease = ann.lease().value();
  const auto mutex = ann.mutex("a", {.lease = lease, .reentry = Reentry::counted});
  auto outer = mutex.lock().value();
  auto inner = mutex.lock().value();

  EXPECT_EQ(inner.token(), outer.token());
  EXPECT_TRUE(inner.unlock());
  EXPECT_FALSE(bob.mutex("a").try_lock());
  EXPECT_TRUE(outer.unlock());
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

TEST_P(LeaseContract, a_deadlock_is_reported_to_exactly_one_victim) {
  if (!supports(backends::Capability::deadlocks)) {
    return;
  }
  const auto anns = ann.lease().value();
  const auto bobs = bob.lease().value();
  QueueEvents queue(*service, ann, "b");
  auto a = ann.mutex("a", {.lease = anns}).lock().value();
  auto b = bob.mutex("b", {.lease = bobs}).lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(ann.mutex("b", {.lease = anns}).lock()); });
  ASSERT_TRUE(queue.one_joins());

  const auto refused = bob.mutex("a", {.lease = bobs}).lock();

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::deadlock);
  EXPECT_NE(refused.error().detail.find("bob waits for a"), std::string::npos)
      << refused.error().detail;
  EXPECT_TRUE(b.unlock());
}

// Threads without a lease of their own are not one owner: what looks like a cycle of two clients is
// none, since the threads that hold do not wait.
TEST_P(LeaseContract, waits_of_different_threads_of_a_client_make_no_deadlock) {
  QueueEvents queue_a(*service, ann, "a");
  QueueEvents queue_b(*service, ann, "b");
  auto a = ann.mutex("a").lock().value();
  auto b = bob.mutex("b").lock().value();
  std::jthread ann_waits([&] { EXPECT_TRUE(ann.mutex("b").lock()); });
  ASSERT_TRUE(queue_b.one_joins());
  std::jthread bob_waits([&] { EXPECT_TRUE(bob.mutex("a").lock()); });
  ASSERT_TRUE(queue_a.one_joins());

  EXPECT_TRUE(a.unlock());
  EXPECT_TRUE(b.unlock());
}

}  // namespace
}  // namespace tenure::test
