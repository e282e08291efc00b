#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>

#include <tenure/client/client.hpp>

#include "support/etcd/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// etcdctl uses the mutex of the Go client, so this covers both.
class EtcdInterop : public ::testing::Test {
 protected:
  [[nodiscard]] int places(const std::string& name) const {
    return server.keys(name + "/").kvs_size();
  }
  [[nodiscard]] bool soon(const std::string& name, int count) const {
    return eventually([&] { return places(name) == count; });
  }

  EtcdServer& server = shared_etcd();
  Client ann = connect(server.url(), {.owner = "ann"}).value();
};

// 002.045, 002.046, 002.047: in both directions, on one name.
TEST_F(EtcdInterop, a_tenure_client_and_etcdctl_exclude_each_other) {
  auto guard = ann.mutex("both").lock().value();
  const auto token = guard.token();
  const auto etcdctl = server.begin_etcdctl({"lock", "both"});
  ASSERT_TRUE(soon("both", 2));

  EXPECT_TRUE(guard.unlock());
  const auto theirs = etcdctl->hear();
  EXPECT_TRUE(theirs.starts_with("both/")) << theirs;
  EXPECT_EQ(ann.mutex("both").try_lock().error(), Errc::would_block);
  const auto holders = ann.holders("both").value();
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ("both/" + holders.front().owner, theirs);
  EXPECT_GT(holders.front().token, token);

  FencingToken later{};
  {
    const std::jthread waiter([&] { later = ann.mutex("both").lock().value().token(); });
    ASSERT_TRUE(soon("both", 2));
    etcdctl->signal(SIGINT);
  }
  EXPECT_GT(later, holders.front().token);
}

// 002.048, 002.050: all clients share one queue.
TEST_F(EtcdInterop, locks_are_granted_in_arrival_order) {
  auto guard = ann.mutex("mixed").lock().value();
  const auto first = server.begin_etcdctl({"lock", "mixed"});
  ASSERT_TRUE(soon("mixed", 2));
  std::atomic<bool> is_in = false;
  std::jthread second([&] {
    auto mine = ann.mutex("mixed").lock().value();
    is_in = true;
    EXPECT_TRUE(mine.unlock());
  });
  ASSERT_TRUE(soon("mixed", 3));
  const auto third = server.begin_etcdctl({"lock", "mixed"});
  ASSERT_TRUE(soon("mixed", 4));

  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(first->hear().starts_with("mixed/"));
  EXPECT_FALSE(is_in);
  first->signal(SIGINT);
  second.join();
  EXPECT_TRUE(is_in);
  EXPECT_TRUE(third->hear().starts_with("mixed/"));
  third->signal(SIGINT);
}

// A reader among strangers: what they hold is exclusive.
TEST_F(EtcdInterop, a_reader_does_not_read_beside_etcdctl) {
  const auto etcdctl = server.begin_etcdctl({"lock", "read"});
  (void)etcdctl->hear();

  EXPECT_EQ(ann.rw_lock("read").try_lock_shared().error(), Errc::would_block);
  EXPECT_EQ(ann.semaphore("read", {.capacity = 2}).try_acquire().error(), Errc::invalid_argument);
  etcdctl->signal(SIGINT);

  EXPECT_TRUE(ann.rw_lock("read").try_lock_shared_for(test_timeout));
}

// 002.052, 002-B1: the keys of db/users lie in the folder of db, and yet it is another lock.
TEST_F(EtcdInterop, a_lock_with_a_longer_name_is_another_lock) {
  std::vector<Guard> below;
  for (int n = 0; n < 40; ++n) {
    below.push_back(ann.mutex("db/users/" + std::to_string(n)).lock().value());
  }

  auto above = ann.mutex("db").try_lock();

  ASSERT_TRUE(above) << to_string(above.error());
  EXPECT_EQ(ann.mutex("db").try_lock().error(), Errc::would_block);
  EXPECT_EQ(ann.holders("db").value().size(), 1U);
  below.push_back(ann.mutex("db/more").lock().value());
  std::jthread waiter([&] { EXPECT_TRUE(ann.mutex("db").lock()); });
  ASSERT_TRUE(eventually([&] { return places("db") == 43; }));
  EXPECT_TRUE(above->unlock());
}

// 002.045, 002-B6: two acquisitions under one lease are two keys, both with that lease.
TEST_F(EtcdInterop, each_acquisition_has_a_key_of_its_own_under_its_lease) {
  const auto lease = ann.lease().value();
  const auto one = ann.rw_lock("keys", {.lease = lease}).lock_shared().value();
  const auto two = ann.rw_lock("keys", {.lease = lease, .metadata = "hello"}).lock_shared().value();

  const auto keys = server.keys("keys/");

  ASSERT_EQ(keys.kvs_size(), 2);
  EXPECT_EQ(keys.kvs(0).lease(), keys.kvs(1).lease());
  EXPECT_NE(keys.kvs(0).key(), keys.kvs(1).key());
  EXPECT_EQ(keys.kvs(0).value(), "tenure1 shared\nann\n");
  EXPECT_EQ(keys.kvs(1).value(), "tenure1 shared\nann\nhello");
  EXPECT_EQ(static_cast<std::uint64_t>(keys.kvs(1).create_revision()), two.token().get());
}

}  // namespace
}  // namespace tenure::test
