#include <chrono>

#include <gtest/gtest.h>

#include "server/raft/cluster_clock.hpp"
#include "support/raft/client.hpp"
#include "support/raft/leases.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::raft {
namespace {

using core::ClusterTime;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::ann;

// 002-B23
TEST(RaftClusterClock, cluster_time_continues_from_the_last_stamp) {
  ClusterClock clock;
  const steady_clock::time_point morning{seconds(1'000'000)};

  clock.begin(seconds(50), morning);
  EXPECT_EQ(clock.at(morning), ClusterTime(seconds(50)));
  EXPECT_EQ(clock.at(morning + seconds(3)), ClusterTime(seconds(53)));

  clock.begin(seconds(51), morning + seconds(100));
  EXPECT_EQ(clock.at(morning + seconds(101)), ClusterTime(seconds(52)));
  EXPECT_EQ(clock.local(seconds(60)), morning + seconds(109));
}

TEST(RaftClusterClock, cluster_time_never_goes_back) {
  ClusterClock clock;
  const steady_clock::time_point morning{seconds(1'000'000)};
  clock.begin(seconds(50), morning);

  EXPECT_EQ(clock.at(morning + seconds(3)), ClusterTime(seconds(53)));
  EXPECT_EQ(clock.at(morning + seconds(1)), ClusterTime(seconds(53)));
}

// 002-B23: time without a leader does not count; the remaining TTL does.
TEST(RaftTime, a_lease_keeps_its_remaining_ttl_across_a_restart) {
  const test::TemporaryFolder folder;
  test::Reports reports;
  const auto options = test::small_node(folder.path(), reports);
  constexpr milliseconds ttl{1200};
  ClusterTime before{};
  ClusterTime deadline{};
  {
    const auto node = test::started(options);
    test::RaftClient client(*node);
    const auto lease = client.grant_lease(ann, ttl);
    deadline = std::get<core::LeaseGranted>(lease->outcome).deadline;
    before = client.ask([](const View& view) { return view.state.now; });
  }
  const auto stopped = steady_clock::now();
  ASSERT_TRUE(test::eventually([&] { return steady_clock::now() > stopped + ttl; }));

  const auto node = test::started(options);
  test::RaftClient client(*node);
  const auto now = client.ask([](const View& view) { return view.now; });
  const auto has_lease = [&] {
    return client.ask([](const View& view) { return view.state.leases.find(ann) != nullptr; });
  };

  EXPECT_GE(now, before) << "cluster time continues from the last stamp";
  EXPECT_LT(now, deadline) << "the downtime was counted";
  EXPECT_TRUE(test::eventually([&] { return !has_lease(); })) << "the lease never expires";
}

}  // namespace
}  // namespace tenure::server::raft
