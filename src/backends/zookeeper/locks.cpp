#include "backends/zookeeper/locks.hpp"

#include <algorithm>

#include "backends/zookeeper/paths.hpp"
#include "backends/zookeeper/values.hpp"

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
  return {.code = Errc::lease_lost, .detail = "the lease of this request has ended; begin anew"};
}

}  // namespace

Locks::Locks(Surroundings around) : around_(std::move(around)) {}

// Acquiring.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  const auto it = leases_.find(request.lease);
  if (it == leases_.end()) {
    around_.outbox.tell<Granted>(std::move(done), std::unexpected(lease_ended()));
    return;
  }
  if (share(it->second, request, done)) {
    return;
  }
  const Number number = ++last_number_;
  auto hold = std::make_unique<Hold>();
  const auto& item = request.spec->items.front();
  hold->lease = request.lease;
  hold->seat = it->second.seat;
  hold->folder = folder_of(around_.address.chroot, item.name);
  hold->kind = kind_of(*request.spec);
  hold->queue = request.queue;
  if (const auto* const permits = std::get_if<Permits>(&item.claim)) {
    hold->permits = *permits;
  }
  hold->spec = std::move(request.spec);
  hold->sharers.push_back({.request = request.request, .done = std::move(done)});
  it->second.holds.push_back(number);
  by_request_[{.lease = request.lease, .request = request.request}] = number;
  holds_.emplace(number, std::move(hold));
  begin(number);
}

/// What the lease has of this name already. True: that decides it.
bool Locks::share(Lease& lease, AcquireRequest& request, Backend::Done<Granted>& done) {
  const auto& item = request.spec->items.front();
  for (const auto number : lease.holds) {
    auto* const hold = find(number);
    if (hold == nullptr || hold->is_leaving || hold->permits.has_value() ||
        std::holds_alternative<Permits>(item.claim) ||
        hold->spec->items.front().name != item.name) {
      continue;
    }
    const bool wants_all = is_exclusive(kind_of(*request.spec));
    const bool is_covered = is_exclusive(hold->kind) || !wants_all;
    if (!is_exclusive(hold->kind) && !wants_all &&
        request.spec->self_conflict == SelfConflict::refuse) {
      continue;  // Two shares are no conflict.
    }
    if (request.spec->self_conflict == SelfConflict::refuse) {
      around_.outbox.tell<Granted>(
          std::move(done),
          fail(Errc::deadlock, '"' + item.name + "\": the lease would wait for itself"));
    } else if (!is_covered) {
      around_.outbox.tell<Granted>(
          std::move(done), fail(Errc::unsupported, '"' + item.name +
                                                       "\": on ZooKeeper a share does not become "
                                                       "exclusive; unlock, then lock()"));
    } else {
      by_request_[{.lease = request.lease, .request = request.request}] = number;
      hold->sharers.push_back({.request = request.request, .done = std::move(done)});
      if (hold->granted) {
        auto granted = *hold->granted;
        granted.count = static_cast<std::uint32_t>(hold->sharers.size());
        around_.outbox.tell<Granted>(std::exchange(hold->sharers.back().done, nullptr), granted);
      }
    }
    return true;
  }
  return false;
}

void Locks::begin(Number number) {
  auto& hold = *find(number);
  auto* const session = session_of(hold);
  const auto folder = hold.permits ? gate_of(hold.folder) : hold.folder;
  const auto kind = hold.permits ? Kind::lock : hold.kind;
  if (hold.queue == Queue::skip && session->is_ours_in_the_way(folder, kind)) {
    settle(hold, fail(Errc::would_block));
    forget(number);
    return;
  }
  auto verdict = [this, number](Result<Place> place) {
    auto* const decided_hold = find(number);
    if (decided_hold != nullptr && decided_hold->permits) {
      gate_open(number, std::move(place));
    } else {
      decided(number, std::move(place));
    }
  };
  hold.claim =
      session->claim({.folder = folder, .kind = kind, .queue = hold.queue, .value = value_of(hold)},
                     std::move(verdict));
  by_claim_[{hold.seat, hold.claim}] = number;
}

void Locks::decided(Number number, Result<Place> place) {
  auto* const hold = find(number);
  if (hold == nullptr) {
    return;
  }
  if (!place) {
    by_claim_.erase({hold->seat, hold->claim});
    hold->claim = {};
    drop(number, place.error());
    return;
  }
  hold->granted = Granted{.token = place->token, .queue_position = place->position};
  settle(*hold, *hold->granted);
}

/// Tells everybody who waits for it.
void Locks::settle(Hold& hold, const Result<Granted>& answer) {
  for (auto& sharer : hold.sharers) {
    if (sharer.done) {
      around_.outbox.tell<Granted>(std::exchange(sharer.done, nullptr), answer);
    }
  }
}

