#include <chrono>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/contract/queue.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(RwLockContract);

// 000.053-056: many readers at once, one writer alone.
TEST_P(RwLockContract, readers_share_and_a_writer_is_alone) {
  if (!supports(backends::Capability::shared)) {
    EXPECT_EQ(ann.rw_lock("a").lock_shared().error(), Errc::unsupported);
    return;
  }
  {
    const auto one = ann.rw_lock("a").lock_shared();
    const auto two = bob.rw_lock("a").try_lock_shared();
    ASSERT_TRUE(one && two);
    EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
    EXPECT_EQ(bob.rw_lock("a").try_lock_for(5ms).error(), Errc::timed_out);
    // 000-B21: a mutex of the same name is the same lock.
    EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
  }
  const auto writer = ann.rw_lock("a").lock();
  ASSERT_TRUE(writer);

  EXPECT_EQ(bob.rw_lock("a").try_lock_shared().error(), Errc::would_block);
  EXPECT_EQ(bob.rw_lock("a").try_lock_shared_for(5ms).error(), Errc::timed_out);
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
}

// All or none, also for readers: a partial hold would bar writers while it waits.
TEST_P(RwLockContract, several_names_are_shared_all_or_none) {
  if (!supports(backends::Capability::shared) || !supports(backends::Capability::several_names)) {
    EXPECT_EQ(ann.rw_all_of({"a", "b"}).lock_shared().error(), Errc::unsupported);
    return;
  }
  auto writer = bob.mutex("b").lock().value();
  const auto both = ann.rw_all_of({"a", "b"});

  EXPECT_EQ(both.try_lock_shared().error(), Errc::would_block);
  EXPECT_TRUE(bob.mutex("a").try_lock());
  EXPECT_TRUE(writer.unlock());
  auto read = both.lock_shared().value();

  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared());
  EXPECT_FALSE(bob.mutex("a").try_lock());
  EXPECT_FALSE(bob.mutex("b").try_lock());
  EXPECT_EQ(both.upgrade(read).error(), Errc::unsupported);
  EXPECT_TRUE(read.unlock());
  EXPECT_TRUE(bob.mutex("b").try_lock());
}

// 000.068: the forms with attempts.
TEST_P(RwLockContract, attempts_are_bounded_on_both_sides) {
  if (!supports(backends::Capability::shared)) {
    return;
  }
  const auto writer = ann.rw_lock("a").lock().value();

  EXPECT_EQ(bob.rw_lock("a").try_lock({.count = 2, .delay = 1ms}).error(), Errc::would_block);
  EXPECT_EQ(bob.rw_lock("a").try_lock_shared({.count = 2, .delay = 1ms}).error(),
            Errc::would_block);
}

// 000.067, 000-B2: the first of two shares of one object must not free both.
TEST_P(RwLockContract, two_shares_of_one_object_are_released_one_by_one) {
  if (!supports(backends::Capability::shared)) {
    return;
  }
  const auto lock = ann.rw_lock("a");
  auto one = lock.lock_shared().value();
  auto two = lock.lock_shared().value();

  EXPECT_TRUE(one.unlock());
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(two.unlock());

  EXPECT_TRUE(bob.rw_lock("a").try_lock());
}

// 000.057, 000.066: and when the writer gives up, the readers go on.
TEST_P(RwLockContract, a_waiting_writer_bars_later_readers) {
  if (!supports(backends::Capability::shared) || !supports(backends::Capability::fifo)) {
    return;
  }
  QueueEvents queue(*service, ann, "a");
  auto reader = ann.rw_lock("a").lock_shared().value();
  std::stop_source hurry;
  std::jthread writer(
      [&] { EXPECT_EQ(bob.rw_lock("a").lock(hurry.get_token()).error(), Errc::cancelled); });
  ASSERT_TRUE(queue.one_joins());

  EXPECT_EQ(ann.rw_lock("a").try_lock_shared().error(), Errc::would_block);
  hurry.request_stop();
  writer.join();

  EXPECT_TRUE(ann.rw_lock("a").try_lock_shared());
}

// 000.059-061, 000.065: asking once leaves nothing behind.
TEST_P(RwLockContract, a_try_lock_of_a_writer_does_not_bar_readers) {
  if (!supports(backends::Capability::shared)) {
    return;
  }
  const auto reader = ann.rw_lock("a").lock_shared().value();

  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);

  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared());
}

