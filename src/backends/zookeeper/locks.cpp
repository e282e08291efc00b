#include "backends/zookeeper/locks.hpp"

#include <algorithm>

#include "backends/zookeeper/node_value.hpp"
#include "backends/zookeeper/paths.hpp"

namespace tenure::backends::zookeeper {
namespace {

Kind kind_of(const AcquireSpec& spec) {
  const auto* const mode = std::get_if<LockMode>(&spec.items.front().claim);
  if (mode != nullptr && *mode == LockMode::shared) {
    return Kind::read;
  }
  return spec.kind == LockKind::rw_lock ? Kind::write : Kind::lock;
}

Error lease_ended() {
  return {.code = Errc::lease_lost,
          .detail = "the lease of this request has ended; request a new one"};
}

}  // namespace

Locks::Locks(Environment environment) : environment_(std::move(environment)) {}

// Acquire.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  const auto it = leases_.find(request.lease);
  if (it == leases_.end()) {
    environment_.deferred.complete(std::move(done), std::unexpected(lease_ended()));
    return;
  }
  if (try_reenter(it->second, request, done)) {
    return;
  }
  const Number number = ++last_number_;
  auto hold = std::make_unique<Hold>();
  const auto& item = request.spec->items.front();
  hold->lease = request.lease;
  hold->slot = it->second.slot;
  hold->folder = folder_of(environment_.address.chroot, item.name);
  hold->kind = kind_of(*request.spec);
  hold->queue = request.queue;
  if (const auto* const permits = std::get_if<Permits>(&item.claim)) {
    hold->permits = *permits;
  }
  hold->spec = std::move(request.spec);
  hold->requests.push_back({.request = request.request, .done = std::move(done)});
  it->second.holds.push_back(number);
  by_request_[{.lease = request.lease, .request = request.request}] = number;
  holds_.emplace(number, std::move(hold));
  begin_claim(number);
}

/// Handles a conflict with a hold or wait of the same lease. Returns true if that decides the
/// request.
bool Locks::try_reenter(Lease& lease, AcquireRequest& request, Backend::Done<Granted>& done) {
  const auto& item = request.spec->items.front();
  for (const auto number : lease.holds) {
    auto* const hold = find(number);
    if (hold == nullptr || hold->is_releasing || hold->permits.has_value() ||
        std::holds_alternative<Permits>(item.claim) ||
        hold->spec->items.front().name != item.name) {
      continue;
    }
    const bool wants_all = is_exclusive(kind_of(*request.spec));
    // An exclusive hold covers every later acquire of its lease, a shared one only shared acquires.
    const bool is_covered = is_exclusive(hold->kind) || !wants_all;
    if (!is_exclusive(hold->kind) && !wants_all &&
        request.spec->self_conflict == SelfConflict::refuse) {
      continue;  // Shared holds do not conflict.
    }
    if (request.spec->self_conflict == SelfConflict::refuse) {
      environment_.deferred.complete(
          std::move(done),
          fail(Errc::deadlock, '"' + item.name + "\": the lease would block itself"));
    } else if (!is_covered) {
      environment_.deferred.complete(
          std::move(done),
          fail(Errc::unsupported,
               '"' + item.name + "\": ZooKeeper does not support upgrade; unlock, then lock()"));
    } else {
      by_request_[{.lease = request.lease, .request = request.request}] = number;
      hold->requests.push_back({.request = request.request, .done = std::move(done)});
      if (hold->granted) {
        auto granted = *hold->granted;
        granted.count = static_cast<std::uint32_t>(hold->requests.size());
        environment_.deferred.complete(std::exchange(hold->requests.back().done, nullptr), granted);
      }
    }
    return true;
  }
  return false;
}

// A try_lock that conflicts with an own node fails without a request.
void Locks::begin_claim(Number number) {
  auto& hold = *find(number);
  auto* const session = session_of(hold);
  const auto folder = hold.permits ? gate_of(hold.folder) : hold.folder;
  const auto kind = hold.permits ? Kind::lock : hold.kind;
  if (hold.queue == Queue::skip && session->has_own_conflict(folder, kind)) {
    settle(hold, fail(Errc::would_block));
    forget(number);
    return;
  }
  auto on_decision = [this, number](Result<Grant> grant) {
    auto* const hold = find(number);
    if (hold != nullptr && hold->permits) {
      gate_acquired(number, std::move(grant));
    } else {
      claim_decided(number, std::move(grant));
    }
  };
  hold.claim =
      session->claim({.folder = folder, .kind = kind, .queue = hold.queue, .value = value_of(hold)},
                     std::move(on_decision));
  by_claim_[{hold.slot, hold.claim}] = number;
}

void Locks::claim_decided(Number number, Result<Grant> grant) {
  auto* const hold = find(number);
  if (hold == nullptr) {
    return;
  }
  if (!grant) {
    by_claim_.erase({hold->slot, hold->claim});
    hold->claim = {};
    reject(number, grant.error());
    return;
  }
  hold->granted = Granted{.token = grant->token, .queue_position = grant->position};
  settle(*hold, *hold->granted);
}

/// Completes all pending requests of the hold.
void Locks::settle(Hold& hold, const Result<Granted>& answer) {
  for (auto& entry : hold.requests) {
    if (entry.done) {
      environment_.deferred.complete(std::exchange(entry.done, nullptr), answer);
    }
  }
}

