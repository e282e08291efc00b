#include "support/coroutine.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/process_counts.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(CoroutineContract);

// A late coroutine is not awaited: its result outlives a test that has timed out.

/// Steps of a lock that the test observed.
struct Story {
  std::optional<Result<FencingToken>> outcome{};
  std::atomic<bool> is_done = false;
};

/// Locks and records the result.
Detached lock_and_tell(Mutex mutex, std::shared_ptr<Story> story, std::stop_token cancel = {}) {
  {
    auto guard = co_await mutex.lock_async(cancel);
    story->outcome = guard ? Result<FencingToken>(guard->token()) : std::unexpected(guard.error());
  }
  story->is_done = true;
}

using Count = std::shared_ptr<std::atomic<int>>;

Detached count_in(RwLock lock, Count entered) {
  const auto guard = co_await lock.lock_shared_async();
  *entered += guard ? 1 : 0;
}
Detached count_in(Mutex mutex, Count entered) {
  const auto guard = co_await mutex.lock_async();
  *entered += guard ? 1 : 0;
}

// 000.010
TEST_P(CoroutineContract, a_free_lock_is_acquired) {
  const auto story = std::make_shared<Story>();

  lock_and_tell(ann.mutex("a"), story);

  // In this process without suspending.
  EXPECT_TRUE(story->is_done || supports(backends::Capability::outlives_process));
  ASSERT_TRUE(eventually([&] { return story->is_done.load(); }));
  EXPECT_TRUE(story->outcome->has_value());
}

TEST_P(CoroutineContract, a_coroutine_waits_without_a_thread) {
  auto guard = ann.mutex("a").lock().value();
  const auto story = std::make_shared<Story>();
  lock_and_tell(bob.mutex("a"), story);
  EXPECT_FALSE(story->is_done);

  EXPECT_TRUE(guard.unlock());

  ASSERT_TRUE(eventually([&] { return story->is_done.load(); }));
  EXPECT_TRUE(story->outcome->has_value());
  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout));
}

TEST_P(CoroutineContract, a_cancelled_coroutine_leaves_the_queue) {
  auto guard = ann.mutex("a").lock().value();
  const auto story = std::make_shared<Story>();
  std::stop_source hurry;
  lock_and_tell(bob.mutex("a"), story, hurry.get_token());

  hurry.request_stop();

  ASSERT_TRUE(eventually([&] { return story->is_done.load(); }));
  EXPECT_EQ(story->outcome->error(), Errc::cancelled);
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(ann.mutex("a").try_lock());
}

TEST_P(CoroutineContract, max_wait_bounds_a_coroutine) {
  const auto guard = ann.mutex("a").lock().value();
  const auto story = std::make_shared<Story>();

  lock_and_tell(bob.mutex("a", {.max_wait = 10ms}), story);

  ASSERT_TRUE(eventually([&] { return story->is_done.load(); }));
  EXPECT_EQ(story->outcome->error(), Errc::timed_out);
}

TEST_P(CoroutineContract, an_impossible_request_fails_without_suspending) {
  const auto story = std::make_shared<Story>();

  lock_and_tell(ann.mutex(""), story);

  EXPECT_TRUE(story->is_done);
  EXPECT_EQ(story->outcome->error(), Errc::invalid_argument);
}

struct ReleaseStory {
  std::vector<Result<void>> outcome{};
  std::atomic<bool> is_done = false;
};

/// Locks, unlocks twice and records the results.
Detached cycle_and_tell(Mutex mutex, std::shared_ptr<ReleaseStory> story) {
  auto guard = co_await mutex.lock_async();
  if (guard) {
    story->outcome.push_back(co_await guard->unlock_async());
    story->outcome.push_back(co_await guard->unlock_async());
  }
  story->is_done = true;
}

TEST_P(CoroutineContract, a_released_lock_is_free_when_the_coroutine_resumes) {
  for (int i = 0; i < 10; ++i) {
    const auto story = std::make_shared<ReleaseStory>();

    cycle_and_tell(ann.mutex("a"), story);

    ASSERT_TRUE(eventually([&] { return story->is_done.load(); }));
    ASSERT_EQ(story->outcome.size(), 2U);
    EXPECT_TRUE(story->outcome[0]) << to_string(story->outcome[0].error());
    EXPECT_EQ(story->outcome[1].error(), Errc::not_held);
    EXPECT_TRUE(bob.mutex("a").try_lock());
  }
}

TEST_P(CoroutineContract, unlocking_a_moved_from_guard_fails_without_suspending) {
  std::optional<Result<void>> outcome;
  [&]() -> Detached {
    Guard nothing;
    outcome = co_await nothing.unlock_async();
  }();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->error(), Errc::not_held);
}

// A coroutine's frame may hold the last handle of all, on the notifier thread itself.
TEST_P(CoroutineContract, the_last_handle_may_be_destroyed_on_the_notifier_thread) {
  auto guard = ann.mutex("a").lock().value();
  const auto story = std::make_shared<Story>();
  lock_and_tell(connect({.owner = "cid"}).mutex("a"), story);

  EXPECT_TRUE(guard.unlock());

  ASSERT_TRUE(eventually([&] { return story->is_done.load(); }));
  EXPECT_TRUE(story->outcome->has_value());
  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
}

// Waits cost no threads, however many.
TEST_P(CoroutineContract, ten_thousand_waits_cost_no_threads) {
  // Readers, which enter together: the test is about waiting and not about taking turns. Where
  // there are none it is both.
  const bool has_readers = supports(backends::Capability::shared);
  const int waits = has_readers ? 10'000 : 1'000;
  const auto entered = std::make_shared<std::atomic<int>>(0);
  const auto wait = [&] {
    has_readers ? count_in(bob.rw_lock("a"), entered) : count_in(bob.mutex("a"), entered);
  };
  // Sanitizers make the server slow, which is no loss.
  auto guard = connect({.owner = "cid", .request_timeout = test_timeout})
                   .mutex("a", {.ttl = test_timeout})
                   .lock()
                   .value();
  wait();
  const auto before = thread_count();

  for (int i = 1; i < waits; ++i) {
    wait();
  }
  EXPECT_LE(thread_count(), before + 1);  // the notifier may have come
  EXPECT_EQ(*entered, 0);
  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(eventually([&] { return *entered == waits; }));
}

}  // namespace
}  // namespace tenure::test
