#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/restore.hpp"
#include "core/snapshot.hpp"
#include "server/raft/node.hpp"
#include "server/raft/seed.hpp"
#include "support/raft/client.hpp"
#include "support/raft/group.hpp"
#include "support/raft/leases.hpp"
#include "support/raft/network.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::raft {
namespace {

using core::LeaseId;
using test::ann;
using test::bob;
using test::RaftClient;

constexpr ClusterId cluster{77};

/// Real nodes with real threads and disks, and a network inside the process.
class RaftCluster : public ::testing::Test {
 protected:
  static constexpr std::size_t size = 3;

  [[nodiscard]] NodeOptions options(std::uint64_t id) {
    auto options = test::small_node(folder / std::to_string(id), reports);
    options.identity = {.cluster = cluster, .member = MemberId{id}};
    options.initial_members = initial_members();
    // Long timeouts: the machine may run other tests.
    options.election_timeout = std::chrono::milliseconds(1000);
    options.heartbeat = std::chrono::milliseconds(100);
    return options;
  }
  [[nodiscard]] static std::vector<Member> initial_members() {
    return {test::RaftGroup::founder(1), test::RaftGroup::founder(2), test::RaftGroup::founder(3)};
  }
  void start(const NodeOptions& options) {
    auto node = Node::open(options);
    ASSERT_TRUE(node.has_value()) << node.error().detail;
    const auto id = (*node)->identity().member;
    (*node)->connect(network.transport(MemberId{id}));
    (*node)->start();
    nodes.at(id - 1) = std::move(*node);
  }
  void start_all() {
    for (std::uint64_t id = 1; id <= size; ++id) {
      start(options(id));
    }
  }
  [[nodiscard]] static LogPosition peek(Node& node) {
    std::promise<LogPosition> promise;
    node.peek([&](const Result<View>& view) { promise.set_value(view->log); });
    return promise.get_future().get();
  }
  /// 0: no leader yet.
  [[nodiscard]] std::uint64_t leader() {
    for (const auto& node : nodes) {
      if (node != nullptr && peek(*node).is_leader) {
        return node->identity().member;
      }
    }
    return 0;
  }
  Node& elect(std::uint64_t besides = 0) {
    std::uint64_t id = 0;
    EXPECT_TRUE(test::eventually([&] {
      id = leader();
      return id != 0 && id != besides;
    }));
    return *nodes.at(id - 1);
  }
  [[nodiscard]] static std::string stale_state(Node& node) {
    std::promise<std::string> promise;
    node.peek([&](const Result<View>& view) { promise.set_value(core::encode(view->state)); });
    return promise.get_future().get();
  }
  [[nodiscard]] bool agree() {
    std::string state;
    for (const auto& node : nodes) {
      if (node == nullptr) {
        continue;
      }
      const auto bytes = stale_state(*node);
      if (!state.empty() && bytes != state) {
        return false;
      }
      state = bytes;
    }
    return true;
  }
  static Result<void> change(Node& node, MemberChange change) {
    std::promise<Result<void>> promise;
    node.change_members(std::move(change),
                        [&](Result<void> result) { promise.set_value(std::move(result)); });
    return promise.get_future().get();
  }

  test::TemporaryFolder folder;
  test::Reports reports;
  test::RaftNetwork network;
  std::array<std::unique_ptr<Node>, 4> nodes;
};

// 002.107
TEST_F(RaftCluster, a_command_decided_by_three_nodes_survives_a_leader_change) {
  start_all();
  auto& first = elect();
  RaftClient client(first);
  ASSERT_TRUE(client.grant_lease(ann).has_value());
  const auto token = client.token(ann, "a");
  ASSERT_NE(token, 0U);

  const auto id = first.identity().member;
  network.cut_off(MemberId{id});
  auto& second = elect(id);
  RaftClient other(second);
  other.use_requests_after(10);

  EXPECT_GT(other.token(ann, "b"), token);
  network.heal();
  EXPECT_TRUE(test::eventually([&] { return agree(); }));
}

TEST_F(RaftCluster, a_restart_of_every_member_in_turn_keeps_everything) {
  start_all();
  ASSERT_TRUE(RaftClient(elect()).grant_lease(ann).has_value());

  for (std::uint64_t id = 1; id <= size; ++id) {
    nodes.at(id - 1)->stop();
    nodes.at(id - 1).reset();
    RaftClient client(elect());
    client.use_requests_after(id);
    ASSERT_NE(client.token(ann, "lock" + std::to_string(id)), 0U);
    start(options(id));
  }

  EXPECT_TRUE(test::eventually([&] { return leader() != 0 && agree(); }));
}

TEST_F(RaftCluster, a_stopping_leader_transfers_the_leadership) {
  start_all();
  auto& first = elect();
  const auto id = first.identity().member;
  const auto term = peek(first).term;
  ASSERT_TRUE(RaftClient(first).grant_lease(ann).has_value());

  first.stop();
  nodes.at(id - 1).reset();

  EXPECT_EQ(peek(elect()).term, term + 1) << "the only election is the requested one";
}

TEST_F(RaftCluster, a_member_with_an_old_log_is_brought_up_by_a_snapshot) {
  auto eager = [this](std::uint64_t id) {
    auto options = this->options(id);
    options.peer_entries_max = 4;
    options.trailing_entries = 8;
    return options;
  };
  for (std::uint64_t id = 1; id <= size; ++id) {
    start(eager(id));
  }
  auto& leader = elect();
  const auto behind = leader.identity().member % size + 1;
  RaftClient client(leader);
  ASSERT_TRUE(client.grant_lease(ann).has_value());
  nodes.at(behind - 1)->stop();
  nodes.at(behind - 1).reset();
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(client.token(ann, "lock" + std::to_string(i)), 0U);
  }
  ASSERT_TRUE(client.take_snapshot().has_value());

