#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/rpc/auth.hpp"

namespace tenure::test {
namespace {

using google::protobuf::Message;
using server::auth::digest_of;
using server::auth::Level;
using server::auth::Policy;

TEST_F(AuthRpc, denials_name_the_missing_credentials_or_the_deciding_rule) {
  RpcProbe anonymous(address_, "");
  RpcProbe locker(address_, "l");

  const auto reply = anonymous.call(std::string(admin) + "Status", v1::StatusRequest());
  EXPECT_EQ(reply.code(), grpc::StatusCode::unauthenticated);
  EXPECT_NE(reply.message().find("authorization: Bearer"), std::string::npos);
  const auto denied = take(locker, "b/x", 1);
  EXPECT_EQ(denied.code(), grpc::StatusCode::permission_denied);
  EXPECT_NE(denied.message().find("locker may not lock \"b/x\""), std::string::npos)
      << denied.message();
}

// All or none: the lock permission for one of several names is not enough.
TEST_F(AuthRpc, a_request_for_several_names_requires_the_right_on_each) {
  RpcProbe locker(address_, "l");
  v1::LockRequest request;
  request.set_lease_id(grant(locker));
  request.add_items()->set_name("a/x");
  request.add_items()->set_name("b/x");

  const auto reply = locker.call(std::string(locks) + "Lock", request);

  EXPECT_EQ(reply.code(), grpc::StatusCode::permission_denied);
  store_.look([](const server::View& view) { EXPECT_TRUE(view.state.locks.locks().empty()); });
}

// A principal with the read permission sees fencing tokens and lease ids. They must not suffice to
// unlock.
TEST_F(AuthRpc, a_lease_of_another_user_is_reported_as_unknown) {
  RpcProbe locker(address_, "l");
  RpcProbe other(address_, "o");
  const auto lease = grant(locker);
  const auto token = take(locker, "a/x", lease).first<v1::LockResponse>().fencing_token();
  const auto same = [&](const std::string& method, const Message& of_other,
                        const Message& unauthenticated) {
    const auto foreign = other.call(std::string(locks) + method, of_other);
    const auto unknown = other.call(std::string(locks) + method, unauthenticated);
    EXPECT_EQ(foreign.code(), unknown.code()) << method;
    EXPECT_EQ(foreign.message().size(), unknown.message().size()) << method << foreign.message();
    EXPECT_EQ(foreign.messages.size(), unknown.messages.size()) << method;
  };
  // As many digits as the other id, so that the messages have the same length.
  const auto foreign = lease ^ 1U;

  v1::UnlockRequest unlock;
  unlock.set_lease_id(lease);
  unlock.set_fencing_token(token);
  auto unlock_foreign = unlock;
  unlock_foreign.set_lease_id(foreign);
  same("Unlock", unlock, unlock_foreign);
  v1::DowngradeRequest downgrade;
  downgrade.set_lease_id(lease);
  downgrade.set_fencing_token(token);
  auto downgrade_foreign = downgrade;
  downgrade_foreign.set_lease_id(foreign);
  same("Downgrade", downgrade, downgrade_foreign);
  v1::LeaseRevokeRequest revoke;
  revoke.set_id(lease);
  v1::LeaseRevokeRequest revoke_foreign;
  revoke_foreign.set_id(foreign);
  same("LeaseRevoke", revoke, revoke_foreign);
  v1::LeaseTimeToLiveRequest look;
  look.set_id(lease);
  v1::LeaseTimeToLiveRequest look_foreign;
  look_foreign.set_id(foreign);
  same("LeaseTimeToLive", look, look_foreign);
  v1::LeaseKeepAliveRequest keep;
  keep.set_id(lease);
  v1::LeaseKeepAliveRequest keep_foreign;
  keep_foreign.set_id(foreign);
  same("LeaseKeepAlive", keep, keep_foreign);
  EXPECT_EQ(other.call(std::string(locks) + "LeaseKeepAlive", keep)
                .first<v1::LeaseKeepAliveResponse>()
                .ttl_ms(),
            0U);
  same("Lock", lock_request("b/x", lease), lock_request("b/x", foreign));

  store_.look([&](const server::View& view) {
    EXPECT_EQ(view.state.locks.holds().size(), 1U);
    EXPECT_NE(view.state.leases.find(core::LeaseId(lease)), nullptr);
  });
}

TEST_F(AuthRpc, a_session_reports_leases_of_other_users_as_unknown) {
  RpcProbe locker(address_, "l");
  RpcProbe other(address_, "o");
  const auto lease = grant(locker);
  const auto token = take(locker, "a/x", lease).first<v1::LockResponse>().fencing_token();
  std::vector<v1::Operation> tried(6);
  tried[0].mutable_release()->set_lease_id(lease);
  tried[0].mutable_release()->set_fencing_token(token);
  tried[1].mutable_abandon()->set_lease_id(lease);
  tried[2].mutable_revoke_lease()->set_id(lease);
  tried[3].mutable_downgrade()->set_lease_id(lease);
  tried[3].mutable_downgrade()->set_fencing_token(token);
  tried[4].mutable_acquire()->set_lease_id(lease);
  tried[4].mutable_acquire()->set_request_id(9);
  tried[4].mutable_acquire()->add_items()->set_name("b/x");
  tried[5].mutable_renew_leases()->add_ids(lease);

  for (const auto& operation : tried) {
    const auto outcome = operate(other, operation);
    if (operation.has_renew_leases()) {
      EXPECT_EQ(outcome.renewed().ttl_ms(0), 0U);
    } else {
      EXPECT_EQ(outcome.refused().code(), v1::CODE_LEASE_LOST) << operation.ShortDebugString();
    }
  }

  store_.look([&](const server::View& view) {
    EXPECT_EQ(view.state.locks.holds().size(), 1U);
    EXPECT_NE(view.state.leases.find(core::LeaseId(lease)), nullptr);
  });
}

// The owner is free text of the client. The user of a lease must be what the server has verified.
TEST_F(AuthRpc, a_lease_records_the_authenticated_user) {
  RpcProbe locker(address_, "l");
  v1::Operation operation;
  operation.mutable_grant_lease()->set_ttl_ms(60'000);

  const auto unary = grant(locker);
  const auto in_session = operate(locker, operation).lease_granted().id();

  store_.look([&](const server::View& view) {
    for (const auto id : {unary, in_session}) {
      const auto* lease = view.state.leases.find(core::LeaseId(id));
      ASSERT_NE(lease, nullptr) << id;
      EXPECT_EQ(lease->user.view(), "locker");
    }
  });
}

// Lease ids are chosen by clients, and a retry after a lost reply repeats its request id.
TEST_F(AuthRpc, a_request_id_of_another_user_does_not_return_the_lease) {
  RpcProbe locker(address_, "l");
  RpcProbe other(address_, "o");
  v1::LeaseGrantRequest request;
  request.set_id(77);
  request.set_request_id(5);
  request.set_ttl_ms(60'000);
  const auto path = std::string(locks) + "LeaseGrant";
  EXPECT_EQ(locker.call(path, request).code(), grpc::StatusCode::ok);

  EXPECT_EQ(locker.call(path, request).code(), grpc::StatusCode::ok);
  EXPECT_NE(other.call(path, request).code(), grpc::StatusCode::ok);
  v1::SessionRequest session;
  session.mutable_hello()->set_revoke_leases(true);
  auto& operation = *session.add_operations();
  operation.set_id(1);
  operation.mutable_grant_lease()->set_id(77);
  operation.mutable_grant_lease()->set_request_id(5);
  (void)other.call(std::string(locks) + "Session", session);
  (void)other.call(std::string(locks) + "Leases", v1::LeasesRequest());

  store_.look([&](const server::View& view) {
    EXPECT_NE(view.state.leases.find(core::LeaseId(77)), nullptr);
  });
}

TEST_F(AuthRpc, the_user_of_a_lease_and_an_admin_may_end_it) {
  RpcProbe locker(address_, "l");
  RpcProbe ops(address_, "ad");
  const auto first = grant(locker);
  const auto second = grant(locker);
  v1::LeaseRevokeRequest request;

  request.set_id(first);
  EXPECT_EQ(locker.call(std::string(locks) + "LeaseRevoke", request).code(), grpc::StatusCode::ok);
  request.set_id(second);
  EXPECT_EQ(ops.call(std::string(locks) + "LeaseRevoke", request).code(), grpc::StatusCode::ok);
}

TEST_F(AuthRpc, lists_contain_readable_locks_and_the_own_leases) {
  RpcProbe ops(address_, "ad");
  RpcProbe reader(address_, "r");
  RpcProbe locker(address_, "l");
  const auto lease = grant(ops);
  for (const auto* name : {"a/1", "a/2", "b/1", "c"}) {
    EXPECT_EQ(take(ops, name, lease).code(), grpc::StatusCode::ok);
  }
  (void)grant(locker);
  const auto names = [&](RpcProbe& probe, std::uint32_t limit) {
    v1::ListRequest request;
    request.set_limit(limit);
    const auto reply = probe.call(std::string(admin) + "List", request).first<v1::ListResponse>();
    std::vector<std::string> found;
    for (const auto& lock : reply.locks()) {
      found.push_back(lock.name());
    }
    found.emplace_back(reply.more() ? "more" : "end");
    return found;
  };
  const auto leases = [&](RpcProbe& probe) {
    return probe.call(std::string(locks) + "Leases", v1::LeasesRequest())
        .first<v1::LeasesResponse>()
        .leases_size();
  };

  EXPECT_EQ(names(reader, 0), (std::vector<std::string>{"a/1", "a/2", "end"}));
  EXPECT_EQ(names(reader, 1), (std::vector<std::string>{"a/1", "more"}));
  EXPECT_EQ(names(reader, 2), (std::vector<std::string>{"a/1", "a/2", "end"}));
  EXPECT_EQ(names(ops, 0), (std::vector<std::string>{"a/1", "a/2", "b/1", "c", "end"}));
  EXPECT_EQ(leases(reader), 0);
  EXPECT_EQ(leases(locker), 1);
  EXPECT_EQ(leases(ops), 2);
}

// The holder of a readable lock may wait for an unreadable one.
TEST_F(AuthRpc, an_explanation_omits_unreadable_names) {
  RpcProbe ops(address_, "ad");
  RpcProbe reader(address_, "r");
  const auto first = grant(ops);
  const auto second = grant(ops);
  (void)take(ops, "a/x", first);
  (void)take(ops, "b/x", second);
  auto request = lock_request("b/x", first);
  const auto waiting = ops.begin(std::string(locks) + "Lock", request);
  waiting->half_close();
  ops.run_until([&] {
    bool waits = false;
    store_.look([&](const server::View& view) { waits = view.state.locks.waits().size() == 1; });
    return waits;
  });
  v1::ExplainRequest ask;
  ask.set_name("a/x");

  const auto shown = reader.call(std::string(admin) + "Explain", ask).first<v1::ExplainResponse>();
  EXPECT_EQ(shown.waits_of_holders_size(), 0);
  EXPECT_EQ(shown.summary().find("b/x"), std::string::npos);
  const auto all = ops.call(std::string(admin) + "Explain", ask).first<v1::ExplainResponse>();
  EXPECT_EQ(all.waits_of_holders_size(), 1);
  waiting->cancel();
}

TEST_F(AuthRpc, a_prefix_watch_delivers_only_readable_events) {
  RpcProbe ops(address_, "ad");
  RpcProbe reader(address_, "r");
  v1::WatchRequest request;
  request.mutable_create()->set_prefix(true);
  const auto watch = reader.begin(std::string(locks) + "Watch", request);
  reader.run_until([&] { return !watch->reply.messages.empty(); });

  const auto lease = grant(ops);
  (void)take(ops, "b/1", lease);
  (void)take(ops, "a/1", lease);
  reader.run_until([&] { return watch->reply.messages.size() > 1; });

  v1::WatchResponse delivered;
  ASSERT_TRUE(delivered.ParseFromString(watch->reply.messages.at(1)));
  ASSERT_EQ(delivered.events_size(), 1);
  EXPECT_EQ(delivered.events(0).record().key(), "a/1");
  watch->cancel();
}

// A stream is authenticated once; each operation is authorized with the current policy.
TEST_F(AuthRpc, a_new_policy_applies_to_open_streams_at_once) {
  RpcProbe locker(address_, "l");
  const auto lease = grant(locker);
  v1::SessionRequest hello;
  hello.mutable_hello()->set_client("test");
  const auto session = locker.begin(std::string(locks) + "Session", hello);
  std::uint64_t last = 0;
  const auto acquire = [&](const std::string& name) {
    v1::SessionRequest request;
    auto& operation = *request.add_operations();
    operation.set_id(++last);
    operation.mutable_acquire()->set_lease_id(lease);
    operation.mutable_acquire()->set_request_id(last);
    operation.mutable_acquire()->add_items()->set_name(name);
    session->send(request);
    std::optional<v1::Outcome> outcome;
    locker.run_until([&] {
      for (const auto& bytes : session->reply.messages) {
        v1::SessionResponse response;
        EXPECT_TRUE(response.ParseFromString(bytes));
        for (const auto& one : response.outcomes()) {
          outcome = one.id() == last ? one : outcome;
        }
      }
      return outcome.has_value() || session->reply.status.has_value();
    });
    return outcome.value_or(v1::Outcome());
  };
  EXPECT_TRUE(acquire("a/1").has_granted());

  authorizer.replace(auth_rules({{"c/", Level::lock}}));
  EXPECT_EQ(acquire("a/2").refused().code(), v1::CODE_PERMISSION_DENIED);
  EXPECT_TRUE(acquire("c/1").has_granted());

  authorizer.replace(*Policy::make({{.name = "x", .tokens = {digest_of("x")}}}));
  (void)acquire("c/2");
  ASSERT_TRUE(session->reply.status);
  EXPECT_EQ(session->reply.code(), grpc::StatusCode::unauthenticated);
}

// The cycle that the victim receives contains owners and lock names of other users.
TEST_F(AuthRpc, the_cycle_of_a_deadlock_redacts_unreadable_steps) {
  RpcProbe ops(address_, "ad");
  RpcProbe locker(address_, "l");
  const auto ours = grant(locker);
  const auto first = grant(ops);
  const auto second = grant(ops);
  (void)take(locker, "a/1", ours);
  (void)take(ops, "a/2", first);
  (void)take(ops, "b/secret", second);
  const auto wait_for = [&](const std::string& name, std::uint64_t lease, std::size_t count) {
    auto call = ops.begin(std::string(locks) + "Lock", lock_request(name, lease));
    call->half_close();
    ops.run_until([&] {
      std::size_t waits = 0;
      store_.look([&](const server::View& view) { waits = view.state.locks.waits().size(); });
      return waits == count;
    });
    return call;
  };
  const auto one = wait_for("b/secret", first, 1);
  const auto two = wait_for("a/1", second, 2);

  const auto delivered = take(locker, "a/2", ours).first<v1::LockResponse>();

  ASSERT_EQ(delivered.reason(), v1::REASON_DEADLOCK);
  std::set<std::string> names;
  for (const auto& step : delivered.cycle()) {
    names.insert(step.name());
  }
  EXPECT_EQ(names, (std::set<std::string>{"a/1", "a/2", "(hidden)"}));
  one->cancel();
  two->cancel();
}

}  // namespace
}  // namespace tenure::test
