#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/contract/queue.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(DowngradeContract);

// 000-B15, 004-B14
TEST_P(DowngradeContract, a_downgrade_admits_readers_and_no_writer) {
  auto guard = ann.rw_lock("a").lock().value();
  const auto token = guard.token();
  auto share = ann.rw_lock("a").downgrade(guard);

  if (!supports(backends::Capability::downgrade)) {
    EXPECT_EQ(share.error(), Errc::unsupported);
    EXPECT_TRUE(guard.owns_lock());
    return;
  }
  ASSERT_TRUE(share) << to_string(share.error());
  EXPECT_FALSE(guard.owns_lock());
  EXPECT_TRUE(share->owns_lock());
  EXPECT_EQ(share->token(), token) << "another client may have written in between";
  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared());
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(share->unlock());
  EXPECT_TRUE(bob.rw_lock("a").try_lock());
}

// 000-B14: waiting readers enter at once, the writer behind them after all readers have left.
TEST_P(DowngradeContract, waiting_readers_enter_at_once_and_the_writer_after_all_of_them) {
  if (!supports(backends::Capability::downgrade)) {
    return;
  }
  QueueEvents queue(*service, ann, "a");
  auto guard = ann.rw_lock("a").lock().value();
  auto reading =
      std::async(std::launch::async, [&] { return bob.rw_lock("a").lock_shared().value(); });
  ASSERT_TRUE(queue.one_joins());
  auto writing = std::async(std::launch::async, [&] { return bob.rw_lock("a").lock().value(); });
  ASSERT_TRUE(queue.one_joins());

  auto share = ann.rw_lock("a").downgrade(guard).value();

  auto reader = reading.get();
  EXPECT_EQ(ann.rw_lock("a").try_lock_shared().error(), Errc::would_block) << "past a writer";
  EXPECT_TRUE(share.unlock());
  EXPECT_EQ(writing.wait_for(0s), std::future_status::timeout);
  EXPECT_TRUE(reader.unlock());
  EXPECT_GT(writing.get().token(), reader.token());
}

TEST_P(DowngradeContract, a_waiting_writer_bars_the_readers_behind_it) {
  if (!supports(backends::Capability::downgrade) || !supports(backends::Capability::fifo)) {
    return;
  }
  QueueEvents queue(*service, ann, "a");
  auto guard = ann.rw_lock("a").lock().value();
  auto writing = std::async(std::launch::async, [&] { return bob.rw_lock("a").lock().value(); });
  ASSERT_TRUE(queue.one_joins());

  auto share = ann.rw_lock("a").downgrade(guard).value();

  EXPECT_EQ(bob.rw_lock("a").try_lock_shared().error(), Errc::would_block);
  EXPECT_TRUE(share.unlock());
  EXPECT_TRUE(writing.get().owns_lock());
}

// Repeated upgrades and downgrades leave nothing to release.
TEST_P(DowngradeContract, the_share_can_be_upgraded_again) {
  if (!supports(backends::Capability::downgrade) || !supports(backends::Capability::upgrade)) {
    return;
  }
  const auto lock = ann.rw_lock("a");
  auto guard = lock.lock().value();
  for (int round = 0; round < 3; ++round) {
    const auto token = guard.token();
    auto share = lock.downgrade(guard).value();
    EXPECT_TRUE(bob.rw_lock("a").try_lock_shared());

    guard = lock.upgrade(share).value();

    EXPECT_GT(guard.token(), token);
    EXPECT_FALSE(bob.rw_lock("a").try_lock_shared());
  }
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(bob.rw_lock("a").try_lock());
}