  start(eager(behind));

  EXPECT_TRUE(test::eventually([&] { return agree(); }));
  EXPECT_GE(peek(*nodes.at(behind - 1)).snapshot_index, 50U);
}

/// A cluster with a member that needs a snapshot to catch up.
class RaftClusterBehind : public RaftCluster {
 protected:
  [[nodiscard]] NodeOptions eager(std::uint64_t id) {
    auto options = this->options(id);
    options.peer_entries_max = 4;
    options.trailing_entries = 8;
    return options;
  }
  void SetUp() override {
    for (std::uint64_t id = 1; id <= size; ++id) {
      start(eager(id));
    }
    auto& leader = elect();
    behind = leader.identity().member % size + 1;
    RaftClient client(leader);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    nodes.at(behind - 1)->stop();
    nodes.at(behind - 1).reset();
    for (int i = 0; i < 50; ++i) {
      ASSERT_NE(client.token(ann, "lock" + std::to_string(i)), 0U);
    }
    ASSERT_TRUE(client.take_snapshot().has_value());
    file = folder / std::to_string(leader.identity().member) / "snapshot";
    ASSERT_TRUE(std::filesystem::exists(file));
  }
  [[nodiscard]] bool is_unreadable_reported() const {
    return reports.all().contains("snapshot_unreadable");
  }

  std::uint64_t behind = 0;
  std::filesystem::path file;  ///< Of the leader.
};

TEST_F(RaftClusterBehind, a_leader_whose_snapshot_is_damaged_sends_a_new_one) {
  test::write_content(file, "torn");

  start(eager(behind));

  EXPECT_TRUE(test::eventually([&] { return agree(); })) << reports.all();
  EXPECT_GT(peek(*nodes.at(behind - 1)).snapshot_index, 50U);
  EXPECT_TRUE(is_unreadable_reported()) << reports.all();
}

// A snapshot may be large, and libraft requests the transfer repeatedly.
TEST_F(RaftClusterBehind, a_snapshot_is_not_read_while_another_is_on_its_way) {
  test::write_content(file, "torn");  // So that reading it is noticed.
  network.set_busy_with_snapshots(true);

  start(eager(behind));

  EXPECT_TRUE(test::eventually([&] { return network.snapshots_put_off() >= 2; }));
  EXPECT_FALSE(is_unreadable_reported()) << reports.all();
  network.set_busy_with_snapshots(false);
  EXPECT_TRUE(test::eventually([&] { return agree(); })) << reports.all();
}

TEST_F(RaftCluster, a_member_joins_votes_and_leaves) {
  start_all();
  ASSERT_TRUE(RaftClient(elect()).grant_lease(ann).has_value());
  auto joining = options(4);
  joining.initial_members = {};
  joining.bootstrap_mode = BootstrapMode::join;
  start(joining);

  const auto added = change(elect(), test::RaftGroup::addition(4));
  ASSERT_TRUE(added.has_value()) << added.error().detail;
  EXPECT_TRUE(test::eventually([&] { return agree(); }));
  nodes.at(3)->stop();
  nodes.at(3).reset();
  start(joining);  // The member has a log now, and continues with it.
  const auto removed = change(elect(4), RemoveMember{.id = 4});

  EXPECT_TRUE(removed.has_value() || removed.error() == Errc::unavailable)
      << removed.error().detail;
}

