#include "support/coroutine.hpp"

#include <atomic>
#include <chrono>
#include <latch>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client.hpp>

#include "support/contract.hpp"
#include "support/process_counts.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(CoroutineContract);

/// Locks and tells how it went.
Detached lock_and_tell(Mutex mutex, std::optional<Result<FencingToken>>& told,
                       std::atomic<bool>& is_done, std::stop_token cancel = {}) {
  {
    auto guard = co_await mutex.lock_async(cancel);
    told = guard ? Result<FencingToken>(guard->token()) : std::unexpected(guard.error());
  }
  is_done = true;
}

Detached count_in(RwLock lock, std::atomic<int>& entered) {
  const auto guard = co_await lock.lock_shared_async();
  entered += guard ? 1 : 0;
}
Detached count_in(Mutex mutex, std::atomic<int>& entered) {
  const auto guard = co_await mutex.lock_async();
  entered += guard ? 1 : 0;
}

// 000.010
TEST_P(CoroutineContract, a_free_lock_is_taken) {
  std::optional<Result<FencingToken>> told;
  std::atomic<bool> is_done = false;

  lock_and_tell(ann.mutex("a"), told, is_done);

  // In this process without suspending.
  EXPECT_TRUE(is_done || promises(backends::Promise::outlives_process));
  ASSERT_TRUE(eventually([&] { return is_done.load(); }));
  EXPECT_TRUE(told->has_value());
}

TEST_P(CoroutineContract, a_coroutine_waits_without_a_thread) {
  auto guard = ann.mutex("a").lock().value();
  std::optional<Result<FencingToken>> told;
  std::atomic<bool> is_done = false;
  lock_and_tell(bob.mutex("a"), told, is_done);
  EXPECT_FALSE(is_done);

  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(eventually([&] { return is_done.load(); }));
  EXPECT_TRUE(told->has_value());
  EXPECT_TRUE(ann.mutex("a").try_lock_for(patience));
}

TEST_P(CoroutineContract, a_coroutine_that_is_called_off_leaves_the_queue) {
  auto guard = ann.mutex("a").lock().value();
  std::optional<Result<FencingToken>> told;
  std::atomic<bool> is_done = false;
  std::stop_source hurry;
  lock_and_tell(bob.mutex("a"), told, is_done, hurry.get_token());

  hurry.request_stop();

  EXPECT_TRUE(eventually([&] { return is_done.load(); }));
  EXPECT_EQ(told->error(), Errc::cancelled);
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(ann.mutex("a").try_lock());
}

TEST_P(CoroutineContract, max_wait_bounds_a_coroutine) {
  const auto guard = ann.mutex("a").lock().value();
  std::optional<Result<FencingToken>> told;
  std::atomic<bool> is_done = false;

  lock_and_tell(bob.mutex("a", {.max_wait = 10ms}), told, is_done);

  EXPECT_TRUE(eventually([&] { return is_done.load(); }));
  EXPECT_EQ(told->error(), Errc::timed_out);
}

TEST_P(CoroutineContract, what_can_never_succeed_is_told_without_suspending) {
  std::optional<Result<FencingToken>> told;
  std::atomic<bool> is_done = false;

  lock_and_tell(ann.mutex(""), told, is_done);

  EXPECT_TRUE(is_done);
  EXPECT_EQ(told->error(), Errc::invalid_argument);
}

/// Locks, gives back, and tells how that went.
Detached cycle_and_tell(Mutex mutex, std::vector<Result<void>>& told, std::atomic<bool>& is_done) {
  auto guard = co_await mutex.lock_async();
  if (guard) {
    told.push_back(co_await guard->unlock_async());
    told.push_back(co_await guard->unlock_async());
  }
  is_done = true;
}

TEST_P(CoroutineContract, what_was_given_back_is_free_when_the_coroutine_goes_on) {
  for (int i = 0; i < 10; ++i) {
    std::vector<Result<void>> told;
    std::atomic<bool> is_done = false;

    cycle_and_tell(ann.mutex("a"), told, is_done);

    ASSERT_TRUE(eventually([&] { return is_done.load(); }));
    ASSERT_EQ(told.size(), 2U);
    EXPECT_TRUE(told[0]) << to_string(told[0].error());
    EXPECT_EQ(told[1].error(), Errc::not_held);
    EXPECT_TRUE(bob.mutex("a").try_lock());
  }
}

TEST_P(CoroutineContract, giving_back_what_was_moved_away_is_told_without_suspending) {
  std::optional<Result<void>> told;
  [&]() -> Detached {
    Guard nothing;
    told = co_await nothing.unlock_async();
  }();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error(), Errc::not_held);
}

// A coroutine's frame may hold the last handle of all, on the notifier thread itself.
TEST_P(CoroutineContract, the_last_handle_may_go_on_the_notifier_thread) {
  auto guard = ann.mutex("a").lock().value();
  std::optional<Result<FencingToken>> told;
  std::atomic<bool> is_done = false;
  lock_and_tell(connect({.owner = "cid"}).mutex("a"), told, is_done);

  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(eventually([&] { return is_done.load(); }));
  EXPECT_TRUE(told->has_value());
  EXPECT_TRUE(bob.mutex("a").try_lock_for(patience));
}

// Waits cost no threads, however many.
TEST_P(CoroutineContract, ten_thousand_waits_cost_no_threads) {
  // Readers, which enter together: the test is about waiting and not about taking turns. Where
  // there are none it is both.
  const bool has_readers = promises(backends::Promise::shared);
  const int waits = has_readers ? 10'000 : 1'000;
  const auto wait = [&](std::atomic<int>& entered) {
    has_readers ? count_in(bob.rw_lock("a"), entered) : count_in(bob.mutex("a"), entered);
  };
  // Sanitizers make the server slow, which is no loss.
  auto guard = connect({.owner = "cid", .request_timeout = patience})
                   .mutex("a", {.ttl = patience})
                   .lock()
                   .value();
  std::atomic<int> entered = 0;
  wait(entered);
  const auto before = thread_count();

  for (int i = 1; i < waits; ++i) {
    wait(entered);
  }
  EXPECT_LE(thread_count(), before + 1);  // the notifier may have come
  EXPECT_EQ(entered, 0);
  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(eventually([&] { return entered == waits; }));
}

}  // namespace
}  // namespace tenure::test