// The caller is answered after the node is deleted, so that the queue is clean when it continues;
// without a connection it is answered at once.
void Locks::abandon(LeaseId lease, RequestId request) {
  const auto it = by_request_.find(RequestKey{.lease = lease, .request = request});
  auto* const hold = it == by_request_.end() ? nullptr : find(it->second);
  if (hold == nullptr || hold->granted || hold->is_releasing) {
    return;
  }
  const auto number = it->second;
  const auto entry = std::ranges::find(hold->requests, request, &HoldRequest::request);
  auto done = std::move(entry->done);
  by_request_.erase(it);
  hold->requests.erase(entry);
  if (!hold->requests.empty()) {
    environment_.deferred.complete(std::move(done), fail(Errc::cancelled));
    return;
  }
  if (!session_of(*hold)->is_connected()) {
    // Without a connection the caller gets `cancelled` now; a node that may exist is deleted later.
    environment_.deferred.complete(std::move(done), fail(Errc::cancelled));
    release_hold(number, [](const Result<void>&) {});
    return;
  }
  release_hold(number, [this, done = std::move(done)](const Result<void>&) mutable {
    environment_.deferred.complete(std::move(done), fail(Errc::cancelled));
  });
}

// Release.

void Locks::release(const ReleaseRequest& request, Backend::Done<void> done) {
  const auto it = by_request_.find(RequestKey{.lease = request.lease, .request = request.acquired});
  auto* const hold = it == by_request_.end() ? nullptr : find(it->second);
  if (hold == nullptr || hold->is_releasing) {
    environment_.deferred.complete(std::move(done), fail(Errc::not_held));
    return;
  }
  const auto number = it->second;
  std::erase_if(hold->requests,
                [&](const HoldRequest& one) { return one.request == request.acquired; });
  by_request_.erase(it);
  // Other acquires of this hold are not released yet, so its node stays.
  if (!hold->requests.empty()) {
    environment_.deferred.complete(std::move(done), {});
    return;
  }
  release_hold(number, [this, done = std::move(done)](Result<void> answer) mutable {
    environment_.deferred.complete(std::move(done), std::move(answer));
  });
}

/// Fails the pending requests and deletes the nodes of the hold.
void Locks::reject(Number number, const Error& why) {
  settle(*find(number), std::unexpected(why));
  release_hold(number, [](const Result<void>&) {});
}

// The count starts at one above the number of nodes, so that the release cannot complete before all
// deletions are sent.
void Locks::release_hold(Number number, std::move_only_function<void(Result<void>)> on_released) {
  auto& hold = *find(number);
  hold.on_released.push_back(std::move(on_released));
  if (std::exchange(hold.is_releasing, true)) {
    return;
  }
  auto* const session = session_of(hold);
  std::vector<ClaimId> claims(hold.leases);
  if (hold.claim != ClaimId{}) {
    claims.push_back(hold.claim);
  }
  hold.parts_left = claims.size() + 1;
  for (const auto claim : claims) {
    by_claim_.erase({hold.slot, claim});
    session->withdraw(
        claim, [this, number](Result<void> answer) { part_released(number, std::move(answer)); });
  }
  part_released(number, {});
}

void Locks::part_released(Number number, Result<void> answer) {
  auto* const hold = find(number);
  if (hold == nullptr) {
    return;
  }
  if (!answer) {
    hold->release_result = std::move(answer);
  }
  if (--hold->parts_left > 0) {
    return;
  }
  auto callbacks = std::move(hold->on_released);
  const auto result = hold->release_result;
  forget(number);
  for (auto& one : callbacks) {
    one(result);
  }
}

void Locks::forget(Number number) {
  const auto it = holds_.find(number);
  const auto& hold = *it->second;
  for (const auto& entry : hold.requests) {
    by_request_.erase(RequestKey{.lease = hold.lease, .request = entry.request});
  }
  by_claim_.erase({hold.slot, hold.claim});
  for (const auto claim : hold.leases) {
    by_claim_.erase({hold.slot, claim});
  }
  if (const auto lease = leases_.find(hold.lease); lease != leases_.end()) {
    std::erase(lease->second.holds, number);
  }
  holds_.erase(it);
}

/// Handles the deletion of a node by another client.
void Locks::claim_lost(Number slot, ClaimId claim) {
  const auto it = by_claim_.find({slot, claim});
  auto* const hold = it == by_claim_.end() ? nullptr : find(it->second);
  if (hold == nullptr) {
    return;
  }
  const auto number = it->second;
  by_claim_.erase(it);
  std::erase(hold->leases, claim);
  if (hold->claim == claim) {
    hold->claim = {};
  }
  if (hold->granted && listener_ != nullptr) {
    for (const auto& entry : hold->requests) {
      environment_.deferred.add(
          [listener = listener_, lease = hold->lease, request = entry.request] {
            listener->hold_force_released(lease, request);
          });
    }
  }
  reject(number, {.code = Errc::lease_lost,
                  .detail = hold->folder + ": another client deleted the node; retry"});
}

std::string Locks::value_of(const Hold& hold) const {
  return write_value({.owner = hold.spec->owner,
                      .lease = hold.lease,
                      .request = hold.requests.front().request,
                      .capacity = hold.permits ? hold.permits->capacity : 0,
                      .metadata = hold.spec->metadata});
}

Locks::Hold* Locks::find(Number number) {
  const auto it = holds_.find(number);
  return it == holds_.end() ? nullptr : it->second.get();
}

Session* Locks::session_of(const Hold& hold) {
  return slots_.at(hold.slot).session.get();
}

}  // namespace tenure::backends::zookeeper