TEST_F(RaftCluster, concurrent_clients_see_one_order) {
  start_all();
  auto& leader = elect();
  RaftClient client(leader);
  ASSERT_TRUE(client.grant_lease(ann).has_value());
  std::atomic<std::size_t> answers = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 200; ++n) {
          leader.propose(core::Tick{}, [&](const Result<Decided>&) { ++answers; });
          leader.read([&](const Result<View>&) { ++answers; });
        }
      });
    }
  }

  EXPECT_TRUE(test::eventually([&] { return answers == 4 * 200 * 2; }));
  EXPECT_TRUE(test::eventually([&] { return agree(); }));
}

TEST_F(RaftCluster, an_invalid_bootstrap_is_refused_and_nothing_is_written) {
  auto outsider = options(4);
  auto pair = options(1);
  pair.initial_members.pop_back();
  auto nameless = options(1);
  nameless.identity.cluster = {};
  auto both = options(1);
  both.bootstrap_mode = BootstrapMode::join;
  auto twice = options(1);
  twice.initial_members.back() = twice.initial_members.front();

  for (const auto& bad : {outsider, pair, nameless, both, twice}) {
    const auto opened = Node::open(bad);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Errc::invalid_argument) << opened.error().detail;
    EXPECT_FALSE(std::filesystem::exists(bad.folder));
  }
}

// R2: a single node becomes a cluster by a planned restart.
TEST_F(RaftCluster, a_single_member_seeds_a_cluster_that_goes_on_where_it_was) {
  std::uint64_t token = 0;
  core::Revision revision{};
  core::ClusterTime time{};
  {
    auto alone = test::small_node(folder / "alone", reports);
    const auto node = test::started(alone);
    RaftClient client(*node);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    token = client.token(ann, "a");
    node->stop();
  }
  const auto body = read_state(folder / "alone");
  ASSERT_TRUE(body.has_value()) << body.error().detail;
  revision = core::decode(*body)->revision;
  time = core::decode(*body)->now;

  for (std::uint64_t id = 1; id <= size; ++id) {
    const auto seeded = write_seed({.folder = folder / std::to_string(id),
                                    .identity = {.cluster = cluster, .member = MemberId{id}},
                                    .members = initial_members(),
                                    .body = *body,
                                    .source = SeedSource::current});
    ASSERT_TRUE(seeded.has_value()) << seeded.error().detail;
  }
  start_all();
  RaftClient client(elect());
  client.use_requests_after(100);

  ASSERT_TRUE(client.grant_lease(bob).has_value());
  EXPECT_EQ(client.ask([](const View& view) { return view.state.leases.all().size(); }), 2U);
  EXPECT_GT(client.token(bob, "b"), token);
  EXPECT_GT(client.ask([](const View& view) { return view.state.revision; }), revision);
  EXPECT_GE(client.ask([](const View& view) { return view.state.now; }), time);
  EXPECT_TRUE(test::eventually([&] { return agree(); }));

  // Regression: a snapshot of index 1 was never sent.
  auto joining = options(4);
  joining.initial_members = {};
  joining.bootstrap_mode = BootstrapMode::join;
  start(joining);
  const auto added = change(elect(), test::RaftGroup::addition(4));
  EXPECT_TRUE(added.has_value()) << added.error().detail;
}

// 002.108: also when a single node is restored from a backup that is older than its last tokens.
// With smaller tokens, storage would refuse new holders or accept a stale one.
TEST_F(RaftCluster, a_restored_backup_rewinds_neither_tokens_nor_leases_nor_watches) {
  const auto backup = folder / "backup";
  std::uint64_t last_token = 0;
  core::Revision last_revision{};
  core::LeaseId last_lease{};
  {
    const auto node = test::started(test::small_node(folder / "alone", reports));
    RaftClient client(*node);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    ASSERT_GT(client.token(ann, "a"), 0U);
    node->stop();
  }
  std::filesystem::copy(folder / "alone", backup, std::filesystem::copy_options::recursive);
  {
    const auto node = test::started(test::small_node(folder / "alone", reports));
    RaftClient client(*node);
    client.use_requests_after(100);
    last_lease = client.fresh_lease();
    last_token = client.token(last_lease, "b");
    last_revision = client.ask([](const View& view) { return view.state.revision; });
    node->stop();
  }

  const auto body = read_state(backup);
  ASSERT_TRUE(body.has_value()) << body.error().detail;
  auto restored = test::small_node(folder / "restored", reports);
  const auto seeded =
      write_seed({.folder = restored.folder, .body = *body, .source = SeedSource::current});
  ASSERT_TRUE(seeded.has_value()) << seeded.error().detail;
  const auto node = test::started(restored);
  RaftClient client(*node);
  client.use_requests_after(200);

  EXPECT_EQ(node->identity().cluster, seeded->cluster.get());
  EXPECT_GT(client.ask([](const View& view) { return view.state.events.compact_revision(); }),
            last_revision)
      << "a watch gets an error instead of a gap";
  const auto lease = client.fresh_lease();
  EXPECT_GT(lease, last_lease) << "no id of an old lease is reused";
  EXPECT_GT(client.token(lease, "b"), last_token);
  EXPECT_EQ(client.ask([](const View& view) { return view.state.leases.all().size(); }), 2U);
}

