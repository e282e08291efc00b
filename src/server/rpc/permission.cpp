#include "server/rpc/permission.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "grpc/connection.hpp"
#include "server/auth/certificate.hpp"
#include "sys/chance.hpp"
#include "wire/errors.hpp"

namespace tenure::server {
namespace {

/// A call that has ended before it began.
class Refusal final : public grpc::Call {
 public:
  using Call::Call;

 private:
  void received(std::string_view /*message*/) override {}
  void half_closed() override {}
  void closed() override {}
};

auth::Proof proof_of(const grpc::Opening& opening) {
  auto proof = auth::Gate::proof_in(opening.authorization);
  if (std::holds_alternative<std::monostate>(proof)) {
    if (auto names = auth::names_shown(opening.connection.tls()); !names.empty()) {
      return names;
    }
  }
  return proof;
}

/// Calls `visit(id)` for each lease that an operation names, which may change it.
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

grpc::Router::Open behind(auth::Gate* gate, auth::Need need, GuestOpen open) {
  if (gate == nullptr || need == auth::Need::nothing) {
    return
        [open = std::move(open)](const grpc::Opening& opening) { return open(opening, nullptr); };
  }
  return [gate, need,
          open = std::move(open)](const grpc::Opening& opening) -> std::shared_ptr<grpc::Call> {
    auto guest = gate->admit(proof_of(opening), opening.connection.peer());
    if (const auto denial = guest->why_not(need)) {
      auto refusal = std::make_shared<Refusal>(opening);
      refusal->finish(status_of(*denial));
      return refusal;
    }
    return open(opening, std::move(guest));
  };
}

grpc::Status status_of(const auth::Denial& denial) {
  auto status = wire::status_of(denial.error);
  if (denial.kind == auth::Denial::Kind::unknown) {
    status.code = grpc::StatusCode::unauthenticated;
  }
  return status;
}

std::optional<auth::Denial> why_not_lock(auth::Guest* guest, const std::vector<core::Item>& items) {
  if (guest == nullptr) {
    return std::nullopt;
  }
  for (const auto& item : items) {
    if (auto denial = guest->why_not(auth::Verb::lock, item.name.view())) {
      return denial;
    }
  }
  return std::nullopt;
}

bool is_foreign(auth::Guest* guest, const core::State& state, core::LeaseId lease) {
  if (guest == nullptr) {
    return false;
  }
  const auto* found = state.leases.find(lease);
  return found != nullptr && guest->is_foreign(found->client.view(), lease.get());
}

auth::Need need_of(v1::Operation::WhatCase what) {
  switch (what) {
    case v1::Operation::kAcquire: return auth::Need::lock_names;
    case v1::Operation::kGrantLease: return auth::Need::lock_somewhere;
    case v1::Operation::kRelease:
    case v1::Operation::kAbandon:
    case v1::Operation::kRenewLeases:
    case v1::Operation::kRevokeLease:
    case v1::Operation::kDowngrade:
    case v1::Operation::kSetTtl:
    case v1::Operation::kConfirmHolds: return auth::Need::own_lease;
    case v1::Operation::WHAT_NOT_SET: break;
  }
  return auth::Need::identity;
}

std::optional<Error> why_refused(auth::Guest& guest, const v1::Operation& operation) {
  if (auto denial = guest.why_not(need_of(operation.what_case()))) {
    return std::move(denial->error);
  }
  for (const auto& item : operation.acquire().items()) {
    if (auto denial = guest.why_not(auth::Verb::lock, item.name())) {
      return std::move(denial->error);
    }
  }
  return std::nullopt;
}

void hide_foreign(auth::Guest& guest, const core::State& state, v1::Operation& operation) {
  each_lease(operation, [&](std::uint64_t lease) {
    return is_foreign(&guest, state, core::LeaseId(lease)) ? 0 : lease;
  });
}

void hide_foreign(auth::Guest& guest, const core::State& state, core::Command& renewal) {
  const auto hide = [&](core::LeaseId& lease) {
    if (is_foreign(&guest, state, lease)) {
      lease = core::LeaseId{};
    }
  };
  if (auto* several = std::get_if<core::RenewLeases>(&renewal)) {
    std::ranges::for_each(several->leases, hide);
  } else if (auto* one = std::get_if<core::SetTtl>(&renewal)) {
    hide(one->lease);
  }
}

void hide_unreadable(auth::Guest* guest, core::Outcome& outcome) {
  auto* refused = std::get_if<core::Refused>(&outcome);
  if (guest != nullptr && refused != nullptr) {
    auth::hide_unreadable(guest->access(), refused->cycle);
  }
}

void sign(auth::Guest* guest, core::GrantLease& grant) {
  const auto* user = guest == nullptr ? nullptr : guest->access().user();
  if (user == nullptr) {
    return;
  }
  grant.client = auth::client_of(*user, grant.client);
  grant.user = user->name;
  if (grant.id == core::LeaseId{}) {
    grant.id = core::LeaseId(sys::random_id());
  }
}

}  // namespace tenure::server
