#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "support/raft/client.hpp"
#include "support/raft/leases.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::raft {
namespace {

using core::LeaseId;
using std::chrono::milliseconds;
using test::ann;
using test::RaftClient;

/// A disk of half a mebibyte, and a node on it.
class RaftSpace : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("tmpfs", disk.path().c_str(), "tmpfs", 0, "size=512k") != 0) {
      GTEST_SKIP() << "needs the right to mount a file system: " << std::strerror(errno);
    }
    is_mounted = true;
    start();
  }
  void TearDown() override {
    node.reset();
    if (is_mounted) {
      ::umount2(disk.path().c_str(), MNT_DETACH);
    }
  }

  void start() {
    node.reset();
    auto options = test::small_node(disk / "node", reports);
    options.segment_bytes = 32 << 10;
    options.space_retry = milliseconds(10);
    options.snapshot_retry = milliseconds(10);
    node = test::started(options);
    ASSERT_NE(node, nullptr);
    client = std::make_unique<RaftClient>(*node);
    client->use_requests_after(1'000'000 * ++starts);
  }
  void fill_disk() {
    std::ofstream junk(disk / "junk", std::ios::app);
    while (junk << std::string(512, 'x') && junk.flush()) {
    }
  }
  void free_disk() { std::filesystem::remove(disk / "junk"); }

  /// Takes locks until one is refused for lack of space; how many were granted.
  std::size_t acquire_until_full() {
    for (int i = 0; i < 2000; ++i) {
      const auto decided = client->acquire(ann, std::string(400, 'x') + std::to_string(++locks));
      if (!decided) {
        error = decided.error();
        return held;
      }
      ++held;
    }
    ADD_FAILURE() << "the disk never got full";
    return held;
  }
  std::size_t held_in_state() {
    return client->ask([](const View& view) { return view.state.locks.holds().size(); });
  }

  test::TemporaryFolder disk;
  bool is_mounted = false;
  test::Reports reports;
  std::unique_ptr<Node> node;
  std::unique_ptr<RaftClient> client;
  std::uint64_t starts = 0;
  int locks = 0;
  std::size_t held = 0;
  Error error{.code = Errc::unavailable};
};

TEST_F(RaftSpace, a_full_disk_still_renews_and_releases) {
  ASSERT_TRUE(client->grant_lease(ann).has_value());
  const auto token = client->token(ann, "first");
  fill_disk();

  acquire_until_full();

  EXPECT_EQ(error.code, Errc::resource_exhausted);
  EXPECT_NE(error.detail.find((disk / "node").string()), std::string::npos) << error.detail;
  EXPECT_FALSE(client->position().has_space);
  EXPECT_TRUE(client->propose(core::RenewLeases{.leases = {ann}}).has_value());
  EXPECT_TRUE(
      client->propose(core::Release{.lease = ann, .what = core::FencingToken{token}}).has_value());
  EXPECT_EQ(held_in_state(), held);
}

TEST_F(RaftSpace, the_store_recovers_when_space_returns) {
  ASSERT_TRUE(client->grant_lease(ann).has_value());
  fill_disk();
  acquire_until_full();

  free_disk();

  EXPECT_TRUE(test::eventually([&] { return client->position().has_space; }));
  EXPECT_NE(client->token(ann, "more"), 0U);
}

TEST_F(RaftSpace, a_full_disk_serves_reads_and_survives_a_restart) {
  ASSERT_TRUE(client->grant_lease(ann).has_value());
  fill_disk();
  acquire_until_full();
  bool is_refused = false;
  for (int i = 0; i < 5000 && !is_refused; ++i) {
    const auto renewed = client->propose(core::RenewLeases{.leases = {ann}});
    is_refused = !renewed && renewed.error() == Errc::resource_exhausted;
  }
  EXPECT_TRUE(is_refused);
  EXPECT_EQ(held_in_state(), held);

  for (int i = 0; i < 3; ++i) {
    start();
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(held_in_state(), held);
  }

  free_disk();
  EXPECT_TRUE(test::eventually([&] { return client->position().has_space; }));
  EXPECT_NE(client->token(ann, "more"), 0U);
}

TEST_F(RaftSpace, listeners_are_notified_of_a_failed_snapshot) {
  class Counter final : public Listener {
   public:
    void snapshot_failed() override { ++failures; }
    std::atomic<int> failures = 0;
  } counter;
  node.reset();
  node = Node::open(test::small_node(disk / "node", reports)).value();
  node->listen(counter);
  node->start();
  client = std::make_unique<RaftClient>(*node);
  ASSERT_TRUE(client->grant_lease(ann).has_value());
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(client->token(ann, std::string(400, 'x') + std::to_string(i)), 0U);
  }
  fill_disk();

  EXPECT_FALSE(client->take_snapshot().has_value());

  EXPECT_GE(counter.failures, 1);
  node.reset();
}

TEST_F(RaftSpace, a_snapshot_without_space_fails_and_loses_nothing) {
  ASSERT_TRUE(client->grant_lease(ann).has_value());
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(client->token(ann, std::string(400, 'x') + std::to_string(i)), 0U);
  }
  fill_disk();

  const auto failed = client->take_snapshot();

  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Errc::resource_exhausted) << failed.error().detail;
  EXPECT_EQ(held_in_state(), 50U);
  EXPECT_FALSE(std::filesystem::exists(disk / "node/snapshot.new"));
  free_disk();
  EXPECT_TRUE(client->take_snapshot().has_value());
}

}  // namespace
}  // namespace tenure::server::raft