// 000.058, 000.062, 000-B14: readers behind a writer enter together, before the next writer.
TEST_P(RwLockContract, neither_side_starves) {
  if (!supports(backends::Capability::shared) || !supports(backends::Capability::fifo)) {
    return;
  }
  QueueEvents queue(*service, ann, "a");
  auto first = ann.rw_lock("a").lock().value();
  std::vector<std::string> order;
  std::mutex order_mutex;
  const auto note = [&](std::string who) {
    const std::scoped_lock lock(order_mutex);
    order.push_back(std::move(who));
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const auto share = bob.rw_lock("a").lock_shared().value();
      note("reader");
    });
    ASSERT_TRUE(queue.one_joins());
  }
  for (const char* const who : {"writer 1", "writer 2"}) {
    threads.emplace_back([&, who] {
      const auto guard = bob.rw_lock("a").lock().value();
      note(who);
    });
    ASSERT_TRUE(queue.one_joins());
  }

  EXPECT_TRUE(first.unlock());
  threads.clear();

  EXPECT_EQ(order, (std::vector<std::string>{"reader", "reader", "writer 1", "writer 2"}));
}

// 000-B15: read then write by one owner.
TEST_P(RwLockContract, an_upgrade_admits_no_other_writer) {
  if (!supports(backends::Capability::shared)) {
    return;
  }
  if (!supports(backends::Capability::upgrade)) {
    auto share = ann.rw_lock("a").lock_shared();
    ASSERT_TRUE(share);
    EXPECT_EQ(ann.rw_lock("a").upgrade(*share).error(), Errc::unsupported);
    return;
  }
  QueueEvents queue(*service, ann, "a");
  const auto lock = ann.rw_lock("a");
  auto share = lock.lock_shared().value();
  const auto token = share.token();
  std::jthread writer([&] { EXPECT_TRUE(bob.rw_lock("a").lock()); });
  ASSERT_TRUE(queue.one_joins());

  auto guard = lock.upgrade(share);

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_FALSE(share.owns_lock());
  EXPECT_TRUE(guard->owns_lock());
  EXPECT_GT(guard->token(), token);
  EXPECT_FALSE(bob.rw_lock("a").try_lock_shared());
  EXPECT_TRUE(guard->unlock());
  writer.join();
  EXPECT_TRUE(bob.rw_lock("a").try_lock_for(test_timeout));
}

TEST_P(RwLockContract, a_failed_upgrade_keeps_the_share) {
  if (!supports(backends::Capability::upgrade)) {
    return;
  }
  const auto lock = ann.rw_lock("a", {.max_wait = 10ms});
  auto share = lock.lock_shared().value();
  const auto other = bob.rw_lock("a").lock_shared().value();

  EXPECT_EQ(lock.upgrade(share).error(), Errc::timed_out);

  EXPECT_TRUE(share.owns_lock());
  EXPECT_FALSE(bob.rw_lock("a").try_lock());
  EXPECT_TRUE(share.unlock());
}

// Else the caller holds exclusively what it believes to share, and bars all other readers.
TEST_P(RwLockContract, an_upgrade_that_is_granted_too_late_is_undone) {
  if (!supports(backends::Capability::upgrade)) {
    return;
  }
  const auto network = std::make_shared<Network>();
  const auto slow = connect({.request_timeout = 50ms}, network);
  const auto lock = slow.rw_lock("a", {.max_wait = 10ms});
  auto share = lock.lock_shared().value();
  auto other = bob.rw_lock("a").lock_shared().value();
  network->is_slow = true;
  EXPECT_EQ(lock.upgrade(share).error(), Errc::unavailable);
  ASSERT_TRUE(other.unlock());
  ASSERT_TRUE(eventually([&] { return network->kept() == 1; })) << "the service grants it now";
  EXPECT_EQ(bob.rw_lock("a").try_lock_shared().error(), Errc::would_block);

  network->deliver();

  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared_for(test_timeout));
  EXPECT_TRUE(share.owns_lock());
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block) << "it is still shared";
  EXPECT_TRUE(share.unlock());
  EXPECT_TRUE(bob.rw_lock("a").try_lock_for(test_timeout)) << "nothing is left";
}

// 000-B15: two readers that both want to write would wait for each other for ever.
TEST_P(RwLockContract, the_second_of_two_upgrades_fails_with_deadlock) {
  if (!supports(backends::Capability::upgrade) || !supports(backends::Capability::deadlocks)) {
    return;
  }
  QueueEvents queue(*service, ann, "a");
  auto mine = ann.rw_lock("a").lock_shared().value();
  auto theirs = bob.rw_lock("a").lock_shared().value();
  std::jthread first([&] { EXPECT_TRUE(ann.rw_lock("a").upgrade(mine)); });
  ASSERT_TRUE(queue.one_joins());

  EXPECT_EQ(bob.rw_lock("a").upgrade(theirs).error(), Errc::deadlock);
  EXPECT_TRUE(theirs.owns_lock());
  EXPECT_TRUE(theirs.unlock());
}

TEST_P(RwLockContract, an_upgrade_of_a_guard_that_does_not_match_is_rejected) {
  if (!supports(backends::Capability::upgrade)) {
    return;
  }
  SharedGuard nothing;
  auto other = ann.rw_lock("b").lock_shared().value();

  EXPECT_EQ(ann.rw_lock("a").upgrade(nothing).error(), Errc::not_held);
  EXPECT_EQ(ann.rw_lock("a").upgrade(other).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace tenure::test
