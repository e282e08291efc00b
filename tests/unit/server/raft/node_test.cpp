#include "server/raft/node.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "support/raft/client.hpp"
#include "support/raft/leases.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::raft {
namespace {

using core::LeaseId;
using std::chrono::milliseconds;
using test::ann;
using test::bob;
using test::RaftClient;

/// Runs every test with disk I/O on the event loop and on a separate thread.
class RaftNode : public ::testing::TestWithParam<DiskMode> {
 protected:
  [[nodiscard]] NodeOptions options() {
    auto options = test::small_node(folder.path(), reports);
    options.disk = GetParam();
    return options;
  }
  std::unique_ptr<Node> start() { return test::started(options()); }
  /// Copy of the folder while the node runs, as after kill -9. Ignores files that the background
  /// thread creates and removes.
  std::filesystem::path copy_of_folder() {
    const auto copy = folders / std::to_string(++copies);
    std::filesystem::create_directories(copy);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      const auto name = entry.path().filename();
      std::error_code ignored;
      if (name.extension() != ".new") {
        std::filesystem::copy_file(entry.path(), copy / name, ignored);
      }
    }
    return copy;
  }

  test::TemporaryFolder folder;
  test::TemporaryFolder folders;
  int copies = 0;
  test::Reports reports;
};

INSTANTIATE_TEST_SUITE_P(disk, RaftNode, ::testing::Values(DiskMode::loop, DiskMode::thread),
                         [](const auto& place) {
                           return place.param == DiskMode::loop ? "on_the_loop" : "on_a_thread";
                         });

TEST_P(RaftNode, a_node_applies_commands_and_serves_reads) {
  const auto node = start();
  RaftClient client(*node);

  ASSERT_TRUE(client.grant_lease(ann).has_value());
  const auto decided = client.acquire(ann, "a");

  ASSERT_TRUE(decided.has_value()) << decided.error().detail;
  EXPECT_TRUE(std::holds_alternative<core::Granted>(decided->outcome));
  EXPECT_EQ(decided->revision, client.ask([](const View& view) { return view.state.revision; }));
  const auto position = client.position();
  EXPECT_TRUE(position.is_leader);
  EXPECT_EQ(position.leader, 1U);
  EXPECT_EQ(position.term, decided->term);
  EXPECT_EQ(position.commit_index, position.applied_index);
  EXPECT_EQ(position.last_index, position.applied_index);
  EXPECT_TRUE(position.has_space);
  EXPECT_EQ(node->identity().member, 1U);
}

// 002.107, 002.108
TEST_P(RaftNode, a_clean_stop_and_a_crash_keep_everything) {
  std::string before;
  std::uint64_t token = 0;
  std::filesystem::path crashed;
  {
    const auto node = start();
    RaftClient client(*node);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    ASSERT_TRUE(client.grant_lease(bob).has_value());
    token = client.token(ann, "a");
    ASSERT_TRUE(client.acquire(bob, "a").has_value());
    before = client.state_bytes();
    crashed = copy_of_folder();
    node->stop();
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "snapshot"));
  EXPECT_FALSE(std::filesystem::exists(crashed / "snapshot"));

  for (const auto& path : {folder.path(), crashed}) {
    auto options = this->options();
    options.folder = path;
    const auto node = test::started(options);
    RaftClient client(*node);
    client.use_requests_after(100);

    EXPECT_EQ(client.state_bytes(), before);
    EXPECT_GT(client.token(ann, "b"), token);
  }
}

TEST_P(RaftNode, every_start_leads_in_a_new_term) {
  std::uint64_t term = 0;
  for (int i = 0; i < 3; ++i) {
    const auto node = start();
    const auto now = RaftClient(*node).position().term;
    EXPECT_GT(now, term);
    term = now;
  }
}