void Locks::abandon(LeaseId lease, RequestId request) {
  const auto it = by_request_.find(RequestKey{.lease = lease, .request = request});
  auto* const hold = it == by_request_.end() ? nullptr : find(it->second);
  if (hold == nullptr || hold->granted || hold->is_leaving) {
    return;
  }
  const auto number = it->second;
  const auto sharer = std::ranges::find(hold->sharers, request, &Sharer::request);
  auto done = std::move(sharer->done);
  by_request_.erase(it);
  hold->sharers.erase(sharer);
  if (!hold->sharers.empty()) {
    around_.outbox.tell<Granted>(std::move(done), fail(Errc::cancelled));
    return;
  }
  if (!session_of(*hold)->is_connected()) {
    // Nobody is there to be told. It is told now, and what may be there is deleted later.
    around_.outbox.tell<Granted>(std::move(done), fail(Errc::cancelled));
    leave(number, [](const Result<void>&) {});
    return;
  }
  leave(number, [this, done = std::move(done)](const Result<void>&) mutable {
    around_.outbox.tell<Granted>(std::move(done), fail(Errc::cancelled));
  });
}

// Giving back.

void Locks::release(const ReleaseRequest& request, Backend::Done<void> done) {
  const auto it = by_request_.find(RequestKey{.lease = request.lease, .request = request.acquired});
  auto* const hold = it == by_request_.end() ? nullptr : find(it->second);
  if (hold == nullptr || hold->is_leaving) {
    around_.outbox.tell<void>(std::move(done), fail(Errc::not_held));
    return;
  }
  const auto number = it->second;
  std::erase_if(hold->sharers, [&](const Sharer& one) { return one.request == request.acquired; });
  by_request_.erase(it);
  if (!hold->sharers.empty()) {
    around_.outbox.tell<void>(std::move(done), {});
    return;
  }
  leave(number, [this, done = std::move(done)](Result<void> answer) mutable {
    around_.outbox.tell<void>(std::move(done), std::move(answer));
  });
}

/// Whoever waits for it is told why not; what is there of it is deleted.
void Locks::drop(Number number, const Error& why) {
  settle(*find(number), std::unexpected(why));
  leave(number, [](const Result<void>&) {});
}

void Locks::leave(Number number, std::move_only_function<void(Result<void>)> gone) {
  auto& hold = *find(number);
  hold.when_gone.push_back(std::move(gone));
  if (std::exchange(hold.is_leaving, true)) {
    return;
  }
  auto* const session = session_of(hold);
  std::vector<ClaimId> claims(hold.leases);
  if (hold.claim != ClaimId{}) {
    claims.push_back(hold.claim);
  }
  hold.parts = claims.size() + 1;
  for (const auto claim : claims) {
    by_claim_.erase({hold.seat, claim});
    session->leave(claim,
                   [this, number](Result<void> answer) { part_gone(number, std::move(answer)); });
  }
  part_gone(number, {});
}

void Locks::part_gone(Number number, Result<void> answer) {
  auto* const hold = find(number);
  if (hold == nullptr) {
    return;
  }
  if (!answer) {
    hold->left = std::move(answer);
  }
  if (--hold->parts > 0) {
    return;
  }
  auto told = std::move(hold->when_gone);
  const auto result = hold->left;
  forget(number);
  for (auto& one : told) {
    one(result);
  }
}

void Locks::forget(Number number) {
  const auto it = holds_.find(number);
  const auto& hold = *it->second;
  for (const auto& sharer : hold.sharers) {
    by_request_.erase(RequestKey{.lease = hold.lease, .request = sharer.request});
  }
  by_claim_.erase({hold.seat, hold.claim});
  for (const auto claim : hold.leases) {
    by_claim_.erase({hold.seat, claim});
  }
  if (const auto lease = leases_.find(hold.lease); lease != leases_.end()) {
    std::erase(lease->second.holds, number);
  }
  holds_.erase(it);
}

/// Somebody else deleted a node of ours.
void Locks::taken(Number seat, ClaimId claim) {
  const auto it = by_claim_.find({seat, claim});
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
    for (const auto& sharer : hold->sharers) {
      around_.outbox.add([listener = listener_, lease = hold->lease, request = sharer.request] {
        listener->hold_force_released(lease, request);
      });
    }
  }
  drop(number, {.code = Errc::lease_lost,
                .detail = hold->folder + ": somebody deleted what we had there; ask again"});
}

std::string Locks::value_of(const Hold& hold) const {
  return write_value({.owner = hold.spec->owner,
                      .lease = hold.lease,
                      .request = hold.sharers.front().request,
                      .capacity = hold.permits ? hold.permits->capacity : 0,
                      .metadata = hold.spec->metadata});
}

Locks::Hold* Locks::find(Number number) {
  const auto it = holds_.find(number);
  return it == holds_.end() ? nullptr : it->second.get();
}

Session* Locks::session_of(const Hold& hold) {
  return seats_.at(hold.seat).session.get();
}

}  // namespace tenure::backends::zookeeper
