#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

constexpr std::size_t threads = 8;

/// The stop source that a thread waits with now; another thread fires it.
class Fuse {
 public:
  [[nodiscard]] std::stop_token renew() {
    const std::lock_guard lock(mutex_);
    source_ = std::stop_source();
    return source_.get_token();
  }
  void fire() {
    std::stop_source source = [this] {
      const std::lock_guard lock(mutex_);
      return source_;
    }();
    source.request_stop();
  }

 private:
  std::mutex mutex_;
  std::stop_source source_;  // guarded by mutex_
};

WaitOptions draw_wait(Choices& choices, Fuse& fuse) {
  WaitOptions wait;
  if (choices.one_in(3)) {
    wait.deadline =
        std::chrono::steady_clock::now() + std::chrono::microseconds(choices.below(200));
  }
  if (choices.one_in(2)) {
    wait.cancel = fuse.renew();
  }
  return wait;
}

bool is_lawful_refusal(Errc code, const WaitOptions& wait) {
  return (code == Errc::timed_out && wait.deadline) ||
         (code == Errc::cancelled && wait.cancel.stop_requested());
}

Target draw_target(std::size_t place) {
  if (place % 2 == 0) {
    return ResourceId{place};
  }
  return KeysOf{.space = ResourceId{place}, .range = KeyRange::of(1, 9).value()};
}

// 004-B1, 004.034: a waiter that leaves while it is being granted keeps nothing and costs no other
// waiter its position.
TEST(StressCancellation, waits_that_end_early_leave_nothing_behind) {
  const LockManager locks;
  Watchdog watchdog(locks);
  std::array<Shadow, 4> shadows;
  std::array<Fuse, threads> fuses;
  std::atomic<std::uint64_t> unlawful{0};
  const std::size_t rounds = scaled(3'000);
  std::jthread arsonist([&fuses](const std::stop_token& stop) {
    Choices choices(threads);
    while (!stop.stop_requested()) {
      fuses[choices.below(threads)].fire();
      std::this_thread::yield();
    }
  });

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    const Transaction txn = locks.begin();
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t place = choices.below(shadows.size());
      const WaitOptions wait = draw_wait(choices, fuses[thread]);
      const bool writes = choices.one_in(2);
      const auto mode = writes ? LockMode::exclusive : LockMode::shared;
      const auto locked = txn.lock(draw_target(place), mode, wait);
      if (locked) {
        writes ? shadows[place].write() : shadows[place].read();
        ASSERT_TRUE(txn.unlock(draw_target(place)).has_value());
      } else if (!is_lawful_refusal(locked.error().code, wait)) {
        ++unlawful;
      }
      ASSERT_EQ(txn.lock_count(), 0U);
      watchdog.tick();
    }
  });

  EXPECT_EQ(unlawful.load(), 0U);
  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004.034: cancel_wait races with the grant; a grant that came first is released.
TEST(StressCancellation, cancelled_requests_leave_nothing_behind) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Shadow shadow;
  const std::size_t rounds = scaled(10'000);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    const TxnId txn{thread + 1};
    for (std::size_t round = 0; round < rounds; ++round) {
      const RequestResult answer = locks.request(txn, ResourceId{1}, LockMode::exclusive);
      if (answer.is_granted()) {
        shadow.write();
        ASSERT_TRUE(locks.release(txn, ResourceId{1}).has_value());
      } else if (choices.one_in(2)) {
        locks.cancel_wait(txn);
        ASSERT_EQ(locks.mode_held(txn, ResourceId{1}), std::nullopt);
      } else {
        // Stays in the queue; the next round asks again.
        std::this_thread::yield();
      }
      watchdog.tick();
    }
    locks.cancel_wait(txn);
  });

  EXPECT_EQ(shadow.violations(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

}  // namespace
}  // namespace tenure::stress
