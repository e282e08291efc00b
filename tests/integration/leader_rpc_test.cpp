#include <map>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>

#include "grpc/health/v1/health.pb.h"
#include "support/rpc/cluster.hpp"
#include "support/rpc/fixture.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// The leader in the trailing metadata: "id address"; empty if the metadata names none.
std::string leader_in(const ::grpc::ClientContext& context) {
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
    found[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
  }
  return found.contains("tenure-leader-id")
             ? found["tenure-leader-id"] + " " + found["tenure-leader"]
             : std::string();
}

/// gRPC without our client library, as other languages use it: the leader is member 1 of three.
class LeaderRpc : public ::testing::Test {
 protected:
  LeaderRpc() {
    for (std::size_t index = 0; index < 3; ++index) {
      channels_.push_back(
          ::grpc::CreateChannel(cluster.address(index), ::grpc::InsecureChannelCredentials()));
      locks_.push_back(v1::LockService::NewStub(channels_.back()));
      admin_.push_back(v1::Admin::NewStub(channels_.back()));
    }
  }

  [[nodiscard]] std::uint64_t lease(std::size_t member) {
    v1::LeaseGrantResponse response;
    const auto status = locks_[member]->LeaseGrant(RpcTest::context().get(), {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.id();
  }
  [[nodiscard]] static v1::LockRequest request(const std::string& name, std::uint64_t lease,
                                               std::uint64_t id) {
    v1::LockRequest made;
    made.set_name(name);
    made.set_lease_id(lease);
    made.set_request_id(id);
    return made;
  }
  [[nodiscard]] bool waits_become(std::size_t member, std::size_t count) {
    return eventually([&] {
      std::size_t waits = 0;
      cluster.store(member).look(
          [&](const server::View& view) { waits = view.state.locks.waits().size(); });
      return waits == count;
    });
  }
  [[nodiscard]] std::string named_leader(std::size_t index) const {
    return std::to_string(RpcCluster::id(index)) + " " + cluster.address(index);
  }

  RpcCluster cluster{Time::manual};
  std::vector<std::shared_ptr<::grpc::Channel>> channels_;
  std::vector<std::unique_ptr<v1::LockService::Stub>> locks_;
  std::vector<std::unique_ptr<v1::Admin::Stub>> admin_;
};

TEST_F(LeaderRpc, a_call_to_a_follower_is_unavailable_and_names_the_leader) {
  const auto context = RpcTest::context();
  v1::LeaseGrantResponse response;

  const auto status = locks_[1]->LeaseGrant(context.get(), {}, &response);

  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(leader_in(*context), named_leader(0));
}

TEST_F(LeaderRpc, every_call_that_needs_the_leader_names_it_at_a_follower) {
  const auto expect_led_away = [&](auto call) {
    const auto context = RpcTest::context();
    const ::grpc::Status status = call(*context);
    EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE) << status.error_message();
    EXPECT_EQ(leader_in(*context), named_leader(0));
  };
  auto& locks = *locks_[2];
  auto& admin = *admin_[2];

  expect_led_away([&](auto& context) {
    v1::LockResponse out;
    return locks.Lock(&context, request("a", 7, 1), &out);
  });
  expect_led_away([&](auto& context) {
    v1::UnlockRequest in;
    in.set_lease_id(7);
    in.set_fencing_token(7);
    v1::UnlockResponse out;
    return locks.Unlock(&context, in, &out);
  });
  expect_led_away([&](auto& context) {
    v1::LeasesResponse out;
    return locks.Leases(&context, {}, &out);
  });
  expect_led_away([&](auto& context) {
    v1::ListResponse out;
    return admin.List(&context, {}, &out);
  });
  expect_led_away([&](auto& context) {
    v1::MemberListResponse out;
    return admin.MemberList(&context, {}, &out);
  });
  expect_led_away([&](auto& context) {
    v1::MemberRemoveResponse out;
    return admin.MemberRemove(&context, {}, &out);
  });
  expect_led_away([&](auto& context) {
    v1::TransferLeadershipResponse out;
    return admin.TransferLeadership(&context, {}, &out);
  });
  expect_led_away([&](auto& context) {
    const auto stream = locks.LeaseKeepAlive(&context);
    stream->Write(v1::LeaseKeepAliveRequest());
    return stream->Finish();
  });
  expect_led_away([&](auto& context) {
    const auto stream = locks.Watch(&context);
    v1::WatchRequest in;
    in.mutable_create()->set_key("a");
    stream->Write(in);
    return stream->Finish();
  });
  expect_led_away([&](auto& context) {
    const auto stream = locks.Session(&context);
    v1::SessionRequest in;
    in.mutable_hello();
    stream->Write(in);
    return stream->Finish();
  });
}

TEST_F(LeaderRpc, a_member_that_knows_no_leader_names_none) {
  cluster.depose();
  const auto context = RpcTest::context();
  v1::LeaseGrantResponse response;

  const auto status = locks_[0]->LeaseGrant(context.get(), {}, &response);

  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(leader_in(*context), "");
}

// 002.103: a waiting call fails with the leader (002-B32); its retry keeps the queue position.
TEST_F(LeaderRpc, a_waiting_call_ends_when_leadership_is_lost_and_keeps_its_queue_position) {
  const auto holder = lease(0);
  const auto waiter = lease(0);
  v1::LockResponse held;
  ASSERT_TRUE(locks_[0]->Lock(RpcTest::context().get(), request("a", holder, 1), &held).ok());
  PendingLock waiting(*locks_[0], request("a", waiter, 2));
  ASSERT_TRUE(waits_become(0, 1));

  cluster.move(1);

  EXPECT_EQ(waiting.wait().error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(waits_become(1, 1));
  PendingLock again(*locks_[1], request("a", waiter, 2));
  v1::UnlockRequest unlock;
  unlock.set_lease_id(holder);
  unlock.set_fencing_token(held.fencing_token());
  v1::UnlockResponse unlocked;
  ASSERT_TRUE(locks_[1]->Unlock(RpcTest::context().get(), unlock, &unlocked).ok());
  ASSERT_TRUE(again.wait().ok());
  EXPECT_TRUE(again.response().acquired());
  EXPECT_GT(again.response().fencing_token(), held.fencing_token());
}

// The client may retry at the new leader. If it never does, the wait ends with its lease.
TEST_F(LeaderRpc, a_wait_of_a_redirected_client_stays_until_its_lease_ends) {
  const auto holder = lease(0);
  v1::LockResponse held;
  ASSERT_TRUE(locks_[0]->Lock(RpcTest::context().get(), request("a", holder, 1), &held).ok());
  {
    ::grpc::ClientContext context;
    const auto session = locks_[0]->Session(&context);
    v1::SessionRequest asked;
    asked.mutable_hello()->set_revoke_leases(true);
    auto& grant = *asked.add_operations();
    grant.mutable_grant_lease()->set_id(77);
    grant.mutable_grant_lease()->set_ttl_ms(60'000);
    auto& acquire = *asked.add_operations()->mutable_acquire();
    acquire.set_lease_id(77);
    acquire.set_request_id(1);
    acquire.add_items()->set_name("a");
    ASSERT_TRUE(session->Write(asked));
    ASSERT_TRUE(waits_become(0, 1));

    cluster.move(1);

    v1::SessionResponse answer;
    while (session->Read(&answer)) {
    }
    EXPECT_EQ(session->Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(leader_in(context), named_leader(1));
  }
  EXPECT_TRUE(waits_become(1, 1));
  cluster.store(1).advance(61s);
  EXPECT_TRUE(waits_become(1, 0));
}

TEST_F(LeaderRpc, an_undecided_call_is_unavailable_and_names_the_next_leader) {
  const auto owner = lease(0);
  cluster.store(0).pause();
  PendingLock asked(*locks_[0], request("a", owner, 1));

  cluster.move(2);

  EXPECT_EQ(asked.wait().error_code(), ::grpc::StatusCode::UNAVAILABLE);
  v1::LockResponse granted;
  EXPECT_TRUE(locks_[2]->Lock(RpcTest::context().get(), request("a", owner, 1), &granted).ok());
  EXPECT_TRUE(granted.acquired());
}

// 002.027: the client resumes the watch at the next leader.
TEST_F(LeaderRpc, a_watch_ends_at_once_when_leadership_is_lost) {
  const auto context = RpcTest::context();
  const auto watch = locks_[0]->Watch(context.get());
  v1::WatchRequest asked;
  asked.mutable_create()->set_key("a");
  ASSERT_TRUE(watch->Write(asked));
  v1::WatchResponse answer;
  ASSERT_TRUE(watch->Read(&answer));

  cluster.move(1);

  EXPECT_FALSE(watch->Read(&answer));
  EXPECT_EQ(watch->Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(leader_in(*context), named_leader(1));
  EXPECT_EQ(cluster.rpc(0).context().watches.watches(), 0U);
}

TEST_F(LeaderRpc, every_member_answers_stale_reads) {
  v1::LockResponse held;
  ASSERT_TRUE(locks_[0]->Lock(RpcTest::context().get(), request("a", lease(0), 1), &held).ok());
  for (const std::size_t member : {0U, 1U, 2U}) {
    ASSERT_TRUE(eventually([&] {
      v1::ListRequest list;
      list.set_stale(true);
      v1::ListResponse found;
      return admin_[member]->List(RpcTest::context().get(), list, &found).ok() &&
             found.locks_size() == 1 && found.header().member_id() == RpcCluster::id(member);
    }));
    v1::ExplainRequest explain;
    explain.set_name("a");
    explain.set_stale(true);
    v1::ExplainResponse explained;
    EXPECT_TRUE(admin_[member]->Explain(RpcTest::context().get(), explain, &explained).ok());
    v1::LeasesRequest leases;
    leases.set_stale(true);
    v1::LeasesResponse found;
    EXPECT_TRUE(locks_[member]->Leases(RpcTest::context().get(), leases, &found).ok());
    EXPECT_EQ(found.leases_size(), 1);
    v1::LeaseTimeToLiveRequest left;
    left.set_id(found.leases(0).id());
    left.set_stale(true);
    v1::LeaseTimeToLiveResponse live;
    EXPECT_TRUE(locks_[member]->LeaseTimeToLive(RpcTest::context().get(), left, &live).ok());
  }
}

// 002.030
TEST_F(LeaderRpc, status_and_member_list_return_the_members_and_the_leader) {
  cluster.move(1);
  v1::StatusResponse status;
  ASSERT_TRUE(admin_[0]->Status(RpcTest::context().get(), {}, &status).ok());
  EXPECT_FALSE(status.is_leader());
  EXPECT_EQ(status.leader_id(), 2U);
  EXPECT_EQ(status.leader_address(), cluster.address(1));
  EXPECT_GT(status.term(), 0U);
  EXPECT_EQ(status.members_size(), 3);

  v1::MemberListResponse list;
  ASSERT_TRUE(admin_[1]->MemberList(RpcTest::context().get(), {}, &list).ok());

  ASSERT_EQ(list.members_size(), 3);
  for (int index = 0; index < 3; ++index) {
    const auto& member = list.members(index);
    EXPECT_EQ(member.id(), static_cast<std::uint64_t>(index) + 1);
    EXPECT_EQ(member.client_address(), cluster.address(static_cast<std::size_t>(index)));
    EXPECT_FALSE(member.peer_address().empty());
    EXPECT_TRUE(member.is_voter());
    EXPECT_EQ(member.is_leader(), index == 1);
  }
  EXPECT_EQ(list.header().member_id(), 2U);
}

TEST_F(LeaderRpc, members_are_added_and_removed_down_to_three) {
  v1::MemberAddRequest add;
  add.set_id(4);
  add.set_peer_address("127.0.0.1:9004");
  add.set_client_address("127.0.0.1:9104");
  v1::MemberAddResponse added;
  v1::MemberRemoveRequest remove;
  remove.set_id(2);
  v1::MemberRemoveResponse removed;
  auto& admin = *admin_[0];

  EXPECT_TRUE(admin.MemberAdd(RpcTest::context().get(), add, &added).ok());
  EXPECT_EQ(added.header().member_id(), 1U);
  EXPECT_EQ(admin.MemberAdd(RpcTest::context().get(), add, &added).error_code(),
            ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(admin.MemberRemove(RpcTest::context().get(), remove, &removed).ok());
  EXPECT_EQ(admin.MemberRemove(RpcTest::context().get(), remove, &removed).error_code(),
            ::grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(LeaderRpc, adding_a_member_with_an_invalid_id_or_address_names_the_field) {
  const auto refused = [&](const v1::MemberAddRequest& add) {
    v1::MemberAddResponse added;
    const auto status = admin_[0]->MemberAdd(RpcTest::context().get(), add, &added);
    EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::MemberAddRequest add;
  EXPECT_TRUE(refused(add).starts_with("member id: "));
  add.set_id(4);
  EXPECT_TRUE(refused(add).starts_with("peer_address: "));
  add.set_peer_address("10.0.0.1:7422");
  add.set_client_address("nowhere");
  EXPECT_TRUE(refused(add).starts_with("client_address: "));
  for (const auto* address : {"0.0.0.0:7420", "[::]:7420", "10.0.0.1:0"}) {
    add.set_client_address(address);
    EXPECT_EQ(refused(add),
              "client_address: '" + std::string(address) +
                  "' cannot be advertised: expected a host other than a wildcard, and a port");
  }
}

TEST_F(LeaderRpc, leadership_is_transferred) {
  v1::TransferLeadershipRequest wanted;
  wanted.set_to(3);
  v1::TransferLeadershipResponse done;

  ASSERT_TRUE(admin_[0]->TransferLeadership(RpcTest::context().get(), wanted, &done).ok());

  const auto context = RpcTest::context();
  v1::LeaseGrantResponse response;
  EXPECT_EQ(locks_[0]->LeaseGrant(context.get(), {}, &response).error_code(),
            ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(leader_in(*context), named_leader(2));
}

TEST_F(LeaderRpc, health_reports_the_leader_and_whether_a_leader_is_known) {
  using ::grpc::health::v1::HealthCheckResponse;
  const auto check = [&](std::size_t member, const std::string& service) {
    ::grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const auto context = RpcTest::context();
    const ::grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check",
                                             ::grpc::internal::RpcMethod::NORMAL_RPC);
    const auto status =
        ::grpc::internal::BlockingUnaryCallImpl<::grpc::health::v1::HealthCheckRequest,
                                                HealthCheckResponse>(
            channels_[member].get(), method, context.get(), request, &response)
            .status();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return std::pair(response.status(), leader_in(*context));
  };
  const auto serving = HealthCheckResponse::SERVING;
  const auto not_serving = HealthCheckResponse::NOT_SERVING;

  EXPECT_EQ(check(0, "tenure.v1.LockService"), std::pair(serving, std::string()));
  EXPECT_EQ(check(1, "tenure.v1.LockService"), std::pair(not_serving, named_leader(0)));
  EXPECT_EQ(check(1, "").first, serving);
  EXPECT_EQ(check(1, "tenure.v1.Admin").first, serving);
  cluster.depose();
  for (const auto* service : {"", "tenure.v1.LockService", "tenure.v1.Admin"}) {
    EXPECT_EQ(check(0, service), std::pair(not_serving, std::string()));
  }
}

}  // namespace
}  // namespace tenure::test