TEST_P(DowngradeContract, a_downgrade_of_a_guard_that_does_not_match_is_rejected) {
  if (!supports(backends::Capability::downgrade)) {
    return;
  }
  const auto lock = ann.rw_lock("a");
  Guard nothing;
  auto unlocked = lock.lock().value();
  ASSERT_TRUE(unlocked.unlock());
  auto moved = lock.lock().value();
  auto guard = std::move(moved);
  auto other = ann.rw_lock("b").lock().value();

  EXPECT_EQ(lock.downgrade(nothing).error(), Errc::not_held);
  EXPECT_EQ(lock.downgrade(unlocked).error(), Errc::not_held);
  // NOLINTNEXTLINE(bugprone-use-after-move,hicpp-invalid-access-moved): that is what is tested.
  EXPECT_EQ(lock.downgrade(moved).error(), Errc::not_held);
  EXPECT_EQ(lock.downgrade(other).error(), Errc::invalid_argument);
  EXPECT_EQ(bob.rw_lock("a").downgrade(guard).error(), Errc::invalid_argument);
  EXPECT_TRUE(guard.owns_lock());
  EXPECT_TRUE(other.owns_lock());
  EXPECT_FALSE(bob.rw_lock("a").try_lock_shared());
}

// Another client may hold the lock by now, so a share of it must not be returned.
TEST_P(DowngradeContract, a_downgrade_of_a_lost_guard_fails_with_lease_lost) {
  if (!supports(backends::Capability::downgrade)) {
    return;
  }
  auto lease = ann.lease().value();
  auto lost = ann.rw_lock("a", {.lease = lease}).lock().value();
  auto taken = ann.rw_lock("b").lock().value();
  ASSERT_TRUE(lease.revoke());
  ASSERT_TRUE(service->force_release("b"));

  EXPECT_EQ(ann.rw_lock("a").downgrade(lost).error(), Errc::lease_lost);
  EXPECT_EQ(ann.rw_lock("b").downgrade(taken).error(), Errc::lease_lost);
  EXPECT_TRUE(bob.rw_lock("a").try_lock());
  EXPECT_TRUE(bob.rw_lock("b").try_lock());
}

TEST_P(DowngradeContract, the_share_reports_its_loss_like_the_guard) {
  if (!supports(backends::Capability::downgrade)) {
    return;
  }
  auto guard = ann.rw_lock("a").lock().value();
  const auto lost = guard.lost();
  auto share = ann.rw_lock("a").downgrade(guard).value();

  ASSERT_TRUE(service->force_release("a"));

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_EQ(share.state(), GuardState::lost);
  EXPECT_EQ(share.unlock().error(), Errc::lease_lost);
}

// The outcome is unknown: continuing as a writer would be unsafe, as a reader it is safe.
TEST_P(DowngradeContract, a_downgrade_without_a_reply_still_returns_the_share) {
  if (!supports(backends::Capability::downgrade)) {
    return;
  }
  const auto network = std::make_shared<Network>();
  const auto cut = connect({.request_timeout = 5ms}, network);
  auto guard = cut.rw_lock("a").try_lock_for(test_timeout).value();
  network->is_silent = true;

  auto share = cut.rw_lock("a").downgrade(guard);

  ASSERT_TRUE(share) << to_string(share.error());
  EXPECT_FALSE(guard.owns_lock());
  EXPECT_TRUE(share->owns_lock());
  EXPECT_FALSE(bob.rw_lock("a").try_lock());
}

TEST_P(DowngradeContract, watches_report_a_downgrade) {
  if (!supports(backends::Capability::downgrade) || !supports(backends::Capability::watches)) {
    return;
  }
  auto guard = ann.rw_lock("a").lock().value();
  auto watch = bob.watch("a").value();

  const auto share = ann.rw_lock("a").downgrade(guard).value();

  const auto event = watch.next_for(test_timeout).value();
  EXPECT_EQ(event.type, LockEventType::downgraded);
  EXPECT_EQ(event.owner, "ann");
  EXPECT_EQ(event.token, share.token());
}

// Two guards of one hold: to weaken it under the other one would be a quiet lie.
TEST_P(DowngradeContract, a_downgrade_of_a_reentrant_lock_is_rejected) {
  if (!supports(backends::Capability::downgrade) || !supports(backends::Capability::reentry)) {
    return;
  }
  const auto lock = ann.rw_lock("a", {.lease = ann.lease().value(), .reentry = Reentry::counted});
  const auto outer = lock.lock().value();
  auto inner = lock.lock().value();

  EXPECT_EQ(lock.downgrade(inner).error(), Errc::invalid_argument);
  EXPECT_TRUE(inner.owns_lock());
  EXPECT_FALSE(bob.rw_lock("a").try_lock_shared());
}

}  // namespace
}  // namespace tenure::test
