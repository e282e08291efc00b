#include "server/rpc/authorization.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "grpc/connection.hpp"
#include "server/auth/certificate.hpp"
#include "sys/random.hpp"
#include "wire/errors.hpp"

namespace tenure::server {
namespace {

/// Call that fails before any message is read.
class RejectedCall final : public grpc::Call {
 public:
  using Call::Call;

 private:
  // Messages that were in flight before the rejection are dropped.
  void received(std::string_view /*message*/) override {}
  void half_closed() override {}
  void closed() override {}
};

auth::Credentials credentials_of(const grpc::CallInfo& info) {
  auto credentials = auth::Authorizer::credentials_from(info.authorization);
  // A token takes precedence over the client certificate, so clients that share a certificate can
  // still identify themselves.
  if (std::holds_alternative<std::monostate>(credentials)) {
    if (auto names = auth::certificate_names(info.connection.tls()); !names.empty()) {
      return names;
    }
  }
  return credentials;
}

/// Replaces each lease id in an operation by `visit(id)`.
/// The switch has no default: the compiler reports an operation without a case, which would
/// otherwise be executed without a check of its lease.
template <class Visit>
void each_lease(v1::Operation& operation, Visit visit) {
  const auto visit_one = [&](auto& part) { part.set_lease_id(visit(part.lease_id())); };
  switch (operation.what_case()) {
    case v1::Operation::kAcquire: visit_one(*operation.mutable_acquire()); return;
    case v1::Operation::kRelease: visit_one(*operation.mutable_release()); return;
    case v1::Operation::kAbandon: visit_one(*operation.mutable_abandon()); return;
    case v1::Operation::kDowngrade: visit_one(*operation.mutable_downgrade()); return;
    case v1::Operation::kSetTtl: visit_one(*operation.mutable_set_ttl()); return;
    case v1::Operation::kConfirmHolds: visit_one(*operation.mutable_confirm_holds()); return;
    case v1::Operation::kRevokeLease:
      operation.mutable_revoke_lease()->set_id(visit(operation.revoke_lease().id()));
      return;
    case v1::Operation::kRenewLeases:
      for (auto& id : *operation.mutable_renew_leases()->mutable_ids()) {
        id = visit(id);
      }
      return;
    case v1::Operation::kGrantLease:
    case v1::Operation::WHAT_NOT_SET: return;
  }
}

}  // namespace

grpc::Router::Open with_authorization(auth::Authorizer* authorizer, auth::Permission permission,
                                      OpenCall open) {
  if (authorizer == nullptr || permission == auth::Permission::none) {
    return [open = std::move(open)](const grpc::CallInfo& info) { return open(info, nullptr); };
  }
  return [authorizer, permission,
          open = std::move(open)](const grpc::CallInfo& info) -> std::shared_ptr<grpc::Call> {
    auto principal = authorizer->authenticate(credentials_of(info), info.connection.peer());
    if (const auto denial = principal->authorize(permission)) {
      auto refusal = std::make_shared<RejectedCall>(info);
      refusal->finish(status_of(*denial));
      return refusal;
    }
    return open(info, std::move(principal));
  };
}

grpc::Status status_of(const auth::AccessDenied& denial) {
  auto status = wire::status_of(denial.error);
  if (denial.kind == auth::AccessDenied::Kind::unauthenticated) {
    status.code = grpc::StatusCode::unauthenticated;
  }
  return status;
}

std::optional<auth::AccessDenied> authorize_lock(auth::Principal* principal,
                                                 const std::vector<core::Item>& items) {
  if (principal == nullptr) {
    return std::nullopt;
  }
  for (const auto& item : items) {
    if (auto denial = principal->authorize(auth::Verb::lock, item.name.view())) {
      return denial;
    }
  }
  return std::nullopt;
}

bool is_foreign(auth::Principal* principal, const core::State& state, core::LeaseId lease) {
  if (principal == nullptr) {
    return false;
  }
  const auto* found = state.leases.find(lease);
  return found != nullptr && principal->is_foreign(found->client.view(), lease.get());
}

auth::Permission permission_for(v1::Operation::WhatCase what) {
  switch (what) {
    case v1::Operation::kAcquire: return auth::Permission::lock_names;
    case v1::Operation::kGrantLease: return auth::Permission::lock_any_name;
    case v1::Operation::kRelease:
    case v1::Operation::kAbandon:
    case v1::Operation::kRenewLeases:
    case v1::Operation::kRevokeLease:
    case v1::Operation::kDowngrade:
    case v1::Operation::kSetTtl:
    case v1::Operation::kConfirmHolds: return auth::Permission::own_lease;
    case v1::Operation::WHAT_NOT_SET: break;
  }
  return auth::Permission::authenticated;
}

std::optional<Error> check_operation(auth::Principal& principal, const v1::Operation& operation) {
  // The permission of the operation, then the right on each name of an acquire.
  if (auto denial = principal.authorize(permission_for(operation.what_case()))) {
    return std::move(denial->error);
  }
  for (const auto& item : operation.acquire().items()) {
    if (auto denial = principal.authorize(auth::Verb::lock, item.name())) {
      return std::move(denial->error);
    }
  }
  return std::nullopt;
}

void mask_foreign_leases(auth::Principal& principal, const core::State& state,
                         v1::Operation& operation) {
  // 0 is never the id of a lease, so the operation fails as for any unknown lease.
  each_lease(operation, [&](std::uint64_t lease) {
    return is_foreign(&principal, state, core::LeaseId(lease)) ? 0 : lease;
  });
}

void mask_foreign_leases(auth::Principal& principal, const core::State& state,
                         core::Command& renewal) {
  const auto hide = [&](core::LeaseId& lease) {
    if (is_foreign(&principal, state, lease)) {
      lease = core::LeaseId{};
    }
  };
  if (auto* several = std::get_if<core::RenewLeases>(&renewal)) {
    std::ranges::for_each(several->leases, hide);
  } else if (auto* one = std::get_if<core::SetTtl>(&renewal)) {
    hide(one->lease);
  }
}

void redact_unreadable(auth::Principal* principal, core::Outcome& outcome) {
  auto* refused = std::get_if<core::Refused>(&outcome);
  if (principal != nullptr && refused != nullptr) {
    auth::redact_unreadable(principal->access(), refused->cycle);
  }
}

void bind_to_principal(auth::Principal* principal, core::GrantLease& grant) {
  const auto* user = principal == nullptr ? nullptr : principal->access().user();
  if (user == nullptr) {
    return;
  }
  grant.client = auth::qualified_client(*user, grant.client);
  grant.user = user->name;
  // Sequential ids would let a user guess and probe the leases of others.
  if (grant.id == core::LeaseId{}) {
    grant.id = core::LeaseId(sys::random_id());
  }
}

}  // namespace tenure::server