// 002.083, 002-B26: a timer, no scan.
TEST_P(RaftNode, a_lease_expires_and_its_next_waiter_is_notified) {
  class Watcher final : public Listener {
   public:
    void applied(const core::Applied& what, const core::State& /*state*/) override {
      for (const auto& notice : what.notices) {
        if (std::holds_alternative<core::Granted>(notice.end)) {
          granted.set_value(notice.lease);
        }
      }
    }
    std::promise<LeaseId> granted;
  } watcher;
  auto node = Node::open(options()).value();
  node->listen(watcher);
  node->start();
  RaftClient client(*node);
  ASSERT_TRUE(client.grant_lease(ann, milliseconds(150)).has_value());
  ASSERT_TRUE(client.grant_lease(bob).has_value());
  ASSERT_NE(client.token(ann, "a"), 0U);
  ASSERT_TRUE(client.acquire(bob, "a").has_value());

  auto granted = watcher.granted.get_future();

  ASSERT_EQ(granted.wait_for(test::test_timeout), std::future_status::ready);
  EXPECT_EQ(granted.get(), bob);
}

TEST_P(RaftNode, limits_of_the_options_become_part_of_the_state) {
  auto strict = options();
  strict.limits.name_bytes_max = 3;
  const auto node = test::started(strict);
  RaftClient client(*node);
  ASSERT_TRUE(client.grant_lease(ann).has_value());

  const auto decided = client.acquire(ann, "four");

  ASSERT_TRUE(decided.has_value());
  EXPECT_TRUE(std::holds_alternative<core::Refused>(decided->outcome));
}

// Catches a difference between the live state and the state that a snapshot and replay restore.
TEST_P(RaftNode, snapshots_and_what_followed_them_give_the_same_state) {
  auto eager = options();
  eager.snapshot_log_bytes = 2000;
  eager.snapshot_factor = 0;
  std::string before;
  std::filesystem::path crashed;
  {
    const auto node = test::started(eager);
    RaftClient client(*node);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    for (int i = 0; i < 500; ++i) {
      ASSERT_NE(client.token(ann, "lock/" + std::to_string(i)), 0U);
    }
    while (client.position().snapshot_index == 0) {
      // A background thread writes the snapshot. The ctest timeout bounds this loop.
    }
    ASSERT_TRUE(client.take_snapshot().has_value());  // No snapshot is written during the copy.
    ASSERT_NE(client.token(ann, "after it"), 0U);
    before = client.state_bytes();
    crashed = copy_of_folder();
  }

  for (const auto& path : {folder.path(), crashed}) {
    eager.folder = path;
    const auto node = test::started(eager);
    EXPECT_EQ(RaftClient(*node).state_bytes(), before);
  }
}

TEST_P(RaftNode, a_snapshot_on_request_cuts_the_log) {
  const auto node = start();
  RaftClient client(*node);
  ASSERT_TRUE(client.grant_lease(ann).has_value());
  for (int i = 0; i < 200; ++i) {
    ASSERT_NE(client.token(ann, std::string(500, 'x') + std::to_string(i)), 0U);
  }
  const auto before = client.position();

  const auto index = client.take_snapshot();

  ASSERT_TRUE(index.has_value()) << index.error().detail;
  EXPECT_EQ(*index, before.applied_index);
  const auto after = client.position();
  EXPECT_EQ(after.snapshot_index, *index);
  EXPECT_GT(after.first_index, before.first_index);
  EXPECT_TRUE(test::eventually([&] { return client.position().log_bytes < before.log_bytes; }));
  EXPECT_EQ(client.take_snapshot().value(), *index) << "no new entries, no new snapshot";
}

TEST_P(RaftNode, listeners_are_notified_of_every_snapshot_and_its_duration) {
  class Counter final : public Listener {
   public:
    void snapshot_taken(std::chrono::nanoseconds took) override {
      ++snapshots;
      EXPECT_GT(took.count(), 0);
    }
    std::atomic<int> snapshots = 0;
  } counter;
  auto node = Node::open(options()).value();
  node->listen(counter);
  node->start();
  RaftClient client(*node);
  ASSERT_TRUE(client.grant_lease(ann).has_value());

  ASSERT_TRUE(client.take_snapshot().has_value());
  ASSERT_TRUE(client.take_snapshot().has_value()) << "no new entries, no new snapshot";

  EXPECT_EQ(counter.snapshots, 1);
  node->stop();
}

