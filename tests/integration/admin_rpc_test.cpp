#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/rpc/fixture.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class AdminRpc : public RpcTest {
 protected:
  v1::ExplainResponse explain(const std::string& name) {
    v1::ExplainRequest request;
    request.set_name(name);
    v1::ExplainResponse response;
    EXPECT_TRUE(admin_->Explain(context().get(), request, &response).ok());
    return response;
  }
};

// 002.001, 002.002, 002.003, 002.004, 002.005, 002.006, 002.007, 002.008, 002.074
TEST_F(AdminRpc, list_returns_every_field_of_the_locks_by_name_in_pages) {
  const auto owner = lease();
  for (const auto* name : {"b", "a", "c", "other"}) {
    auto request = lock_request(name, owner);
    request.set_owner("service-a");
    request.set_metadata("why");
    ASSERT_TRUE(lock(request).acquired());
  }
  std::vector<std::string> names;
  v1::ListRequest request;
  request.set_limit(2);
  v1::ListResponse response;
  do {
    ASSERT_TRUE(admin_->List(context().get(), request, &response).ok());
    for (const auto& listed : response.locks()) {
      names.push_back(listed.name());
      ASSERT_EQ(listed.holders_size(), 1);
      EXPECT_EQ(listed.holders(0).owner(), "service-a");
      EXPECT_EQ(listed.holders(0).metadata(), "why");
      EXPECT_EQ(listed.holders(0).lease_id(), owner);
      EXPECT_EQ(listed.holders(0).fencing_token(), listed.create_revision());
      EXPECT_EQ(listed.mod_revision(), listed.create_revision());
      EXPECT_EQ(listed.version(), 1U);
    }
    request.set_after(names.back());
  } while (response.more());

  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "other"}));
}

TEST_F(AdminRpc, list_with_a_prefix_returns_only_its_locks) {
  const auto owner = lease();
  for (const auto* name : {"db", "db/1", "db/2", "dc"}) {
    ASSERT_TRUE(lock(name, owner).acquired());
  }
  v1::ListRequest request;
  request.set_prefix("db/");
  v1::ListResponse response;

  ASSERT_TRUE(admin_->List(context().get(), request, &response).ok());

  ASSERT_EQ(response.locks_size(), 2);
  EXPECT_EQ(response.locks(0).name(), "db/1");
  EXPECT_FALSE(response.more());
}

// 002.014, 002.015, 002.016, 002.017, 002.018, 002.100
TEST_F(AdminRpc, explain_returns_holders_waiters_and_blockers) {
  const auto holder = lease();
  auto hold = lock_request("a", holder);
  hold.set_owner("migrator");
  ASSERT_TRUE(lock(hold).acquired());
  const auto second = lease();
  auto wait = lock_request("a", second);
  wait.set_owner("reporter");
  PendingLock first(*locks_, wait);
  ASSERT_TRUE(waits_become(1));
  PendingLock last(*locks_, lock_request("a", lease()));
  ASSERT_TRUE(waits_become(2));
  store_.advance(3s);

  const auto explained = explain("a");

  ASSERT_EQ(explained.queue_size(), 2);
  EXPECT_EQ(explained.queue(0).owner(), "reporter");
  EXPECT_EQ(explained.queue(0).lease_id(), second);
  EXPECT_EQ(explained.queue(0).position(), 1U);
  EXPECT_EQ(explained.queue(0).predecessor(), 0U);
  EXPECT_EQ(explained.queue(0).waited_ms(), 3'000U);
  ASSERT_EQ(explained.queue(0).blockers_size(), 1);
  EXPECT_EQ(explained.queue(0).blockers(0).owner(), "migrator");
  EXPECT_EQ(explained.queue(1).predecessor(), explained.queue(0).ticket());
  EXPECT_EQ(explained.queue(1).blockers_size(), 2);
  EXPECT_EQ(explained.summary(), "a is held by migrator (lease " + std::to_string(holder) +
                                     ") for 3000 ms; 2 wait, next is reporter (lease " +
                                     std::to_string(second) + ") after 3000 ms.");
}

TEST_F(AdminRpc, explain_returns_the_waits_of_the_holder) {
  const auto one = lease();
  const auto two = lease();
  ASSERT_TRUE(lock("a", one).acquired());
  ASSERT_TRUE(lock("b", two).acquired());
  PendingLock waiting(*locks_, lock_request("b", one));
  ASSERT_TRUE(waits_become(1));

  const auto explained = explain("a");

  ASSERT_EQ(explained.waits_of_holders_size(), 1);
  EXPECT_EQ(explained.waits_of_holders(0).name(), "b");
}

TEST_F(AdminRpc, explain_reports_a_free_lock_as_free) {
  EXPECT_EQ(explain("nothing").summary(), "nothing is free.");
}

// 002.061: the record of a lock without holders is removed.
TEST_F(AdminRpc, force_release_frees_the_lock_and_invalidates_the_old_token) {
  const auto holder = lease();
  const auto held = lock("a", holder);
  v1::ForceReleaseRequest request;
  request.set_name("a");
  request.set_fencing_token(held.fencing_token() + 100);
  v1::ForceReleaseResponse response;
  EXPECT_EQ(admin_->ForceRelease(context().get(), request, &response).error_code(),
            ::grpc::StatusCode::FAILED_PRECONDITION);
  request.set_fencing_token(held.fencing_token());

  ASSERT_TRUE(admin_->ForceRelease(context().get(), request, &response).ok());

  EXPECT_EQ(unlock(holder, held.fencing_token()).error_code(),
            ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_GT(lock("a", lease()).fencing_token(), held.fencing_token());
}

TEST_F(AdminRpc, status_returns_the_state_of_the_member) {
  const auto owner = lease();
  ASSERT_TRUE(lock("a", owner).acquired());
  v1::StatusResponse response;

  ASSERT_TRUE(admin_->Status(context().get(), {}, &response).ok());

  EXPECT_TRUE(response.is_leader());
  EXPECT_TRUE(response.has_space());
  EXPECT_EQ(response.leases(), 1U);
  EXPECT_EQ(response.locks(), 1U);
  EXPECT_EQ(response.holds(), 1U);
  EXPECT_GE(response.applied_index(), 2U);
}

TEST_F(AdminRpc, a_snapshot_is_taken_on_demand) {
  v1::SnapshotResponse response;

  EXPECT_TRUE(admin_->Snapshot(context().get(), {}, &response).ok());
  EXPECT_NE(response.header().cluster_id(), 0U);
}

}  // namespace
}  // namespace tenure::test