// A client may have acquired a lock after the backup, and relies on it for up to one TTL.
TEST_F(RaftCluster, a_restored_backup_grants_nothing_before_the_longest_ttl) {
  {
    const auto node = test::started(test::small_node(folder / "alone", reports));
    RaftClient client(*node);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    ASSERT_GT(client.token(ann, "a"), 0U);
    node->stop();
  }
  const auto body = read_state(folder / "alone");
  ASSERT_TRUE(body.has_value()) << body.error().detail;
  const auto restored = test::small_node(folder / "restored", reports);
  const auto seeded = write_seed({.folder = restored.folder, .body = *body});
  ASSERT_TRUE(seeded.has_value()) << seeded.error().detail;
  const auto node = test::started(restored);
  RaftClient client(*node);

  EXPECT_EQ(seeded->grants_after, core::Limits{}.ttl_max);
  EXPECT_TRUE(client.ask([](const View& view) {
    return view.state.restoration.until > view.state.now &&
           view.state.restoration.unconfirmed == std::set{ann};
  }));
  EXPECT_EQ(client.ask([](const View& view) { return view.state.locks.holds().size(); }), 1U);
}

TEST_F(RaftCluster, a_state_that_is_too_large_is_seeded_without_its_leases) {
  {
    const auto node = test::started(test::small_node(folder / "alone", reports));
    RaftClient client(*node);
    ASSERT_TRUE(client.grant_lease(ann).has_value());
    ASSERT_GT(client.token(ann, "a"), 0U);
    node->stop();
  }
  const auto body = read_state(folder / "alone");
  ASSERT_TRUE(body.has_value()) << body.error().detail;
  const auto restored = test::small_node(folder / "restored", reports);
  const auto seeded = write_seed({.folder = restored.folder,
                                  .body = *body,
                                  .source = SeedSource::current,
                                  .leases = SeedLeases::drop});
  ASSERT_TRUE(seeded.has_value()) << seeded.error().detail;
  const auto node = test::started(restored);
  RaftClient client(*node);

  // The client of the dropped lease may rely on it for its TTL.
  EXPECT_EQ(seeded->grants_after, core::longest_ttl(*core::decode(*body)));
  EXPECT_EQ(client.ask([](const View& view) { return view.state.leases.all().size(); }), 0U);
  EXPECT_GT(client.ask([](const View& view) { return view.state.revision.get(); }), seed_step);
}

TEST_F(RaftCluster, a_seed_that_cannot_grow_is_refused_and_nothing_is_written) {
  const auto body = core::encode(core::State{});
  Seed seed{.folder = folder / "new",
            .identity = {.cluster = cluster, .member = MemberId{1}},
            .members = initial_members(),
            .body = body};
  auto pair = seed;
  pair.members.pop_back();
  auto nameless = seed;
  nameless.identity.cluster = {};
  auto outsider = seed;
  outsider.identity.member = MemberId{9};
  auto damaged = seed;
  damaged.body = "no state";
  auto used = seed;
  used.folder = folder.path();
  test::write_content(folder / "something", "else");

  core::State worn;
  worn.revision = core::Revision{~std::uint64_t{0} - 7};
  const auto worn_body = core::encode(worn);
  auto used_up = seed;
  used_up.body = worn_body;

  for (const auto& bad : {pair, nameless, outsider, damaged, used, used_up}) {
    EXPECT_EQ(write_seed(bad).error().code, Errc::invalid_argument);
  }
  EXPECT_FALSE(std::filesystem::exists(seed.folder));
  EXPECT_EQ(read_state(folder / "nowhere").error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace tenure::server::raft
