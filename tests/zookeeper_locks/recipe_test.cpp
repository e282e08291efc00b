#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/zookeeper/client.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

// What programs with other libraries see of us, and we of them. The nodes that those would make are
// made by hand, with the plain C client.
using ZookeeperRecipe = ZookeeperTest;

// 002.037, 002.039, 002.043, 002-B9
TEST_F(ZookeeperRecipe, a_mutex_is_an_ephemeral_sequential_node_whose_czxid_is_the_token) {
  auto seen = seen_client(servers.url(chroot), {.owner = "ann"});
  auto guard = seen.client.mutex("a", {.metadata = "nightly"}).lock().value();

  const auto all = nodes("a");
  ASSERT_EQ(all.size(), 1U);
  const auto path = path_of("a") + '/' + all.front();
  EXPECT_TRUE(all.front().starts_with("_c_")) << all.front();
  EXPECT_TRUE(all.front().ends_with("-lock-0000000000")) << all.front();
  EXPECT_EQ(static_cast<std::uint64_t>(shell.czxid_of(path)), guard.token().get());
  EXPECT_EQ(shell.owner_of(path), seen.backend->identities().front().session);
  EXPECT_TRUE(shell.get(path).starts_with("ann\nlease=")) << shell.get(path);
  EXPECT_TRUE(shell.get(path).ends_with("\nnightly")) << shell.get(path);

  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(nodes("a").empty());
}

// The two kinds that Curator's InterProcessReadWriteLock knows.
TEST_F(ZookeeperRecipe, a_read_write_lock_has_the_node_names_of_curator) {
  const auto ann = connect();
  {
    const auto one = ann.rw_lock("a").lock_shared().value();
    const auto two = ann.rw_lock("a").lock_shared().value();
    const auto all = nodes("a");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_NE(all.front().find("-__READ__000000000"), std::string::npos) << all.front();
  }
  ASSERT_TRUE(has_nodes("a", 0));
  const auto writer = ann.rw_lock("b").lock().value();

  ASSERT_EQ(nodes("b").size(), 1U);
  EXPECT_NE(nodes("b").front().find("-__WRIT__0000000000"), std::string::npos);
}

// A mixed deployment: clients of Curator, Kazoo, Go or ZooKeeper's own recipe queue first.
TEST_F(ZookeeperRecipe, a_mutex_waits_for_nodes_of_other_libraries_and_they_see_ours) {
  const auto ann = connect();
  for (const std::string name : {"_c_0b1e8a5c-7d2f-4c1a-9c55-2a6b8f1e0d11-lock-", "lock-",
                                 "x-72057594037927936-", "4f3a__lock__"}) {
    const auto lock = "m" + std::to_string(name.size());
    shell.make(path_of(lock));
    const auto theirs = shell.make_ticket(path_of(lock) + '/' + name);
    EXPECT_EQ(ann.mutex(lock).try_lock().error(), Errc::would_block) << name;
    std::optional<Result<Guard>> got;
    std::jthread waiter([&] { got = ann.mutex(lock).lock(); });
    ASSERT_TRUE(has_nodes(lock, 2));
    EXPECT_FALSE(got);

    const auto behind = shell.make_ticket(path_of(lock) + '/' + name);
    shell.remove(theirs);
    waiter.join();

    ASSERT_TRUE(got->has_value()) << name << to_string(got->error());
    // A later node has a larger number, so by each of these recipes it waits for ours.
    const auto all = nodes(lock);
    EXPECT_EQ(all.size(), 2U);
    EXPECT_TRUE((*got)->unlock());
    shell.remove(behind);
  }
}

TEST_F(ZookeeperRecipe, readers_and_writers_of_other_libraries_are_honoured) {
  const auto ann = connect();
  shell.make(path_of("a"));
  const auto reader = shell.make_ticket(path_of("a") + "/_c_1-__READ__");

  EXPECT_EQ(ann.rw_lock("a").try_lock().error(), Errc::would_block);
  auto share = ann.rw_lock("a").try_lock_shared();
  ASSERT_TRUE(share) << to_string(share.error());
  const auto writer = shell.make_ticket(path_of("a") + "/_c_2-__WRIT__");
  EXPECT_EQ(ann.rw_lock("a").try_lock_shared().error(), Errc::would_block) << "past a writer";
  std::jthread late([&] {
    auto mine = ann.rw_lock("a").lock_shared();
    ASSERT_TRUE(mine) << to_string(mine.error());
    EXPECT_TRUE(mine->unlock());
  });
  ASSERT_TRUE(has_nodes("a", 4));
  EXPECT_TRUE(shell.remove(writer));
  late.join();

  EXPECT_TRUE(share->unlock());
  EXPECT_TRUE(shell.remove(reader));
  EXPECT_TRUE(ann.rw_lock("a").try_lock());
}

