#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "support/rpc/auth.hpp"

namespace tenure::test {
namespace {

using google::protobuf::Message;
using Until = RpcProbe::Until;

/// Credentials and lock name of a call: without a token, or with one, and a name under a/ or b/.
struct CallCase {
  std::string label;
  std::string token;
  std::string name;
};
const std::vector<CallCase> call_cases{{"no token", "", "a/x"},  {"wrong token", "tenure_1", "a/x"},
                                       {"reader a", "r", "a/x"}, {"reader b", "r", "b/x"},
                                       {"locker a", "l", "a/x"}, {"locker b", "l", "b/x"},
                                       {"admin", "ad", "b/x"}};
const std::set<std::string> users{"reader a", "reader b", "locker a", "locker b", "admin"};
const std::set<std::string> readers{"reader a", "locker a", "admin"};
const std::set<std::string> lockers{"locker a", "admin"};
const std::set<std::string> admins{"admin"};
const std::set<std::string> all_labels{"no token", "wrong token", "reader a", "reader b",
                                       "locker a", "locker b",    "admin"};

using Made = std::unique_ptr<Message>;
using Make = std::function<Made(const std::string& name)>;

template <class Request>
Make plain() {
  return [](const std::string&) { return std::make_unique<Request>(); };
}
template <class Request>
Make named() {
  return [](const std::string& name) {
    auto request = std::make_unique<Request>();
    request->set_name(name);
    return request;
  };
}

template <class Request>
Make below() {
  return [](const std::string& name) {
    auto request = std::make_unique<Request>();
    request->set_prefix(name);
    return request;
  };
}

struct Row {
  Make make;
  std::set<std::string> allowed;
  Until until = Until::end;
};

/// Every call of the services. A call that is missing here fails the test.
std::map<std::string, Row> call_rows() {
  const auto watch = [](const std::string& name) -> Made {
    auto request = std::make_unique<v1::WatchRequest>();
    request->mutable_create()->set_key(name);
    return request;
  };
  const auto hello = [](const std::string&) -> Made {
    auto request = std::make_unique<v1::SessionRequest>();
    request->mutable_hello();
    return request;
  };
  std::set<std::string> some_lock = users;
  some_lock.erase("reader a");
  some_lock.erase("reader b");
  return {
      {"tenure.v1.LockService.Lock", {named<v1::LockRequest>(), lockers}},
      {"tenure.v1.LockService.TryLock", {named<v1::TryLockRequest>(), lockers}},
      {"tenure.v1.LockService.Unlock", {named<v1::UnlockRequest>(), users}},
      {"tenure.v1.LockService.Downgrade", {plain<v1::DowngradeRequest>(), users}},
      {"tenure.v1.LockService.LeaseGrant", {plain<v1::LeaseGrantRequest>(), some_lock}},
      {"tenure.v1.LockService.LeaseRevoke", {plain<v1::LeaseRevokeRequest>(), users}},
      {"tenure.v1.LockService.LeaseKeepAlive", {plain<v1::LeaseKeepAliveRequest>(), users}},
      {"tenure.v1.LockService.LeaseTimeToLive", {plain<v1::LeaseTimeToLiveRequest>(), users}},
      {"tenure.v1.LockService.Leases", {plain<v1::LeasesRequest>(), users}},
      {"tenure.v1.LockService.Watch", {watch, readers, Until::message}},
      {"tenure.v1.LockService.Session", {hello, users}},
      {"tenure.v1.Admin.List", {below<v1::ListRequest>(), readers}},
      {"tenure.v1.Admin.Explain", {named<v1::ExplainRequest>(), readers}},
      {"tenure.v1.Admin.ForceRelease", {named<v1::ForceReleaseRequest>(), admins}},
      {"tenure.v1.Admin.Compact", {plain<v1::CompactRequest>(), admins}},
      {"tenure.v1.Admin.Snapshot", {plain<v1::SnapshotRequest>(), admins}},
      {"tenure.v1.Admin.SnapshotRead", {plain<v1::SnapshotReadRequest>(), admins}},
      {"tenure.v1.Admin.Top", {below<v1::TopRequest>(), readers}},
      {"tenure.v1.Admin.CheckToken", {named<v1::CheckTokenRequest>(), readers}},
      {"tenure.v1.Admin.ReloadUsers", {plain<v1::ReloadUsersRequest>(), admins}},
      {"tenure.v1.Admin.Status", {plain<v1::StatusRequest>(), users}},
      {"tenure.v1.Admin.MemberList", {plain<v1::MemberListRequest>(), users}},
      {"tenure.v1.Admin.MemberAdd", {plain<v1::MemberAddRequest>(), admins}},
      {"tenure.v1.Admin.MemberRemove", {plain<v1::MemberRemoveRequest>(), admins}},
      {"tenure.v1.Admin.TransferLeadership", {plain<v1::TransferLeadershipRequest>(), admins}},
      {"grpc.health.v1.Health.Check",
       {plain<::grpc::health::v1::HealthCheckRequest>(), all_labels}},
      {"grpc.health.v1.Health.Watch",
       {plain<::grpc::health::v1::HealthCheckRequest>(), all_labels, Until::message}},
      {"grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo",
       {plain<::grpc::reflection::v1alpha::ServerReflectionRequest>(), all_labels}},
  };
}

bool is_denied(const std::string& path, const RpcProbe::Reply& reply) {
  // A watch is refused in its own response; its stream stays open.
  const bool is_watch = path == "/tenure.v1.LockService/Watch";
  return reply.code() == grpc::StatusCode::permission_denied ||
         reply.code() == grpc::StatusCode::unauthenticated ||
         (is_watch && reply.first<v1::WatchResponse>().code() == v1::CODE_PERMISSION_DENIED);
}

// Catches a new call without a permission check.
TEST_F(AuthRpc, every_call_requires_the_permission_in_the_matrix) {
  const auto rows = call_rows();
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  for (const auto* service : {"tenure.v1.LockService", "tenure.v1.Admin", "grpc.health.v1.Health",
                              "grpc.reflection.v1alpha.ServerReflection"}) {
    const auto& described = *pool.FindServiceByName(service);
    for (int n = 0; n < described.method_count(); ++n) {
      const auto& method = *described.method(n);
      const auto row = rows.find(method.full_name());
      ASSERT_NE(row, rows.end()) << method.full_name() << " has no row in the matrix";
      const auto path = "/" + std::string(service) + "/" + method.name();
      for (const auto& client : call_cases) {
        RpcProbe probe(address_, client.token);
        const auto reply = probe.call(path, *row->second.make(client.name), row->second.until);
        EXPECT_EQ(!is_denied(path, reply), row->second.allowed.contains(client.label))
            << path << " by " << client.label << ": " << reply.message();
      }
    }
  }
}

std::map<std::string, std::set<std::string>> operation_rows() {
  std::set<std::string> some_lock = users;
  some_lock.erase("reader a");
  some_lock.erase("reader b");
  return {{"acquire", lockers},       {"release", users},      {"abandon", users},
          {"grant_lease", some_lock}, {"renew_leases", users}, {"revoke_lease", users},
          {"downgrade", users},       {"set_ttl", users},      {"confirm_holds", users}};
}

// The same for the operations of a Session stream.
TEST_F(AuthRpc, every_operation_requires_the_permission_in_the_matrix) {
  const auto rows = operation_rows();
  const auto& what = *v1::Operation::descriptor()->FindOneofByName("what");
  for (int n = 0; n < what.field_count(); ++n) {
    const auto& field = *what.field(n);
    const auto row = rows.find(field.name());
    ASSERT_NE(row, rows.end()) << field.name() << " has no row in the matrix";
    for (const auto& client : call_cases) {
      if (!users.contains(client.label)) {
        continue;  // Without valid credentials the Session itself is refused.
      }
      v1::Operation operation;
      operation.GetReflection()->MutableMessage(&operation, &field);
      if (operation.has_acquire()) {
        operation.mutable_acquire()->add_items()->set_name(client.name);
        operation.mutable_acquire()->set_request_id(1);
      }
      RpcProbe probe(address_, client.token);
      const auto outcome = operate(probe, operation);
      EXPECT_EQ(outcome.refused().code() != v1::CODE_PERMISSION_DENIED,
                row->second.contains(client.label))
          << field.name() << " by " << client.label;
    }
  }
}

}  // namespace
}  // namespace tenure::test
