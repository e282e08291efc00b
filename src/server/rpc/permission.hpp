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
#include "server/auth/gate.hpp"
#include "tenure/v1/session.pb.h"

/// Who may call what. Everywhere here a guest that is null is anybody, where there are no users.
namespace tenure::server {

/// Begins a call of this guest.
using GuestOpen =
    std::function<std::shared_ptr<grpc::Call>(const grpc::Opening&, std::unique_ptr<auth::Guest>)>;
/// The same behind the gate: whoever is not let in gets a call that has ended.
[[nodiscard]] grpc::Router::Open behind(auth::Gate* gate, auth::Need need, GuestOpen open);

[[nodiscard]] grpc::Status status_of(const auth::Denial& denial);

/// May it lock all of these? Nothing: yes.
[[nodiscard]] std::optional<auth::Denial> why_not_lock(auth::Guest* guest,
                                                       const std::vector<core::Item>& items);
/// A lease that lives and is somebody else's. To be answered as one that does not live.
[[nodiscard]] bool is_foreign(auth::Guest* guest, const core::State& state, core::LeaseId lease);

/// What an operation of a Session asks. A new one without an answer here does not compile.
[[nodiscard]] auth::Need need_of(v1::Operation::WhatCase what);
/// Why an operation is refused; nothing if it is not.
[[nodiscard]] std::optional<Error> why_refused(auth::Guest& guest, const v1::Operation& operation);
/// Puts the leases of others out of an operation, or a renewal, so that the store answers as it
/// does for leases that are not known, and takes as long for it.
void hide_foreign(auth::Guest& guest, const core::State& state, v1::Operation& operation);
void hide_foreign(auth::Guest& guest, const core::State& state, core::Command& renewal);

/// Takes the names of others out of the cycle of a deadlock.
void hide_unreadable(auth::Guest* guest, core::Outcome& outcome);

/// Makes a new lease that of the guest's user: records the authenticated name, puts it before the
/// name of the client, so that a retry of another user does not return this lease, and gives it a
/// random id, which nothing can predict. Without a user, changes nothing.
void sign(auth::Guest* guest, core::GrantLease& grant);

/// What a guest may see, by the rules of now.
[[nodiscard]] inline auth::Access access_of(const std::unique_ptr<auth::Guest>& guest) {
  return guest ? guest->access() : auth::Access::everything();
}

}  // namespace tenure::server
