#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/rpc/fixture.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

class LockRpc : public RpcTest {
 protected:
  /// Waits until the server has read everything that was sent on the connection before.
  void read_all_sent(std::uint64_t lease) {
    v1::LeaseTimeToLiveRequest question;
    question.set_id(lease);
    v1::LeaseTimeToLiveResponse answer;
    ASSERT_TRUE(locks_->LeaseTimeToLive(context().get(), question, &answer).ok());
  }
};

// 002.021, 002.028, 002.029, 002.030, 002.059, 002.096
TEST_F(LockRpc, a_free_lock_is_granted_with_key_token_and_header) {
  const auto owner = lease();
  auto request = lock_request("db/users", owner);
  request.set_request_id(7);
  request.set_metadata("schema-migration");

  const auto response = lock(request);

  EXPECT_TRUE(response.acquired());
  EXPECT_GT(response.fencing_token(), 0U);
  EXPECT_EQ(response.count(), 1U);
  EXPECT_EQ(response.key(), "db/users/" + std::string("1-7"));
  EXPECT_EQ(response.request_id(), 7U);
  EXPECT_EQ(response.header().cluster_id(), 0xC0FFEEU);
  EXPECT_EQ(response.header().member_id(), 1U);
  EXPECT_EQ(response.header().revision(), response.fencing_token());
  EXPECT_GT(response.header().raft_term(), 0U);
}

// 002.022, 002.060: TryLock never waits, and a held lock is a reply, not an error.
TEST_F(LockRpc, try_lock_acquires_a_free_lock_and_reports_a_held_one) {
  const auto first = lease();
  const auto second = lease();

  EXPECT_TRUE(try_lock("a", first).acquired());
  const auto busy = try_lock("a", second);

  EXPECT_FALSE(busy.acquired());
  EXPECT_EQ(busy.reason(), v1::REASON_WOULD_BLOCK);
  EXPECT_EQ(busy.fencing_token(), 0U);
}

// 002.028, 002-B33: 0 does not wait.
TEST_F(LockRpc, a_timeout_of_zero_does_not_wait) {
  const auto first = lease();
  const auto second = lease();
  ASSERT_TRUE(lock("a", first).acquired());
  auto request = lock_request("a", second);
  request.set_timeout_ms(0);

  const auto response = lock(request);

  EXPECT_FALSE(response.acquired());
  EXPECT_EQ(response.reason(), v1::REASON_WOULD_BLOCK);
}

// 002-B21, 002-B33: a timeout leaves no stale wait in the queue.
TEST_F(LockRpc, a_wait_that_times_out_leaves_the_queue) {
  const auto first = lease();
  const auto second = lease();
  const auto held = lock("a", first);
  auto request = lock_request("a", second);
  request.set_timeout_ms(30);

  const auto response = lock(request);

  EXPECT_FALSE(response.acquired());
  EXPECT_EQ(response.reason(), v1::REASON_TIMED_OUT);
  EXPECT_EQ(response.queue_position(), 1U);
  EXPECT_TRUE(waits_become(0));
  ASSERT_TRUE(unlock(first, held.fencing_token()).ok());
  EXPECT_TRUE(try_lock("a", first).acquired());
}

// 002.023, 002.062, 002.066, 002.077, 002.079: in the order of arrival, tokens grow.
TEST_F(LockRpc, an_unlock_grants_to_the_first_waiter) {
  const auto holder = lease();
  const auto held = lock("a", holder);
  const auto one = lease();
  const auto two = lease();
  PendingLock first(*locks_, lock_request("a", one));
  ASSERT_TRUE(waits_become(1));
  PendingLock second(*locks_, lock_request("a", two));
  ASSERT_TRUE(waits_become(2));

  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());

  ASSERT_TRUE(first.wait().ok());
  EXPECT_TRUE(first.response().acquired());
  EXPECT_EQ(first.response().queue_position(), 1U);
  EXPECT_GT(first.response().fencing_token(), held.fencing_token());
  EXPECT_TRUE(waits_become(1));
  ASSERT_TRUE(unlock(one, first.response().fencing_token()).ok());
  ASSERT_TRUE(second.wait().ok());
  EXPECT_EQ(second.response().queue_position(), 2U);
  EXPECT_GT(second.response().fencing_token(), first.response().fencing_token());
}

