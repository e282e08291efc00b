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

/// Who may call what. Everywhere here a principal that is null is anybody, where there are no
/// users.
namespace tenure::server {

/// Begins a call of this principal.
using OpenCall = std::function<std::shared_ptr<grpc::Call>(const grpc::CallInfo&,
                                                           std::unique_ptr<auth::Principal>)>;
/// The same behind the authorizer: whoever is not let in gets a call that has ended.
[[nodiscard]] grpc::Router::Open with_authorization(auth::Authorizer* authorizer,
                                                    auth::Permission permission, OpenCall open);

[[nodiscard]] grpc::Status status_of(const auth::AccessDenied& denial);

/// May it lock all of these? Nothing: yes.
[[nodiscard]] std::optional<auth::AccessDenied> authorize_lock(
    auth::Principal* principal, const std::vector<core::Item>& items);
/// A lease that lives and is somebody else's. To be answered as one that does not live.
[[nodiscard]] bool is_foreign(auth::Principal* principal, const core::State& state,
                              core::LeaseId lease);

/// What an operation of a Session asks. A new one without an answer here does not compile.
[[nodiscard]] auth::Permission permission_for(v1::Operation::WhatCase what);
/// Why an operation is refused; nothing if it is not.
[[nodiscard]] std::optional<Error> check_operation(auth::Principal& principal,
                                                   const v1::Operation& operation);
/// Puts the leases of others out of an operation, or a renewal, so that the store answers as it
/// does for leases that are not known, and takes as long for it.
void mask_foreign_leases(auth::Principal& principal, const core::State& state,
                         v1::Operation& operation);
void mask_foreign_leases(auth::Principal& principal, const core::State& state,
                         core::Command& renewal);

/// Takes the names of others out of the cycle of a deadlock.
void redact_unreadable(auth::Principal* principal, core::Outcome& outcome);

/// Makes a new lease that of the principal's user: records the authenticated name, puts it before
/// the name of the client, so that a retry of another user does not return this lease, and gives it
/// a random id, which nothing can predict. Without a user, changes nothing.
void bind_to_principal(auth::Principal* principal, core::GrantLease& grant);

/// What a principal may see, by the rules of now.
[[nodiscard]] inline auth::Access access_of(const std::unique_ptr<auth::Principal>& principal) {
  return principal ? principal->access() : auth::Access::unrestricted();
}

}  // namespace tenure::server
