#include "server/metrics/metrics.hpp"

#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::server {
namespace {

using core::ClusterTime;
using core::EventType;
using core::LeaseId;
using namespace std::chrono_literals;

/// The real state machine, with metrics that observe each command.
class MetricsTest : public core::CoreTest {
 protected:
  void SetUp() override {
    observe(apply(core::GrantLease{.id = ann, .ttl = 30s}));
    observe(apply(core::GrantLease{.id = bob, .ttl = 60s}));
  }

  void observe(const core::Applied& what) { metrics.applied(what, machine.state()); }
  void run(const core::Command& command, ClusterTime after = {}) { observe(apply(command, after)); }
  void ask(LeaseId lease, std::vector<core::Item> items,
           core::SelfConflict again = core::SelfConflict::refuse) {
    run(core::Acquire{
        .lease = lease, .request = fresh(), .items = std::move(items), .self_conflict = again});
  }
  void give_back(LeaseId lease, std::string name, ClusterTime after) {
    run(
        core::Release{
            .lease = lease, .request = fresh(), .what = core::Target{std::move(name), {}}},
        after);
  }

  /// The exported value of a series; empty if it does not exist.
  std::string value(const std::string& series) {
    const LogPosition log{.is_leader = true, .term = 3, .commit_index = 9, .applied_index = 8};
    metrics.observe({.state = machine.state(), .log = log, .now = machine.state().now});
    const auto text = "\n" + metrics.text();
    const auto at = text.find("\n" + series + " ");
    if (at == std::string::npos) {
      return "";
    }
    const auto begin = at + series.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  Metrics metrics{"1.2.3"};
};

TEST_F(MetricsTest, grants_are_counted_by_mode_and_released_by_reason) {
  ask(ann, {lock("a"), lock("b", LockMode::shared)});
  ask(bob, {permits("s", 2, 3)});
  EXPECT_EQ(value(R"(tenure_acquire_total{mode="X",result="granted"})"), "1");
  EXPECT_EQ(value(R"(tenure_acquire_total{mode="S",result="granted"})"), "1");
  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "1");
  EXPECT_EQ(value(R"(tenure_locks_held{mode="permits"})"), "1");

  give_back(ann, "a", 2s);

  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "0");
  EXPECT_EQ(value(R"(tenure_locks_held{mode="S"})"), "1");
  EXPECT_EQ(value(R"(tenure_release_total{reason="released"})"), "1");
  EXPECT_EQ(value("tenure_hold_seconds_sum"), "2");
}

TEST_F(MetricsTest, waiting_is_measured_in_cluster_time_from_queue_to_grant) {
  ask(ann, {lock("a"), lock("b")});
  ask(bob, {lock("a"), lock("b")});
  EXPECT_EQ(value("tenure_waiters"), "1");

  give_back(ann, "a", 3s);
  give_back(ann, "b", 1s);

  EXPECT_EQ(value("tenure_waiters"), "0");
  EXPECT_EQ(value("tenure_acquire_seconds_count"), "2");
  EXPECT_EQ(value("tenure_acquire_seconds_sum"), "4");
}

TEST_F(MetricsTest, an_upgrade_changes_the_mode_and_not_the_start_time) {
  ask(ann, {lock("a", LockMode::shared)}, core::SelfConflict::reenter);
  run(core::Tick{}, 1s);
  ask(ann, {lock("a", LockMode::update)}, core::SelfConflict::reenter);
  run(core::Tick{}, 1s);
  ask(ann, {lock("a")}, core::SelfConflict::reenter);
  EXPECT_EQ(value(R"(tenure_locks_held{mode="S"})"), "0");
  EXPECT_EQ(value(R"(tenure_locks_held{mode="U"})"), "0");
  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "1");

  run(core::RevokeLease{ann}, 1s);

  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "0");
  EXPECT_EQ(value("tenure_hold_seconds_sum"), "3");
  EXPECT_EQ(value(R"(tenure_release_total{reason="revoked"})"), "1");
  EXPECT_EQ(value("tenure_lease_expired_total"), "0");
}

TEST_F(MetricsTest, a_downgrade_changes_the_mode_and_is_no_grant) {
  ask(ann, {lock("a", LockMode::shared)}, core::SelfConflict::reenter);
  ask(ann, {lock("a")}, core::SelfConflict::reenter);
  const auto token = token_of(applied.outcome);

  run(core::Downgrade{.lease = ann, .token = token}, 1s);

  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "0");
  EXPECT_EQ(value(R"(tenure_locks_held{mode="S"})"), "1");
  EXPECT_EQ(value(R"(tenure_acquire_total{mode="S",result="granted"})"), "1");
  run(core::RevokeLease{ann}, 1s);
  EXPECT_EQ(value(R"(tenure_locks_held{mode="S"})"), "0");
  EXPECT_EQ(value("tenure_hold_seconds_sum"), "2");
}