// 002.079, 002-B17, 002-B18: only the holder unlocks, and only with its own token.
TEST_F(LockRpc, unlocking_a_lock_that_is_not_held_is_an_error_and_changes_nothing) {
  const auto holder = lease();
  const auto other = lease();
  const auto held = lock("a", holder);

  EXPECT_EQ(unlock(other, held.fencing_token()).error_code(),
            ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(unlock(holder, held.fencing_token() + 1).error_code(),
            ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(try_lock("a", other).acquired());
  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());
  EXPECT_EQ(unlock(holder, held.fencing_token()).error_code(),
            ::grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(LockRpc, a_lock_can_be_released_by_name) {
  const auto holder = lease();
  ASSERT_TRUE(lock("a", holder).acquired());
  v1::UnlockRequest request;
  request.set_lease_id(holder);
  request.set_name("a");
  v1::UnlockResponse response;

  const auto status = locks_->Unlock(context().get(), request, &response);

  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.count_left(), 0U);
  EXPECT_TRUE(try_lock("a", lease()).acquired());
}

// 002.065, 002-B16
TEST_F(LockRpc, the_same_lease_reenters_on_request_and_counts) {
  const auto holder = lease();
  const auto held = lock("a", holder);
  auto again = lock_request("a", holder);
  again.set_self_conflict(v1::SELF_CONFLICT_REENTER);

  const auto response = lock(again);

  EXPECT_EQ(response.fencing_token(), held.fencing_token());
  EXPECT_EQ(response.count(), 2U);
  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());
  EXPECT_FALSE(try_lock("a", lease()).acquired());
  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());
  EXPECT_TRUE(try_lock("a", lease()).acquired());
}

// 002-B16: otherwise the lease would wait for itself forever.
TEST_F(LockRpc, the_same_lease_is_refused_without_a_reenter_request) {
  const auto holder = lease();
  ASSERT_TRUE(lock("a", holder).acquired());

  const auto response = lock("a", holder);

  EXPECT_FALSE(response.acquired());
  EXPECT_EQ(response.reason(), v1::REASON_DEADLOCK);
}

// 002-B32: a retry gets the same reply, not a second hold or queue position.
TEST_F(LockRpc, the_same_request_id_gets_the_same_token) {
  const auto holder = lease();
  auto request = lock_request("a", holder);
  request.set_request_id(42);

  const auto first = lock(request);
  const auto second = lock(request);

  EXPECT_TRUE(second.acquired());
  EXPECT_EQ(first.fencing_token(), second.fencing_token());
  EXPECT_EQ(second.count(), 1U);
}

// 002-B32: the connection of the first call may be half-open; the wait ends with its last call.
TEST_F(LockRpc, a_retry_joins_the_wait_of_its_first_call_and_outlives_it) {
  const auto holder = lease();
  const auto held = lock("a", holder);
  auto request = lock_request("a", lease());
  request.set_request_id(9);
  PendingLock first(*locks_, request);
  ASSERT_TRUE(waits_become(1));
  PendingLock retry(*locks_, request);

  // The retry is attached once a later command has been decided after it.
  ASSERT_TRUE(
      becomes_true([&](const server::View&) { return server_.context().waiters.attached() == 2; }));
  first.cancel();
  EXPECT_EQ(first.wait().error_code(), ::grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(waits_become(1));
  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());

  ASSERT_TRUE(retry.wait().ok());
  EXPECT_TRUE(retry.response().acquired());
}

// 002-B21, 002-B27
TEST_F(LockRpc, a_caller_that_disconnects_leaves_the_queue_and_its_lease_lives_on) {
  const auto holder = lease();
  const auto held = lock("a", holder);
  const auto disconnected = lease();
  {
    PendingLock waiting(*locks_, lock_request("a", disconnected));
    ASSERT_TRUE(waits_become(1));
    waiting.cancel();
  }

  EXPECT_TRUE(waits_become(0));
  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());
  EXPECT_TRUE(try_lock("a", disconnected).acquired());
}