// 002-B26: commands that arrive during a write share the next one.
TEST_P(RaftNode, commands_of_many_clients_share_one_write) {
  class Counter final : public Listener {
   public:
    void synced(std::chrono::nanoseconds /*took*/, std::size_t entries) override {
      ++syncs;
      EXPECT_EQ(entries, 1U);
    }
    void committed(std::chrono::nanoseconds /*took*/, std::size_t count) override {
      commands += count;
    }
    std::size_t syncs = 0;
    std::size_t commands = 0;
  } counter;
  // Without an entry that raises the cluster version.
  auto chosen = options();
  chosen.version_max = core::oldest_version;
  auto node = Node::open(chosen).value();
  node->listen(counter);
  node->start();
  // Blocks the thread of the store, like a slow disk, until all clients have proposed.
  std::promise<void> gate;
  boost::asio::post(node->loop(), [&] { gate.get_future().wait(); });
  std::atomic<std::size_t> answers = 0;

  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 64; ++i) {
      threads.emplace_back([&] {
        node->propose(core::Tick{}, [&](const Result<Decided>& decided) {
          EXPECT_TRUE(decided.has_value());
          ++answers;
        });
      });
    }
  }
  gate.set_value();
  ASSERT_TRUE(test::eventually([&] { return answers == 64; }));
  node->stop();

  EXPECT_EQ(counter.commands, 64U);
  EXPECT_EQ(counter.syncs, 1U);
}

TEST_P(RaftNode, answers_come_in_the_order_of_the_proposals) {
  const auto node = start();
  std::vector<int> order;
  std::promise<void> finished;

  for (int i = 0; i < 10'000; ++i) {
    node->propose(core::Tick{}, [&, i](const Result<Decided>& decided) {
      EXPECT_TRUE(decided.has_value());
      order.push_back(i);
      if (order.size() == 10'000) {
        finished.set_value();
      }
    });
  }
  finished.get_future().wait();

  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_P(RaftNode, too_much_in_flight_is_refused_and_changes_nothing) {
  auto tight = options();
  tight.in_flight.commands = 3;
  auto node = Node::open(tight).value();
  std::atomic<int> refused = 0;
  std::atomic<int> done = 0;

  for (int i = 0; i < 5; ++i) {  // The node is not started, so proposals stay queued.
    node->propose(core::Tick{}, [&](const Result<Decided>& decided) {
      refused += !decided && decided.error() == Errc::resource_exhausted ? 1 : 0;
      ++done;
    });
  }
  node->start();

  EXPECT_TRUE(test::eventually([&] { return done == 5; }));
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(RaftClient(*node).propose(core::Tick{}).has_value()) << "the queue has room again";
}

TEST_P(RaftNode, after_a_stop_everything_is_unavailable) {
  const auto node = start();
  RaftClient client(*node);
  ASSERT_TRUE(client.grant_lease(ann).has_value());

  std::atomic<int> answers = 0;
  for (int i = 0; i < 1000; ++i) {
    node->propose(core::Tick{}, [&](const Result<Decided>& decided) {
      EXPECT_TRUE(decided.has_value() || decided.error() == Errc::unavailable);
      ++answers;
    });
  }
  node->stop();

  EXPECT_EQ(answers, 1000) << "each proposal gets one reply, done or not";
}

TEST_P(RaftNode, a_folder_whose_log_is_gone_is_refused) {
  {
    start();
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("log-") || name == "snapshot") {
      std::filesystem::remove(entry.path());
    }
  }

  const auto opened = Node::open(options());

  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::invalid_argument);
  EXPECT_NE(opened.error().detail.find("are missing"), std::string::npos) << opened.error().detail;
}

TEST_P(RaftNode, a_folder_in_use_is_refused) {
  const auto node = start();

  const auto second = Node::open(options());

  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::would_block);
}

}  // namespace
}  // namespace tenure::server::raft
