#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/rpc/fixture.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class LeaseRpc : public RpcTest {
 protected:
  v1::LeaseTimeToLiveResponse time_to_live(std::uint64_t id) {
    v1::LeaseTimeToLiveRequest request;
    request.set_id(id);
    request.set_keys(true);
    v1::LeaseTimeToLiveResponse response;
    const auto status = locks_->LeaseTimeToLive(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  std::vector<v1::LeaseKeepAliveResponse> keep_alive(const v1::LeaseKeepAliveRequest& request) {
    const auto call = context();
    const auto stream = locks_->LeaseKeepAlive(call.get());
    EXPECT_TRUE(stream->Write(request));
    stream->WritesDone();
    std::vector<v1::LeaseKeepAliveResponse> responses;
    v1::LeaseKeepAliveResponse response;
    while (stream->Read(&response)) {
      responses.push_back(response);
    }
    EXPECT_TRUE(stream->Finish().ok());
    return responses;
  }
};

// 002.024, 002.031, 002.032, 002.098: TTLs are in ms, as seconds are too coarse (002-B33).
TEST_F(LeaseRpc, a_lease_is_granted_with_its_ttl_or_the_default_of_30_seconds) {
  v1::LeaseGrantRequest request;
  v1::LeaseGrantResponse response;

  ASSERT_TRUE(locks_->LeaseGrant(context().get(), request, &response).ok());
  EXPECT_NE(response.id(), 0U);
  EXPECT_EQ(response.ttl_ms(), 30'000U);
  EXPECT_NE(response.header().cluster_id(), 0U);

  request.set_ttl_ms(1'500);
  request.set_id(77);
  ASSERT_TRUE(locks_->LeaseGrant(context().get(), request, &response).ok());
  EXPECT_EQ(response.id(), 77U);
  EXPECT_EQ(response.ttl_ms(), 1'500U);
}

// 002-B34: an id in use is refused, except in a retry of the same request.
TEST_F(LeaseRpc, a_used_lease_id_is_refused_except_for_a_retry) {
  v1::LeaseGrantRequest request;
  request.set_id(5);
  request.set_request_id(1);
  v1::LeaseGrantResponse response;
  ASSERT_TRUE(locks_->LeaseGrant(context().get(), request, &response).ok());

  EXPECT_TRUE(locks_->LeaseGrant(context().get(), request, &response).ok());
  request.set_request_id(2);
  EXPECT_FALSE(locks_->LeaseGrant(context().get(), request, &response).ok());
}

TEST_F(LeaseRpc, a_ttl_out_of_bounds_is_invalid) {
  v1::LeaseGrantRequest request;
  v1::LeaseGrantResponse response;
  for (const std::uint64_t ttl : {std::uint64_t{1}, ~std::uint64_t{0}}) {
    request.set_ttl_ms(ttl);

    EXPECT_EQ(locks_->LeaseGrant(context().get(), request, &response).error_code(),
              ::grpc::StatusCode::INVALID_ARGUMENT);
  }
}

// 002.026, 002.033, 002.064, 002.069: one reply per lease, in request order; TTL 0 for lost ones.
TEST_F(LeaseRpc, keep_alive_renews_each_lease_and_names_the_lost_ones) {
  const auto one = lease(10'000);
  const auto two = lease(20'000);
  store_.advance(8s);
  v1::LeaseKeepAliveRequest request;
  request.set_id(one);
  request.add_more_ids(999);
  request.add_more_ids(two);

  const auto responses = keep_alive(request);

  ASSERT_EQ(responses.size(), 3U);
  EXPECT_EQ(responses[0].id(), one);
  EXPECT_EQ(responses[0].ttl_ms(), 10'000U);
  EXPECT_EQ(responses[1].id(), 999U);
  EXPECT_EQ(responses[1].ttl_ms(), 0U);
  EXPECT_EQ(responses[2].id(), two);
  EXPECT_EQ(responses[2].ttl_ms(), 20'000U);
  store_.advance(9s);
  EXPECT_GT(time_to_live(one).lease().left_ms(), 0U);
}

// 003.006: every gRPC client can change the TTL; a delayed duplicate does not revert it.
TEST_F(LeaseRpc, a_keep_alive_with_a_ttl_changes_the_ttl_permanently) {
  const auto kept = lease(10'000);
  v1::LeaseKeepAliveRequest request;
  request.set_id(kept);
  request.set_ttl_ms(1'000);
  request.set_request_id(1);
  EXPECT_EQ(keep_alive(request).at(0).ttl_ms(), 1'000U);
  auto longer = request;
  longer.set_ttl_ms(60'000);
  longer.set_request_id(2);
  EXPECT_EQ(keep_alive(longer).at(0).ttl_ms(), 60'000U);

  EXPECT_EQ(keep_alive(request).at(0).ttl_ms(), 1'000U) << "the reply to the first attempt";

  v1::LeaseKeepAliveRequest plain;
  plain.set_id(kept);
  EXPECT_EQ(keep_alive(plain).at(0).ttl_ms(), 60'000U);
  EXPECT_EQ(time_to_live(kept).lease().ttl_ms(), 60'000U);
  longer.set_id(999);
  EXPECT_EQ(keep_alive(longer).at(0).ttl_ms(), 0U);
}

TEST_F(LeaseRpc, a_ttl_for_several_leases_or_out_of_bounds_ends_the_stream) {
  v1::LeaseKeepAliveRequest several;
  several.set_id(lease());
  several.set_ttl_ms(1'000);
  several.add_more_ids(lease());
  v1::LeaseKeepAliveRequest tiny;
  tiny.set_id(lease());
  tiny.set_ttl_ms(0);
  for (const auto& request : {several, tiny}) {
    const auto call = context();
    const auto stream = locks_->LeaseKeepAlive(call.get());
    ASSERT_TRUE(stream->Write(request));

    v1::LeaseKeepAliveResponse response;
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_EQ(stream->Finish().error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(LeaseRpc, a_keep_alive_stream_answers_many_messages_in_order) {
  const auto kept = lease();
  const auto call = context();
  const auto stream = locks_->LeaseKeepAlive(call.get());
  constexpr int rounds = 100;
  v1::LeaseKeepAliveRequest request;
  for (int n = 0; n < rounds; ++n) {
    request.set_id(n % 2 == 0 ? kept : 999);
    ASSERT_TRUE(stream->Write(request));
  }
  stream->WritesDone();

  v1::LeaseKeepAliveResponse response;
  for (int n = 0; n < rounds; ++n) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.ttl_ms(), n % 2 == 0 ? 60'000U : 0U);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

// 002.025, 002.071, 002.073: the locks of the lease are granted to the next waiters.
TEST_F(LeaseRpc, revoking_a_lease_frees_its_locks_and_ends_its_waits) {
  const auto holder = lease();
  ASSERT_TRUE(lock("a", holder).acquired());
  PendingLock next(*locks_, lock_request("a", lease()));
  ASSERT_TRUE(waits_become(1));

  ASSERT_TRUE(revoke(holder).ok());

  ASSERT_TRUE(next.wait().ok());
  EXPECT_TRUE(next.response().acquired());
  EXPECT_EQ(revoke(holder).error_code(), ::grpc::StatusCode::NOT_FOUND);
}

// 002.063, 002.070, 002-B14: a wait of the expired lease is not granted the lock it held.
TEST_F(LeaseRpc, expiry_ends_waits_first_and_then_frees_the_locks) {
  const auto doomed = lease(5'000);
  const auto other = lease(60'000);
  ASSERT_TRUE(lock("a", doomed).acquired());
  ASSERT_TRUE(lock("b", other).acquired());
  PendingLock dies(*locks_, lock_request("b", doomed));
  ASSERT_TRUE(waits_become(1));

  store_.advance(5s);

  EXPECT_EQ(dies.wait().error_code(), ::grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(try_lock("a", other).acquired());
}

// 002.009, 002.010, 002.011, 002.012, 002.013, 002.019
TEST_F(LeaseRpc, time_to_live_returns_the_remaining_time_and_the_attachments) {
  v1::LeaseGrantRequest grant;
  grant.set_ttl_ms(10'000);
  grant.set_client("service-a");
  v1::LeaseGrantResponse granted;
  ASSERT_TRUE(locks_->LeaseGrant(context().get(), grant, &granted).ok());
  const auto held = lock("a", granted.id());
  store_.advance(4s);

  const auto response = time_to_live(granted.id());

  EXPECT_EQ(response.lease().left_ms(), 6'000U);
  EXPECT_EQ(response.lease().ttl_ms(), 10'000U);
  EXPECT_EQ(response.lease().client(), "service-a");
  EXPECT_FALSE(response.lease().address().empty());
  EXPECT_EQ(response.lease().last_seen_ms(), 4'000U);
  ASSERT_EQ(response.held_size(), 1);
  EXPECT_EQ(response.held(0).item().name(), "a");
  EXPECT_EQ(response.held(0).fencing_token(), held.fencing_token());
}

// Each hold has 64 locks. Regression: one lease with 100,000 locks blocked the thread of Raft and
// made a reply that gRPC clients reject.
TEST_F(LeaseRpc, the_listed_attachments_of_a_lease_are_limited) {
  constexpr int holds = 200;
  constexpr int locks_of_hold = 64;
  const auto owner = lease();
  for (int n = 0; n < holds; ++n) {
    core::Acquire acquire{.lease = core::LeaseId(owner),
                          .request = core::RequestId(static_cast<std::uint64_t>(n) + 1)};
    for (int i = 0; i < locks_of_hold; ++i) {
      acquire.items.push_back({.name = std::to_string((n * locks_of_hold) + i)});
    }
    ASSERT_TRUE(store_.ask(std::move(acquire)));
  }

  const auto response = time_to_live(owner);

  EXPECT_EQ(response.lease().hold_count(), static_cast<std::uint64_t>(holds));
  EXPECT_EQ(response.held_size(), 10'000);
  EXPECT_LT(response.ByteSizeLong(), std::size_t{2} << 20);
}

TEST_F(LeaseRpc, leases_are_listed_in_pages) {
  std::vector<std::uint64_t> ids;
  for (int n = 0; n < 5; ++n) {
    ids.push_back(lease());
  }
  std::vector<std::uint64_t> listed;
  v1::LeasesRequest request;
  request.set_limit(2);
  v1::LeasesResponse response;
  do {
    ASSERT_TRUE(locks_->Leases(context().get(), request, &response).ok());
    for (const auto& one : response.leases()) {
      listed.push_back(one.id());
    }
    request.set_after(listed.back());
  } while (response.more());

  EXPECT_EQ(listed, ids);
}

}  // namespace
}  // namespace tenure::test