/// An upgrade to exclusive whose grant only its own call can report.
v1::LockRequest upgrade_without_id(std::uint64_t lease) {
  v1::LockRequest request;
  request.set_name("a");
  request.set_lease_id(lease);
  request.set_self_conflict(v1::SELF_CONFLICT_REENTER);
  return request;
}

/// The lease holds one share of one lock, which takes one release.
bool holds_one_share(const server::View& view, std::uint64_t lease) {
  const auto& holds = view.state.locks.owned(core::LeaseId(lease)).holds;
  const auto* hold = holds.size() == 1 ? view.state.locks.find(*holds.begin()) : nullptr;
  return hold != nullptr && hold->count == 1 &&
         core::mode_of(hold->items.front()) == LockMode::shared;
}

// Regression: releasing only the share that the upgrade counted left the lock exclusive, unknown to
// the client.
TEST_F(LockRpc, an_upgrade_granted_after_its_caller_disconnected_becomes_a_share_again) {
  const auto upgrading = lease();
  const auto other = lease();
  ASSERT_TRUE(try_lock("a", upgrading, v1::MODE_SHARED).acquired());
  const auto share = try_lock("a", other, v1::MODE_SHARED);
  PendingLock upgrade(*locks_, upgrade_without_id(upgrading));
  ASSERT_TRUE(waits_become(1));
  store_.pause();
  store_.propose(core::Release{.lease = core::LeaseId(other),
                               .what = core::FencingToken(share.fencing_token())},
                 [](const Result<server::Decided>&) {});
  upgrade.cancel();
  ASSERT_TRUE(eventually([&] { return store_.kept() == 2; }));

  store_.resume();  // The release, which grants the upgrade; then its caller leaves the queue.

  EXPECT_TRUE(
      becomes_true([&](const server::View& view) { return holds_one_share(view, upgrading); }));
  EXPECT_TRUE(try_lock("a", other, v1::MODE_SHARED).acquired());
}

TEST_F(LockRpc, an_upgrade_granted_at_once_to_a_disconnected_caller_becomes_a_share_again) {
  const auto upgrading = lease();
  ASSERT_TRUE(try_lock("a", upgrading, v1::MODE_SHARED).acquired());
  store_.pause();
  PendingLock upgrade(*locks_, upgrade_without_id(upgrading));
  ASSERT_TRUE(eventually([&] { return store_.kept() == 1; }));
  upgrade.cancel();
  ASSERT_EQ(upgrade.wait().error_code(), ::grpc::StatusCode::CANCELLED);
  read_all_sent(upgrading);

  store_.resume();

  EXPECT_TRUE(
      becomes_true([&](const server::View& view) { return holds_one_share(view, upgrading); }));
  EXPECT_TRUE(try_lock("a", lease(), v1::MODE_SHARED).acquired());
}

/// Mode and count of the only hold of the lease.
std::pair<LockMode, std::uint32_t> only_hold(const server::View& view, std::uint64_t lease) {
  const auto& holds = view.state.locks.owned(core::LeaseId(lease)).holds;
  EXPECT_EQ(holds.size(), 1U);
  const auto& hold = *view.state.locks.find(*holds.begin());
  return {core::mode_of(hold.items.front()), hold.count};
}