TEST_F(MetricsTest, expired_leases_are_counted_with_and_without_locks) {
  ask(bob, {lock("a"), lock("b")});
  EXPECT_EQ(value("tenure_leases"), "2");

  run(core::RenewLeases{{ann, LeaseId{99}}});
  run(core::Tick{}, 60s);

  EXPECT_EQ(value("tenure_lease_expired_total"), "2");
  EXPECT_EQ(value("tenure_leases"), "0");
  EXPECT_EQ(value(R"(tenure_release_total{reason="expired"})"), "2");
  EXPECT_EQ(value(R"(tenure_lease_renew_total{result="renewed"})"), "1");
  EXPECT_EQ(value(R"(tenure_lease_renew_total{result="lost"})"), "1");
}

TEST_F(MetricsTest, refusals_deadlocks_and_limits_are_counted) {
  machine = core::StateMachine(core::Limits{.leases_max = 2});
  SetUp();
  ask(ann, {lock("a")});
  ask(bob, {lock("b")});
  ask(ann, {lock("b")});
  ask(bob, {lock("a")});
  run(core::Acquire{
      .lease = bob, .request = fresh(), .items = {lock("a")}, .queue = core::Queue::skip});
  run(core::GrantLease{.ttl = 1s});

  EXPECT_EQ(value("tenure_deadlocks_total"), "1");
  EXPECT_EQ(value(R"(tenure_acquire_total{mode="X",result="deadlock"})"), "1");
  EXPECT_EQ(value(R"(tenure_acquire_total{result="would_block"})"), "1");
  EXPECT_EQ(value(R"(tenure_limit_rejected_total{limit="leases_max"})"), "1");
}

// After a start from a snapshot, the process has not observed the grants of the held locks.
TEST_F(MetricsTest, earlier_holds_are_known_from_the_first_command) {
  apply(core::Acquire{.lease = ann, .request = fresh(), .items = {lock("a")}});
  apply(core::Acquire{.lease = bob, .request = fresh(), .items = {lock("a")}});
  metrics.role_changed({.is_leader = true});
  run(core::Tick{});
  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "1");

  give_back(ann, "a", 5s);

  EXPECT_EQ(value(R"(tenure_locks_held{mode="X"})"), "1");
  EXPECT_EQ(value("tenure_hold_seconds_sum"), "5");
  EXPECT_EQ(value("tenure_acquire_seconds_sum"), "5");
}

TEST_F(MetricsTest, the_log_the_calls_and_the_watches_are_counted) {
  metrics.synced(2ms, 3);
  metrics.committed(3ms, 100);
  metrics.snapshot_taken(250ms);
  metrics.snapshot_failed();
  metrics.member_lost_entries();
  const auto method = metrics.method("/tenure.v1.Lock/Acquire");
  method.done(0);
  method.done(99);
  metrics.watch_began();
  metrics.watch_began();
  metrics.watch_ended();
  metrics.watch_cut();

  EXPECT_EQ(value("tenure_raft_fsync_seconds_count"), "1");
  EXPECT_EQ(value("tenure_commit_batch_commands_sum"), "100");
  EXPECT_EQ(value("tenure_snapshot_seconds_sum"), "0.25");
  EXPECT_EQ(value("tenure_snapshot_failed_total"), "1");
  EXPECT_EQ(value("tenure_member_lost_entries_total"), "1");
  EXPECT_EQ(value("tenure_raft_term"), "3");
  EXPECT_EQ(value("tenure_raft_is_leader"), "1");
  EXPECT_EQ(value("tenure_watchers"), "1");
  EXPECT_EQ(value("tenure_watch_cut_total"), "1");
  EXPECT_EQ(value(R"(tenure_build_info{version="1.2.3"})"), "1");
  EXPECT_EQ(value(R"(tenure_grpc_requests_total{code="OK",method="/tenure.v1.Lock/Acquire"})"),
            "1");
  EXPECT_EQ(value(R"(tenure_grpc_requests_total{code="UNKNOWN",method="/tenure.v1.Lock/Acquire"})"),
            "1");
}

TEST_F(MetricsTest, promtool_accepts_the_metrics) {
  ask(ann, {lock("a")});
  metrics.method("/tenure.v1.Lock/Acquire").done(0);
  metrics.limit_rejected("streams_max");
  const auto text = metrics.text();

  auto* promtool = ::popen("promtool check metrics 2>&1 > /dev/null", "w");
  ASSERT_NE(promtool, nullptr);
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), promtool), text.size());

  EXPECT_EQ(::pclose(promtool), 0) << text;
}

}  // namespace
}  // namespace tenure::server
