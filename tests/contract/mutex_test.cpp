#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>
#include <tenure/client/std_lockable.hpp>

#include "support/contract/contract.hpp"
#include "support/contract/queue.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(MutexContract);

// 000.041, 000.042, 000.051, 003.004, 003.005, 003.011: at most one holds it.
TEST_P(MutexContract, a_held_lock_is_refused_to_other_clients) {
  auto guard = ann.mutex("a").lock();
  const auto refused = bob.mutex("a").try_lock();

  ASSERT_TRUE(guard);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::would_block);
  EXPECT_TRUE(guard->owns_lock());
  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// 000-B1: an owner is a label; two holders of one object would both write.
TEST_P(MutexContract, a_shared_lock_object_excludes_its_threads) {
  const auto mutex = ann.mutex("a");
  const auto guard = mutex.lock();

  EXPECT_EQ(mutex.try_lock().error(), Errc::would_block);
}

// 003.014: one object used by many threads at once.
TEST_P(MutexContract, a_counter_under_the_lock_loses_nothing) {
  const auto mutex = ann.mutex("counter");
  constexpr int rounds = 200;
  int counter = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          const auto guard = mutex.lock();
          ASSERT_TRUE(guard) << to_string(guard.error());
          ++counter;
        }
      });
    }
  }

  EXPECT_EQ(counter, 4 * rounds);
}

// 000.048, 000.098: an explicit unlock() is not necessary.
TEST_P(MutexContract, a_destroyed_guard_releases_its_lock) {
  {
    const auto guard = ann.mutex("a").lock();
  }

  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
}

// 000.041: waits as long as it takes.
TEST_P(MutexContract, lock_waits_for_the_holder) {
  QueueEvents queue(*service, ann, "a");
  auto guard = ann.mutex("a").lock().value();
  std::atomic<bool> is_in = false;
  std::jthread waiter([&] {
    const auto mine = bob.mutex("a").lock();
    is_in = mine.has_value();
  });
  ASSERT_TRUE(queue.one_joins());
  EXPECT_FALSE(is_in);

  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_TRUE(is_in);
}