// InterProcessSemaphoreV2: a mutex in locks/, a node for each permit in leases/.
TEST_F(ZookeeperRecipe, a_semaphore_uses_the_gate_and_lease_nodes_of_curator) {
  const auto ann = connect();
  const auto pool = ann.semaphore("pool", {.capacity = 3});
  auto two = ann.semaphore("pool", {.capacity = 3, .taken_at_once = 2}).acquire().value();

  ASSERT_TRUE(has_nodes("pool/leases", 2));
  EXPECT_TRUE(has_nodes("pool/locks", 0));
  EXPECT_NE(nodes("pool/leases").front().find("-lease-000000000"), std::string::npos);
  const auto theirs = shell.make_ticket(path_of("pool/leases") + "/_c_9-lease-");
  EXPECT_EQ(pool.try_acquire().error(), Errc::would_block);
  std::jthread waiter([&] { EXPECT_TRUE(pool.acquire()); });
  ASSERT_TRUE(has_nodes("pool/locks", 1));
  EXPECT_TRUE(shell.remove(theirs));
  waiter.join();

  EXPECT_TRUE(two.unlock());
  EXPECT_TRUE(has_nodes("pool/leases", 0));
}

// A waiter of another library at the gate bars the semaphore even if permits are free.
TEST_F(ZookeeperRecipe, a_request_cannot_overtake_a_waiter_at_the_gate_of_a_semaphore) {
  const auto ann = connect();
  const auto pool = ann.semaphore("pool", {.capacity = 3});
  const auto one = pool.acquire().value();
  shell.make(path_of("pool/locks"));
  const auto theirs = shell.make_ticket(path_of("pool/locks") + "/_c_9-lock-");

  EXPECT_EQ(pool.try_acquire().error(), Errc::would_block);
  EXPECT_TRUE(shell.remove(theirs));
  EXPECT_TRUE(pool.try_acquire());
}

// 002-B8: the counter of the folder has wrapped; the node before ours has a negative number.
TEST_F(ZookeeperRecipe, a_node_from_before_the_wrap_goes_first) {
  const auto ann = connect();
  shell.make(path_of("a"));
  shell.make_ephemeral(path_of("a") + "/_c_1-lock--000000001");

  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
  std::jthread waiter([&] { EXPECT_TRUE(ann.mutex("a").lock()); });
  ASSERT_TRUE(has_nodes("a", 2));
  EXPECT_TRUE(shell.remove(path_of("a") + "/_c_1-lock--000000001"));
  waiter.join();
}

// Other nodes do not conflict, whatever they contain.
TEST_F(ZookeeperRecipe, foreign_nodes_and_invalid_data_are_ignored) {
  const auto ann = connect();
  const auto outer = ann.mutex("a").lock().value();
  const auto inner = ann.mutex("a/b").lock().value();
  shell.make(path_of("c/notes"));
  shell.set(path_of("c"), std::string(5000, '\xFF'));
  shell.make_ephemeral(path_of("c") + "/lock-without-a-number");

  const auto third = ann.mutex("c").try_lock();
  EXPECT_TRUE(third) << to_string(third.error());
  const auto theirs = shell.make_ticket(path_of("c") + "/_c_1-lock-", "\xFF\x00rubbish");
  const auto holders = ann.holders("c");

  ASSERT_TRUE(holders);
  ASSERT_EQ(holders->size(), 1U);
  EXPECT_EQ(holders->front().token, third->token());
}

TEST_F(ZookeeperRecipe, names_that_are_invalid_paths_work_as_lock_names) {
  const auto ann = connect();
  std::vector<Guard> held;
  for (const std::string name :
       {"a//b", "/a", "a/", ".", "..", "%", "zookeeper", "\xF0\x9F\x98\x80"}) {
    auto guard = ann.mutex(name).try_lock();
    ASSERT_TRUE(guard) << name << ": " << to_string(guard.error());
    EXPECT_FALSE(ann.mutex(name).try_lock());
    held.push_back(*std::move(guard));
  }
}

// Folders are made when they are needed, and go by themselves.
TEST_F(ZookeeperRecipe, lock_folders_are_container_nodes) {
  const auto ann = connect();
  {
    const auto guard = ann.mutex("deep/er/lock").lock().value();
    EXPECT_TRUE(shell.has(path_of("deep/er/lock")));
  }

  EXPECT_TRUE(eventually([&] { return !shell.has(chroot); }));
  EXPECT_TRUE(ann.mutex("deep/er/lock").lock());
}

// Sequence numbers restart in a recreated folder, so the old view is invalid.
TEST_F(ZookeeperRecipe, a_recreated_folder_starts_a_new_queue) {
  const auto ann = connect();
  for (int round = 0; round < 5; ++round) {
    for (int warm = 0; warm < 4; ++warm) {
      auto guard = ann.mutex("a").lock().value();
      EXPECT_TRUE(guard.unlock());
    }
    ASSERT_TRUE(eventually([&] { return !shell.has(path_of("a")); }));
    shell.make(path_of("a"));
    // As many as make the next number the one that we would expect.
    const auto theirs = shell.make_ticket(path_of("a") + "/_c_1-lock-");
    for (int warm = 0; warm < 3; ++warm) {
      shell.remove(shell.make_ticket(path_of("a") + "/_c_2-lock-"));
    }

    EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
    EXPECT_EQ(ann.mutex("a").try_lock_for(20ms).error(), Errc::timed_out);
    EXPECT_TRUE(shell.remove(theirs));
    ASSERT_TRUE(has_nodes("a", 0));
    EXPECT_TRUE(shell.remove(path_of("a")));
  }
}

}  // namespace
}  // namespace tenure::test
