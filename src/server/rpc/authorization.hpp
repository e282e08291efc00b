#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/command.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"
#include "grpc/call.hpp"
#include "grpc/router.hpp"
#include "server/auth/authorizer.hpp"
#include "tenure/v1/session.pb.h"

/// Authorization of gRPC calls. A null principal means that no users are configured and everything
/// is allowed.
namespace tenure::server {

/// Creates the call of an authorized principal.
using OpenCall = std::function<std::shared_ptr<grpc::Call>(const grpc::CallInfo&,
                                                           std::unique_ptr<auth::Principal>)>;
/// Authenticates the client and checks the permission before `open` runs. A denied client gets a
/// call that has already failed.
/// A null authorizer, or Permission::none, passes every call with a null principal.
[[nodiscard]] grpc::Router::Open with_authorization(auth::Authorizer* authorizer,
                                                    auth::Permission permission, OpenCall open);

/// UNAUTHENTICATED for a client without valid credentials, else PERMISSION_DENIED.
[[nodiscard]] grpc::Status status_of(const auth::AccessDenied& denial);

/// Checks the lock right on all names of the items; nullopt: granted.
[[nodiscard]] std::optional<auth::AccessDenied> authorize_lock(
    auth::Principal* principal, const std::vector<core::Item>& items);
/// Whether a live lease belongs to another user. The reply must be that of an unknown lease.
[[nodiscard]] bool is_foreign(auth::Principal* principal, const core::State& state,
                              core::LeaseId lease);

/// Permission of a Session operation. A new operation without a case here does not compile.
[[nodiscard]] auth::Permission permission_for(v1::Operation::WhatCase what);
/// Error of a denied operation; nullopt: allowed.
[[nodiscard]] std::optional<Error> check_operation(auth::Principal& principal,
                                                   const v1::Operation& operation);
/// Replaces foreign lease ids by an unknown id, so that neither the reply nor its latency reveals
/// whether the lease exists.
void mask_foreign_leases(auth::Principal& principal, const core::State& state,
                         v1::Operation& operation);
void mask_foreign_leases(auth::Principal& principal, const core::State& state,
                         core::Command& renewal);

/// Redacts unreadable names and owners in the cycle of a deadlock.
/// No effect on other outcomes.
void redact_unreadable(auth::Principal* principal, core::Outcome& outcome);

/// Binds a new lease to the user: records the authenticated name, prefixes the client name with it,
/// so that a retry by another user does not return this lease, and chooses a random, unpredictable
/// id. Without a user it changes nothing.
void bind_to_principal(auth::Principal* principal, core::GrantLease& grant);

/// Rights of the principal under the current policy.
[[nodiscard]] inline auth::Access access_of(const std::unique_ptr<auth::Principal>& principal) {
  return principal ? principal->access() : auth::Access::unrestricted();
}

}  // namespace tenure::server