// 000.043-046, 000-B12: one error for a given form, whatever the interval.
TEST_P(MutexContract, a_bounded_wait_ends_with_timed_out_and_leaves_no_trace) {
  auto guard = ann.mutex("a").lock().value();

  const auto began = std::chrono::steady_clock::now();
  const auto late = bob.mutex("a").try_lock_for(20ms);
  EXPECT_EQ(late.error(), Errc::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  const auto deadline = std::chrono::steady_clock::now() + 20ms;
  EXPECT_EQ(bob.mutex("a").try_lock_until(deadline).error(), Errc::timed_out);
  EXPECT_TRUE(guard.unlock());

  // Had it stayed in the queue, it would have been granted now.
  EXPECT_TRUE(ann.mutex("a").try_lock());
}

// 000.006, 000.044, 000.047: zero is one attempt.
TEST_P(MutexContract, a_timeout_of_zero_tries_once) {
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_EQ(bob.mutex("a").try_lock_for(0ms).error(), Errc::would_block);
  EXPECT_TRUE(bob.mutex("b").try_lock_for(0ms));
}

// 000.021, 000.030: max_wait bounds lock().
TEST_P(MutexContract, max_wait_bounds_lock) {
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_EQ(bob.mutex("a", {.max_wait = 10ms}).lock().error(), Errc::timed_out);
}

// 003.004, 003-B5: a wait can be cancelled.
TEST_P(MutexContract, a_cancelled_wait_leaves_the_queue) {
  QueueEvents queue(*service, ann, "a");
  auto guard = ann.mutex("a").lock().value();
  std::stop_source hurry;
  std::optional<Errc> end;
  {
    const std::jthread waiter([&] {
      const auto mine = bob.mutex("a").lock(hurry.get_token());
      end = mine ? std::nullopt : std::optional(mine.error().code);
    });
    ASSERT_TRUE(queue.one_joins());
    hurry.request_stop();
  }

  EXPECT_EQ(end, Errc::cancelled);
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(ann.mutex("a").try_lock());
}

TEST_P(MutexContract, a_request_cancelled_in_advance_is_not_sent) {
  std::stop_source stopped;
  stopped.request_stop();

  EXPECT_EQ(ann.mutex("a").lock(stopped.get_token()).error(), Errc::cancelled);
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// 000.052, 000.022, 003.008, 003-B1: attempts are counted, reported and limited.
TEST_P(MutexContract, attempts_are_bounded_and_reported) {
  auto guard = ann.mutex("a").lock().value();

  const auto refused = bob.mutex("a").try_lock({.count = 3, .delay = 1ms});
  EXPECT_EQ(refused.error(), Errc::would_block);
  EXPECT_NE(refused.error().detail.find("3 attempts"), std::string::npos);
  EXPECT_TRUE(guard.unlock());
  const auto got = bob.mutex("a").try_lock({.count = 3, .delay = 1ms});

  ASSERT_TRUE(got);
  EXPECT_EQ(got->report().attempts, 1);
  EXPECT_EQ(bob.mutex("a").try_lock({.count = 0}).error(), Errc::invalid_argument);
}

// 000-B28: how it was acquired.
TEST_P(MutexContract, a_guard_reports_how_long_it_waited_and_where) {
  QueueEvents queue(*service, ann, "a");
  auto guard = ann.mutex("a").lock().value();
  EXPECT_EQ(guard.report().queue_position, 0U);
  AcquisitionReport report;
  std::jthread waiter([&] { report = bob.mutex("a").lock().value().report(); });
  ASSERT_TRUE(queue.one_joins());

  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_EQ(report.attempts, 1);
  EXPECT_GT(report.waited, 0ns);
  if (supports(backends::Capability::fifo)) {
    EXPECT_EQ(report.queue_position, 1U);
  }
}

// 002.096: strict arrival order.
TEST_P(MutexContract, waiters_acquire_the_lock_in_arrival_order) {
  if (!supports(backends::Capability::fifo)) {
    GTEST_SUCCEED() << "declared: no order";
    return;
  }
  QueueEvents queue(*service, ann, "a");
  auto guard = ann.mutex("a").lock().value();
  std::vector<int> order;
  std::vector<std::jthread> waiters;
  for (int i = 0; i < 5; ++i) {
    waiters.emplace_back([&, i] {
      const auto mine = (i % 2 == 0 ? ann : bob).mutex("a").lock().value();
      order.push_back(i);
    });
    ASSERT_TRUE(queue.one_joins());
  }

  EXPECT_TRUE(guard.unlock());
  waiters.clear();

  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

// A grant in random order would starve waiters.
TEST_P(MutexContract, a_token_is_larger_than_those_of_all_earlier_holders) {
  if (!supports(backends::Capability::fencing)) {
    GTEST_SUCCEED() << "declared: no fencing";
    return;
  }
  FencingToken last{};
  for (int i = 0; i < 20; ++i) {
    auto guard = (i % 2 == 0 ? ann : bob).mutex("a").lock().value();
    EXPECT_GT(guard.token(), last);
    last = guard.token();
    if (i % 3 == 0) {
      // A concurrent request uses another path through the service.
      EXPECT_FALSE(ann.mutex("a").try_lock());
    }
    EXPECT_EQ(guard.token(), last);
    EXPECT_TRUE(guard.unlock());
  }
}

// 000.049, 000.050, 000.095, 000.097, 003.007, 003.012, 001-B7
TEST_P(MutexContract, unlocking_twice_is_not_held) {
  auto guard = ann.mutex("a").lock().value();
  EXPECT_EQ(guard.state(), GuardState::held);

  EXPECT_TRUE(guard.unlock());

  EXPECT_EQ(guard.state(), GuardState::released);
  EXPECT_FALSE(guard.owns_lock());
  EXPECT_EQ(guard.unlock().error(), Errc::not_held);
  EXPECT_EQ(guard.extend().error(), Errc::not_held);
}

TEST_P(MutexContract, a_moved_from_guard_holds_nothing) {
  auto first = ann.mutex("a").lock().value();
  auto second = std::move(first);

  // NOLINTBEGIN(bugprone-use-after-move): what it answers then is what this is about.
  EXPECT_FALSE(first.owns_lock());
  EXPECT_EQ(first.unlock().error(), Errc::not_held);
  EXPECT_EQ(first.extend().error(), Errc::not_held);
  EXPECT_FALSE(first.lost().stop_requested());
  EXPECT_EQ(first.token(), FencingToken{});
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_TRUE(second.owns_lock());
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
}

TEST_P(MutexContract, move_assignment_releases_the_lock_of_the_target) {
  auto guard = ann.mutex("a").lock().value();
  guard = ann.mutex("b").lock().value();

  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
  EXPECT_EQ(guard.name(), "b");
}

// 003.006, 003.013: extend() renews.
TEST_P(MutexContract, extend_gives_a_full_ttl_again) {
  auto guard = ann.mutex("a", {.ttl = 10s}).lock().value();
  const auto before = guard.valid_until();

  EXPECT_TRUE(guard.extend());

  EXPECT_GE(guard.valid_until() + 1ms, before);
  EXPECT_LT(guard.valid_until(), std::chrono::steady_clock::now() + 10s);
}

// 000.018: environments do not meet.
TEST_P(MutexContract, a_prefix_keeps_environments_apart) {
  const auto test = connect({.key_prefix = "test/"});
  const auto guard = test.mutex("a").lock().value();

  EXPECT_TRUE(ann.mutex("a").try_lock());
  EXPECT_FALSE(ann.mutex("test/a").try_lock());
  EXPECT_EQ(guard.name(), "test/a");
}

TEST_P(MutexContract, several_names_are_acquired_all_or_none) {
  if (!supports(backends::Capability::several_names)) {
    EXPECT_EQ(ann.lock_all({"a", "b"}).error(), Errc::unsupported);
    return;
  }
  auto other = bob.mutex("b").lock().value();

  EXPECT_EQ(ann.all_of({"a", "b"}).try_lock().error(), Errc::would_block);
  EXPECT_TRUE(bob.mutex("a").try_lock());
  EXPECT_TRUE(other.unlock());
  const auto both = ann.lock_all({"b", "a"});

  ASSERT_TRUE(both);
  EXPECT_FALSE(bob.mutex("a").try_lock());
  EXPECT_FALSE(bob.mutex("b").try_lock());
}

// 000.003: locking with a callback.
TEST_P(MutexContract, with_lock_runs_under_the_lock_and_releases_it) {
  const auto seen = ann.with_lock("a", [&](const Guard& guard) {
    EXPECT_FALSE(bob.mutex("a").try_lock());
    return guard.token();
  });
  const auto nothing = ann.with_lock("a", [] {});

  ASSERT_TRUE(seen);
  EXPECT_GT(*seen, FencingToken{});
  EXPECT_TRUE(nothing);
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

TEST_P(MutexContract, std_scoped_lock_locks_it_together_with_a_local_mutex) {
  StdLockable remote(ann.mutex("a"));
  std::mutex local;
  {
    const std::scoped_lock both(remote, local);
    EXPECT_TRUE(remote.guard().owns_lock());
    EXPECT_FALSE(bob.mutex("a").try_lock());
  }

  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// 000-B15: the grant and the cancellation race: the lock is held or free, and the caller learns
// which.
TEST_P(MutexContract, a_grant_that_races_with_its_cancellation_is_kept_or_released) {
  for (int i = 0; i < 200; ++i) {
    auto guard = ann.mutex("a").try_lock_for(std::chrono::microseconds(10 * i));
    if (guard) {
      EXPECT_FALSE(bob.mutex("a").try_lock());
      const auto given_back = guard->unlock();
      EXPECT_TRUE(given_back) << to_string(given_back.error());
    } else {
      EXPECT_EQ(guard.error(), i == 0 ? guard.error().code : Errc::timed_out);
    }
    EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
  }
}

}  // namespace
}  // namespace tenure::test
