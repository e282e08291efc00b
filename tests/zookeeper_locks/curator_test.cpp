#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/process.hpp"
#include "support/zookeeper/client.hpp"

namespace tenure::test {
namespace {

/// Beside the real library of Java, in both directions: curator/CuratorPeer.java has its locks.
class ZookeeperCurator : public ZookeeperTest {
 protected:
  static void SetUpTestSuite() {
    const std::string jars = "/usr/share/java/";
    peer =
        new Process({.words = {"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m",
                               "-Xshare:auto", "-cp",
                               jars + "curator-recipes.jar:" + jars +
                                   "curator-framework.jar:" + jars + "curator-client.jar:" + jars +
                                   "zookeeper.jar:" + jars + "guava.jar:" + jars + "slf4j-api.jar",
                               TENURE_SOURCE_DIR "/tests/zookeeper_locks/curator/CuratorPeer.java",
                               ZookeeperServers::shared().hosts()}});
    ASSERT_EQ(peer->hear(), "ready") << "tools/setup.sh test installs Curator and a Java compiler";
  }
  static void TearDownTestSuite() { delete peer; }

  /// Sends a command to the Curator process and returns its result.
  static void begin(const std::string& what) { peer->write_line(what); }
  [[nodiscard]] static std::string end() { return peer->hear(); }
  [[nodiscard]] static std::string ask(const std::string& what) {
    begin(what);
    return end();
  }

  /// Two replies at once arrive in any order.
  [[nodiscard]] static std::set<std::string> two_ends() { return {end(), end()}; }

  Client ann = connect();
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one for all tests here.
  static inline Process* peer = nullptr;
};

// 002.037-044 as others have them: InterProcessMutex.
TEST_F(ZookeeperCurator, tenure_and_curator_share_one_fair_mutex) {
  const auto path = path_of("a");
  auto guard = ann.mutex("a").lock().value();
  ASSERT_EQ(ask("eve mutex " + path), "eve mutex");
  ASSERT_EQ(ask("zoe mutex " + path), "zoe mutex");

  EXPECT_EQ(ask("eve try"), "eve has it not");
  begin("eve acquire");
  ASSERT_TRUE(has_nodes("a", 2));
  std::optional<FencingToken> later;
  std::jthread waiter([&] {
    auto mine = ann.mutex("a").lock();
    ASSERT_TRUE(mine) << to_string(mine.error());
    later = mine->token();
    EXPECT_TRUE(mine->unlock());
  });
  ASSERT_TRUE(has_nodes("a", 3));
  begin("zoe acquire");
  ASSERT_TRUE(has_nodes("a", 4));
  EXPECT_TRUE(guard.unlock());

  EXPECT_EQ(end(), "eve has it");
  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_EQ(ann.holders("a").value().size(), 1U);
  EXPECT_EQ(later, std::nullopt);
  begin("eve release");
  EXPECT_EQ(two_ends(), (std::set<std::string>{"eve left", "zoe has it"}));
  waiter.join();
  EXPECT_GT(later, guard.token());
  EXPECT_EQ(ask("zoe release"), "zoe left");
  EXPECT_TRUE(ann.mutex("a").try_lock());
}

// InterProcessReadWriteLock.
TEST_F(ZookeeperCurator, tenure_and_curator_share_one_read_write_lock) {
  const auto path = path_of("a");
  ASSERT_EQ(ask("r read " + path), "r read");
  ASSERT_EQ(ask("s read " + path), "s read");
  ASSERT_EQ(ask("w write " + path), "w write");
  auto share = ann.rw_lock("a").lock_shared().value();

  EXPECT_EQ(ask("r acquire"), "r has it") << "beside our reader";
  EXPECT_EQ(ask("w try"), "w has it not");
  EXPECT_EQ(ann.rw_lock("a").try_lock().error(), Errc::would_block);
  begin("w acquire");
  ASSERT_TRUE(has_nodes("a", 3));
  EXPECT_EQ(ann.rw_lock("a").try_lock_shared().error(), Errc::would_block) << "past their writer";
  EXPECT_TRUE(share.unlock());
  begin("r release");
  EXPECT_EQ(two_ends(), (std::set<std::string>{"r left", "w has it"}));
  EXPECT_EQ(ann.rw_lock("a").try_lock_shared().error(), Errc::would_block);
  EXPECT_EQ(ask("w release"), "w left");

  auto writer = ann.rw_lock("a").lock().value();
  EXPECT_EQ(ask("s try"), "s has it not") << "beside our writer";
  begin("s acquire");
  ASSERT_TRUE(has_nodes("a", 2));
  EXPECT_TRUE(writer.unlock());
  EXPECT_EQ(end(), "s has it");
  EXPECT_EQ(ask("s release"), "s left");
  EXPECT_TRUE(has_nodes("a", 0));
}

// InterProcessSemaphoreV2.
TEST_F(ZookeeperCurator, tenure_and_curator_share_one_semaphore) {
  const auto path = path_of("pool");
  ASSERT_EQ(ask("p permit " + path + " 2"), "p permit");
  ASSERT_EQ(ask("q permit " + path + " 2"), "q permit");
  const auto pool = ann.semaphore("pool", {.capacity = 2});
  auto mine = pool.acquire().value();

  EXPECT_EQ(ask("p acquire"), "p has it");
  EXPECT_EQ(pool.try_acquire().error(), Errc::would_block);
  EXPECT_EQ(ask("q try"), "q has it not");
  std::jthread waiter([&] {
    auto second = pool.acquire();
    ASSERT_TRUE(second) << to_string(second.error());
    EXPECT_TRUE(second->unlock());
  });
  ASSERT_TRUE(has_nodes("pool/locks", 1));
  EXPECT_EQ(ask("p release"), "p left");
  waiter.join();
  EXPECT_EQ(ask("p acquire"), "p has it");
  begin("q acquire");
  ASSERT_TRUE(has_nodes("pool/locks", 1));
  EXPECT_TRUE(mine.unlock());
  EXPECT_EQ(end(), "q has it");

  EXPECT_EQ(pool.try_acquire().error(), Errc::would_block);
  EXPECT_EQ(ask("p release"), "p left");
  EXPECT_EQ(ask("q release"), "q left");
  EXPECT_TRUE(has_nodes("pool/leases", 0));
}

}  // namespace
}  // namespace tenure::test