// Regression: the retry reentered the exclusive hold, which the rollback of the first call then
// downgraded. Its caller and other readers held the lock at the same time.
TEST_F(LockRpc, a_retry_of_an_abandoned_upgrade_is_exclusive_when_it_is_granted) {
  const auto upgrading = lease();
  const auto other = lease();
  ASSERT_TRUE(try_lock("a", upgrading, v1::MODE_SHARED).acquired());
  const auto share = try_lock("a", other, v1::MODE_SHARED);
  PendingLock upgrade(*locks_, upgrade_without_id(upgrading));
  ASSERT_TRUE(waits_become(1));
  store_.pause();
  store_.propose(core::Release{.lease = core::LeaseId(other),
                               .what = core::FencingToken(share.fencing_token())},
                 [](const Result<server::Decided>&) {});
  upgrade.cancel();
  ASSERT_TRUE(eventually([&] { return store_.kept() == 2; }));
  PendingLock retry(*locks_, upgrade_without_id(upgrading));
  read_all_sent(upgrading);

  store_.resume();  // The release, the grant of the upgrade, its rollback, and the retry.

  ASSERT_TRUE(retry.wait().ok());
  EXPECT_TRUE(retry.response().acquired());
  store_.look([&](const server::View& view) {
    EXPECT_EQ(only_hold(view, upgrading), std::pair(LockMode::exclusive, std::uint32_t{2}));
  });
  EXPECT_FALSE(try_lock("a", other, v1::MODE_SHARED).acquired());
}

// A request that waits for a rollback and is abandoned itself is not proposed any more.
TEST_F(LockRpc, an_abandoned_retry_changes_nothing) {
  const auto upgrading = lease();
  ASSERT_TRUE(try_lock("a", upgrading, v1::MODE_SHARED).acquired());
  store_.pause();
  PendingLock upgrade(*locks_, upgrade_without_id(upgrading));
  ASSERT_TRUE(eventually([&] { return store_.kept() == 1; }));
  upgrade.cancel();
  ASSERT_EQ(upgrade.wait().error_code(), ::grpc::StatusCode::CANCELLED);
  read_all_sent(upgrading);
  PendingLock retry(*locks_, upgrade_without_id(upgrading));
  read_all_sent(upgrading);
  retry.cancel();
  ASSERT_EQ(retry.wait().error_code(), ::grpc::StatusCode::CANCELLED);
  read_all_sent(upgrading);

  store_.resume();

  EXPECT_TRUE(
      becomes_true([&](const server::View& view) { return holds_one_share(view, upgrading); }));
  EXPECT_TRUE(lock(upgrade_without_id(upgrading)).acquired());
}

// 002-B15
TEST_F(LockRpc, an_unknown_lease_is_not_found) {
  EXPECT_EQ(lock_status(lock_request("a", 999)).error_code(), ::grpc::StatusCode::NOT_FOUND);
}

TEST_F(LockRpc, several_items_are_acquired_all_or_none) {
  const auto first = lease();
  const auto second = lease();
  ASSERT_TRUE(lock("b", first).acquired());
  v1::LockRequest both;
  both.set_lease_id(second);
  both.set_timeout_ms(0);
  for (const auto* name : {"a", "b"}) {
    both.add_items()->set_name(name);
  }

  EXPECT_FALSE(lock(both).acquired());
  EXPECT_TRUE(try_lock("a", first).acquired());
}

TEST_F(LockRpc, readers_share_and_a_writer_waits_for_them) {
  const auto one = lease();
  const auto two = lease();

  EXPECT_TRUE(try_lock("a", one, v1::MODE_SHARED).acquired());
  EXPECT_TRUE(try_lock("a", two, v1::MODE_SHARED).acquired());
  EXPECT_FALSE(try_lock("a", lease(), v1::MODE_EXCLUSIVE).acquired());
}

// 000-B15, 004-B14
TEST_F(LockRpc, a_downgraded_writer_admits_readers_and_keeps_its_token) {
  const auto holder = lease();
  v1::DowngradeRequest request;
  request.set_lease_id(holder);
  request.set_fencing_token(lock("a", holder).fencing_token());
  v1::DowngradeResponse response;

  const auto status = locks_->Downgrade(context().get(), request, &response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.mode(), v1::MODE_SHARED);
  EXPECT_GT(response.header().revision(), 0U);
  EXPECT_TRUE(try_lock("a", lease(), v1::MODE_SHARED).acquired());
  EXPECT_FALSE(try_lock("a", lease()).acquired());
  EXPECT_TRUE(unlock(holder, request.fencing_token()).ok());
}

