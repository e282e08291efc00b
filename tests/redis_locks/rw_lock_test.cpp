#include <chrono>
#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class RedisRwLock : public ::testing::Test {
 protected:
  [[nodiscard]] Client connect(ConnectOptions options = {}) {
    options.request_timeout = test_timeout;
    return tenure::connect(server.url(), std::move(options)).value();
  }
  [[nodiscard]] bool one_waits() {
    return eventually([&] { return server.command({"ZCARD", "{tenure:a}:q"}) == "1"; });
  }

  RedisServer server;
  Client ann = connect({.owner = "ann"});
  Client bob = connect({.owner = "bob"});
};

// 000.156
TEST_F(RedisRwLock, concurrent_reads_share) {
  const auto one = ann.rw_lock("a").lock_shared().value();
  const auto two = bob.rw_lock("a").lock_shared().value();

  EXPECT_TRUE(one.owns_lock() && two.owns_lock());
}

// 000.157
TEST_F(RedisRwLock, writer_excludes_readers) {
  const auto writer = ann.rw_lock("a").lock().value();

  EXPECT_EQ(bob.rw_lock("a").try_lock_shared().error(), Errc::would_block);
}

// 000.158
TEST_F(RedisRwLock, writer_waits_for_readers) {
  auto reader = ann.rw_lock("a").lock_shared().value();
  auto writing = std::async(std::launch::async, [&] { return bob.rw_lock("a").lock().value(); });
  ASSERT_TRUE(one_waits());

  EXPECT_TRUE(reader.unlock());

  EXPECT_TRUE(writing.get().owns_lock());
}

// 000.159
TEST_F(RedisRwLock, reader_waits_for_writer) {
  auto writer = ann.rw_lock("a").lock().value();
  auto reading =
      std::async(std::launch::async, [&] { return bob.rw_lock("a").lock_shared().value(); });
  ASSERT_TRUE(one_waits());

  EXPECT_TRUE(writer.unlock());

  EXPECT_TRUE(reading.get().owns_lock());
}

// 000.160
TEST_F(RedisRwLock, waiting_writer_blocks_new_readers) {
  auto reader = ann.rw_lock("a").lock_shared().value();
  auto writing = std::async(std::launch::async, [&] { return bob.rw_lock("a").lock().value(); });
  ASSERT_TRUE(one_waits());

  EXPECT_EQ(ann.rw_lock("a").try_lock_shared().error(), Errc::would_block);

  EXPECT_TRUE(reader.unlock());
  EXPECT_TRUE(writing.get().owns_lock());
}

// 000.161
TEST_F(RedisRwLock, write_release_frees) {
  auto writer = ann.rw_lock("a").lock().value();

  EXPECT_TRUE(writer.unlock());

  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared());
}

// 000.162
TEST_F(RedisRwLock, read_drop_frees) {
  {
    const auto reader = ann.rw_lock("a").lock_shared();
  }

  EXPECT_TRUE(bob.rw_lock("a").try_lock_for(test_timeout));
}

// 000.163
TEST_F(RedisRwLock, auto_refresh_keeps_lease_alive) {
  const auto one = ann.rw_lock("a", {.ttl = 150ms}).lock_shared().value();
  const auto two = bob.rw_lock("a", {.ttl = 150ms}).lock_shared().value();
  const auto later = std::chrono::steady_clock::now() + 300ms;

  EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > later; }));

  EXPECT_TRUE(one.owns_lock() && two.owns_lock());
  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);
}

// 000.164
TEST_F(RedisRwLock, get_state_reports_acquired) {
  const auto reader = ann.rw_lock("a").lock_shared().value();

  EXPECT_EQ(reader.state(), GuardState::held);
}

// 000.165: one of two readers is removed by hand; the other is not affected.
TEST_F(RedisRwLock, lost_lease_reports_lost) {
  auto one = ann.rw_lock("a", {.ttl = 300ms}).lock_shared().value();
  const auto two = bob.rw_lock("a").lock_shared().value();
  const auto lost = one.lost();

  server.command({"DEL", "{tenure:a}", "{tenure:a}:m", "{tenure:a}:e"});

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_EQ(one.state(), GuardState::lost);
  EXPECT_EQ(one.unlock().error(), Errc::lease_lost);
}

// 000.166
TEST_F(RedisRwLock, try_write_does_not_block_readers) {
  const auto reader = ann.rw_lock("a").lock_shared().value();

  EXPECT_EQ(bob.rw_lock("a").try_lock().error(), Errc::would_block);

  EXPECT_TRUE(bob.rw_lock("a").try_lock_shared());
}

// 000.150-155: the same rules for both modes.
TEST_F(RedisRwLock, acquire_rejects_nonpositive_ttl) {
  EXPECT_EQ(ann.rw_lock("a", {.ttl = 0ms}).lock_shared().error(), Errc::invalid_argument);
  EXPECT_EQ(ann.rw_lock("a", {.ttl = -5ms}).lock().error(), Errc::invalid_argument);
}

// 000-B15: at most one upgrade at a time.
TEST_F(RedisRwLock, the_second_of_two_upgrades_fails_with_deadlock) {
  auto mine = ann.rw_lock("a").lock_shared().value();
  auto theirs = bob.rw_lock("a").lock_shared().value();
  auto upgrading = std::async(std::launch::async, [&] { return ann.rw_lock("a").upgrade(mine); });
  ASSERT_TRUE(eventually([&] {
    return server.command({"GET", "{tenure:a}"}).find(" S 2 - 0 ") == std::string::npos;
  }));

  EXPECT_EQ(bob.rw_lock("a").upgrade(theirs).error(), Errc::deadlock);
  EXPECT_TRUE(theirs.unlock());

  EXPECT_TRUE(upgrading.get());
}

}  // namespace
}  // namespace tenure::test