TEST_F(LockRpc, an_impossible_downgrade_returns_the_reason) {
  const auto holder = lease();
  v1::DowngradeRequest request;
  request.set_lease_id(holder);
  request.set_fencing_token(try_lock("a", holder, v1::MODE_SHARED).fencing_token());
  v1::DowngradeResponse response;

  request.set_mode(v1::MODE_EXCLUSIVE);
  const auto stronger = locks_->Downgrade(context().get(), request, &response);
  request.set_mode(static_cast<v1::Mode>(99));
  const auto unknown = locks_->Downgrade(context().get(), request, &response);
  request.set_mode(v1::MODE_SHARED);
  request.set_fencing_token(1'000'000);
  const auto not_held = locks_->Downgrade(context().get(), request, &response);

  EXPECT_EQ(stronger.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(stronger.error_message().find("held in S"), std::string::npos);
  EXPECT_EQ(unknown.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(not_held.error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(LockRpc, a_semaphore_admits_as_many_as_its_capacity) {
  v1::LockRequest request;
  auto& item = *request.add_items();
  item.set_name("pool");
  item.mutable_permits()->set_capacity(2);
  request.set_timeout_ms(0);
  std::vector<bool> acquired;
  for (int n = 0; n < 3; ++n) {
    request.set_lease_id(lease());
    acquired.push_back(lock(request).acquired());
  }

  EXPECT_EQ(acquired, (std::vector<bool>{true, true, false}));
}

TEST_F(LockRpc, ranges_of_a_space_exclude_each_other_only_where_they_overlap) {
  const auto range_of = [&](const std::string& from, const std::string& to) {
    v1::LockRequest request;
    request.set_lease_id(lease());
    request.set_timeout_ms(0);
    auto& item = *request.add_items();
    item.set_name("users");
    item.mutable_keys()->mutable_range()->set_start(from);
    item.mutable_keys()->mutable_range()->set_end(to);
    return request;
  };

  EXPECT_TRUE(lock(range_of("a", "m")).acquired());
  EXPECT_TRUE(lock(range_of("m", "z")).acquired());
  EXPECT_FALSE(lock(range_of("l", "n")).acquired());
}

// The request that closes the cycle receives it.
TEST_F(LockRpc, a_deadlock_is_refused_with_its_cycle) {
  const auto one = lease();
  const auto two = lease();
  ASSERT_TRUE(lock("a", one).acquired());
  ASSERT_TRUE(lock("b", two).acquired());
  PendingLock waiting(*locks_, lock_request("b", one));
  ASSERT_TRUE(waits_become(1));

  const auto response = lock("a", two);

  EXPECT_FALSE(response.acquired());
  EXPECT_EQ(response.reason(), v1::REASON_DEADLOCK);
  ASSERT_EQ(response.cycle_size(), 2);
  EXPECT_EQ(response.cycle(0).lease_id(), two);
  EXPECT_EQ(response.cycle(0).name(), "a");
  EXPECT_EQ(response.cycle(1).lease_id(), one);
  EXPECT_EQ(response.cycle(1).name(), "b");
}

// The outcome of the wait is unknown when the server stops; its queue position stays for a retry.
TEST_F(LockRpc, waiting_calls_are_unavailable_when_the_server_stops) {
  ASSERT_TRUE(lock("a", lease()).acquired());
  PendingLock waiting(*locks_, lock_request("a", lease()));
  ASSERT_TRUE(waits_become(1));

  server_.stop();

  EXPECT_EQ(waiting.wait().error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(waits_become(1));
}

TEST_F(LockRpc, a_server_that_does_not_lead_answers_unavailable) {
  const auto holder = lease();
  store_.lead(false);

  EXPECT_EQ(lock_status(lock_request("a", holder)).error_code(), ::grpc::StatusCode::UNAVAILABLE);
}

TEST_F(LockRpc, a_full_disk_is_resource_exhausted) {
  const auto holder = lease();
  store_.set_space(false);

  EXPECT_EQ(lock_status(lock_request("a", holder)).error_code(),
            ::grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace tenure::test
