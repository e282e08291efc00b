#include "backends/etcd/locks.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace tenure::backends::etcd {
namespace {

/// Of one that does not wait: so often others may come and go between a look and the attempt.
constexpr std::uint32_t tries_max = 16;
/// By how much more is asked for when a list was too short.
constexpr std::int64_t wider = 8;
constexpr std::int64_t holders_max = 1000;

/// Ranges and other modes are not promised, so nobody asks for them.
Claim claim_of(const Item& item) {
  if (const auto* permits = std::get_if<Permits>(&item.claim)) {
    return *permits;
  }
  return std::get<LockMode>(item.claim);
}

bool is_shared(const Claim& claim) {
  const auto* const mode = std::get_if<LockMode>(&claim);
  return mode != nullptr && *mode == LockMode::shared;
}

std::string value_of(const AcquireSpec& spec, const Claim& claim) {
  return text_of(Record{.claim = claim, .owner = spec.owner, .metadata = spec.metadata});
}

}  // namespace

Locks::Locks(boost::asio::io_context& loop, std::string root, Rooms rooms)
    : root_(std::move(root)), rooms_(rooms), timers_(loop) {}

Locks::Place* Locks::find(const RequestKey& id) {
  const auto it = places_.find(id);
  return it == places_.end() ? nullptr : &it->second;
}

// Asking.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  const RequestKey id{.lease = request.lease, .request = request.request};
  const auto& item = request.spec->items.front();
  const auto claim = claim_of(item);
  auto folder = folder_of(root_, item.name);
  if (reenter(request, folder, claim, done)) {
    return;
  }
  Place place{.request = std::move(request), .claim = claim, .view = view_for(claim)};
  place.spot.key = key_of(folder, place.request.lease, place.request.request);
  place.spot.folder = std::move(folder);
  place.spot.lease = number_of(place.request.lease);
  if (waits_for_itself(place)) {
    const bool would_wait = place.request.queue == Queue::wait;
    done(would_wait ? fail(Errc::deadlock, "the lease waits for itself") : fail(Errc::would_block));
    return;
  }
  place.done = std::move(done);
  const auto lease = place.request.lease;
  by_key_.emplace(place.spot.key, id);
  by_lease_[lease].push_back(id);
  places_.insert_or_assign(id, std::move(place));
  rooms_.leases.when_granted(lease, [this, id](const Result<void>& granted) {
    auto* const waiting = find(id);
    if (waiting == nullptr || waiting->stage != Stage::starting) {
      return;
    }
    if (!granted) {
      give_up(id, {.code = Errc::lease_lost, .detail = granted.error().detail});
      return;
    }
    ask(id);
  });
}

bool Locks::reenter(const AcquireRequest& request, const std::string& folder, const Claim& claim,
                    Backend::Done<Granted>& done) {
  if (request.spec->self_conflict != SelfConflict::reenter ||
      !std::holds_alternative<LockMode>(claim)) {
    return false;
  }
  for (const auto& other : places_of(request.lease)) {
    auto& place = places_.at(other);
    const bool covers = std::holds_alternative<LockMode>(place.claim) &&
                        (is_shared(claim) || !is_shared(place.claim));
    if (place.stage == Stage::held && place.spot.folder == folder && covers) {
      const RequestKey id{.lease = request.lease, .request = request.request};
      place.reentries.push_back(id);
      reentries_.emplace(id, other);
      done(Granted{.token = FencingToken{static_cast<std::uint64_t>(place.spot.revision)},
                   .count = ++place.count});
      return true;
    }
  }
  return false;
}

bool Locks::waits_for_itself(const Place& place) {
  const auto* const mine = std::get_if<Permits>(&place.claim);
  std::uint64_t taken = mine == nullptr ? 0 : mine->wanted;
  for (const auto& id : places_of(place.request.lease)) {
    const auto& other = places_.at(id);
    if (other.spot.folder != place.spot.folder || other.stage == Stage::leaving) {
      continue;
    }
    const auto* const theirs = std::get_if<Permits>(&other.claim);
    if (mine != nullptr && theirs != nullptr) {
      taken += theirs->wanted;
    } else if (!is_shared(place.claim) || !is_shared(other.claim)) {
      return true;
    }
  }
  return mine != nullptr && taken > mine->capacity;
}

void Locks::ask(const RequestKey& id) {
  auto& place = places_.at(id);
  place.stage = Stage::asked;
  const auto value = value_of(*place.request.spec, place.claim);
  Part part{.folder = place.spot.folder, .makes = true, .follows_removals = true};
  if (place.request.queue == Queue::wait) {
    // With one of ours in front there is no need to know who else is; readers behind one who reads
    // look together.
    auto view = place.view;
    const auto folder = folders_.find(place.spot.folder);
    const bool is_read =
        is_shared(place.claim) && folder != folders_.end() && folder->second.no_writer_until > 0;
    view.limit = is_read || one_of_ours_before(place) ? 0 : view.limit;
    part.operations.push_back(join(place.spot, value, view));
    part.answered = [this, id](const Answer& answer) { join_answered(id, answer); };
  } else {
    part.operations.push_back(join_unless_changed(place.spot, value, place.seen, place.view));
    part.answered = [this, id](const Answer& answer) { try_answered(id, answer); };
  }
  rooms_.convoy.add(std::move(part));
}

void Locks::join_answered(const RequestKey& id, const Answer& answer) {
  auto* const place = find(id);
  if (place == nullptr) {
    return;  // Its lease has ended, and its key with it.
  }
  if (!answer) {
    give_up(id, answer.error());
    return;
  }
  watch_own_soon(id);
  place->may_come_late = answer->is_retry;
  const auto& txn = answer->responses[0]->txn();
  if (!txn.succeeded()) {
    // It was there: the answer to an earlier question was lost.
    const auto& found = txn.responses(0).range();
    place->position = 1;
    if (found.kvs_size() > 0) {
      place_known(id, found.kvs(0).create_revision());
    }
    look(id);
    return;
  }
  place_known(id, answer->revision);
  place->seen = answer->revision;
  if (txn.responses_size() > 1) {
    const auto& list = txn.responses(1).range();
    place->position = list.count() > 0 ? static_cast<std::size_t>(list.count()) - 1 : 0;
    seen(id, list, answer->revision);
  } else if (const auto behind = one_of_ours_before(*place)) {
    const auto& ours = folders_.at(place->spot.folder).places;
    const auto before = std::prev(ours.find(place->spot.revision));
    place->position = places_.at(before->second).position + 1;
    wait_behind(id, *behind);
  } else if (is_shared(place->claim)) {
    place->position = 1;
    look_with_readers(id);
  } else {
    place->position = 1;
    look(id);
  }
}

/// Somebody of ours who is in the way for sure, or whom he waits for.
std::optional<Behind> Locks::one_of_ours_before(const Place& place) const {
  const auto it = folders_.find(place.spot.folder);
  if (it == folders_.end() || std::holds_alternative<Permits>(place.claim)) {
    return std::nullopt;
  }
  const auto& ours = it->second.places;
  const auto after = place.spot.revision == 0 ? ours.end() : ours.find(place.spot.revision);
  if (after == ours.begin()) {
    return std::nullopt;
  }
  const auto& other = places_.at(std::prev(after)->second);
  const bool stays = other.stage == Stage::waiting || other.stage == Stage::held;
  if (!stays || std::holds_alternative<Permits>(other.claim)) {
    return std::nullopt;
  }
  if (!is_shared(place.claim) || !is_shared(other.claim)) {
    return Behind{.key = other.spot.key, .wakes_on_change = is_shared(place.claim)};
  }
  // One who looks does so because that one has moved: nobody will be told of it again.
  return other.stage == Stage::waiting && !other.behind.empty() && !other.is_looking
             ? std::optional(Behind{.key = other.behind, .wakes_on_change = true})
             : std::nullopt;
}

void Locks::place_known(const RequestKey& id, std::int64_t revision) {
  auto& place = places_.at(id);
  place.spot.revision = revision;
  folders_[place.spot.folder].places.insert_or_assign(revision, id);
}

void Locks::try_answered(const RequestKey& id, const Answer& answer) {
  auto* const place = find(id);
  if (place == nullptr) {
    return;
  }
  if (!answer) {
    give_up(id, answer.error());
    return;
  }
  place->may_come_late = place->may_come_late || answer->is_retry;
  const auto& txn = answer->responses[0]->txn();
  if (txn.succeeded()) {
    place_known(id, answer->revision);
    place->seen = answer->revision;
    watch_own_soon(id);
    grant(id, false);
    return;
  }
  if (const auto& found = txn.responses(0).range(); found.kvs_size() > 0) {
    // It was there: likewise.
    place_known(id, found.kvs(0).create_revision());
    look(id);
    return;
  }
  const auto& list = txn.responses(1).range();
  const auto turn =
      turn_of(place->claim, place->spot.folder, {.keys = list.kvs(), .has_more = list.more()});
  if (const auto* misused = std::get_if<Misused>(&turn)) {
    give_up(id, {.code = Errc::invalid_argument, .detail = misused->why});
    return;
  }
  const bool may_go = std::holds_alternative<MayGo>(turn);
  if (std::holds_alternative<Unsure>(turn)) {
    place->view.limit *= wider;
  }
  const bool is_over = std::holds_alternative<Behind>(turn) || ++place->tries > tries_max;
  if (is_over || place->is_called_off) {
    give_up(id, {.code = place->is_called_off ? Errc::cancelled : Errc::would_block});
    return;
  }
  place->seen = may_go ? answer->revision : 0;
  ask(id);
}

// Waiting.

// By what one member knows: who was before us never comes back, so an old list only makes us wait
// for somebody who has gone, and then we look again. Our own key may have been removed since, as it
// may just after the answer; the watch of it tells. What all agree on would have to wait for the
// write that is on its way, mostly that of the holder before, who queues again.
void Locks::look(const RequestKey& id, std::int64_t told) {
  auto& place = places_.at(id);
  if (std::exchange(place.is_looking, true)) {
    place.is_stale = true;
    return;
  }
  place.is_stale = false;
  Part part;
  part.operations.push_back(list(place.spot.folder, place.spot.revision, place.view));
  part.operations.front().mutable_range()->set_serializable(told > 0);
  part.answered = [this, id, told](const Answer& answer) {
    auto* const looking = find(id);
    if (looking == nullptr || looking->stage == Stage::leaving) {
      return;
    }
    looking->is_looking = false;
    if (!answer) {
      leave(id, answer.error());
      return;
    }
    if (answer->revision < told) {
      look(id);  // Another member answered, which is behind.
      return;
    }
    seen(id, answer->responses[0]->range(), answer->revision);
  };
  rooms_.convoy.add(std::move(part));
}

void Locks::seen(const RequestKey& id, const pb::RangeResponse& list, std::int64_t revision) {
  auto& place = places_.at(id);
  const auto& keys = list.kvs();
  // Of a lock below this one, made in the same transaction.
  int own = 0;
  while (own < keys.size() && !is_place_in(place.spot.folder, keys[own].key())) {
    ++own;
  }
  if (own == keys.size() && list.more()) {
    place.view.limit *= wider;
    look(id);
    return;
  }
  const bool is_there =
      own < keys.size() && keys[own].key() == place.spot.key && keys[own].create_revision() > 0 &&
      (place.spot.revision == 0 || keys[own].create_revision() == place.spot.revision);
  if (!is_there) {
    own_gone(id);
    return;
  }
  place_known(id, keys[own].create_revision());
  place.seen = revision;
  decide(id,
         turn_of(place.claim, place.spot.folder,
                 {.keys = keys, .first = own + 1, .has_more = list.more()}),
         list.count() > keys.size());
}

void Locks::decide(const RequestKey& id, const Turn& turn, bool is_anybody_behind) {
  auto& place = places_.at(id);
  if (std::holds_alternative<MayGo>(turn)) {
    grant(id, is_anybody_behind);
  } else if (const auto* behind = std::get_if<Behind>(&turn)) {
    wait_behind(id, *behind);
  } else if (const auto* misused = std::get_if<Misused>(&turn)) {
    leave(id, {.code = Errc::invalid_argument,
               .detail = '"' + place.request.spec->items.front().name + "\": " + misused->why});
  } else if (const auto ours = one_of_ours_before(place)) {
    // The list was too short. Of many who came at once each would ask for a longer one.
    wait_behind(id, *ours);
  } else {
    place.view.limit *= wider;
    look(id);
  }
}

void Locks::grant(const RequestKey& id, bool is_anybody_behind) {
  auto& place = places_.at(id);
  if (place.done == nullptr) {
    leave(id, {.code = Errc::cancelled});  // Told so already.
    return;
  }
  const bool has_waited = place.stage == Stage::waiting;
  unfollow(id, place);
  place.stage = Stage::held;
  place.is_looking = false;
  if (is_shared(place.claim)) {
    auto& known = folders_.at(place.spot.folder).no_writer_until;
    known = std::max(known, place.spot.revision);
  }
  const bool is_permits = std::holds_alternative<Permits>(place.claim);
  if (is_permits && has_waited && is_anybody_behind) {
    // Who is behind us waits for us to leave or to be let in, and only etcd can tell him.
    Part part;
    part.operations.push_back(rewrite(place.spot, value_of(*place.request.spec, place.claim)));
    part.answered = [](const Answer&) {};
    rooms_.convoy.add(std::move(part));
  }
  if (is_permits && has_waited) {
    key_gone(place.spot.key);
  }
  settle(place,
         Granted{.token = FencingToken{static_cast<std::uint64_t>(place.spot.revision)},
                 .queue_position = has_waited ? std::max<std::size_t>(1, place.position) : 0});
}

// Others.

void Locks::downgrade(const DowngradeRequest& request, Backend::Done<void> done) {
  const RequestKey id{.lease = request.lease, .request = request.acquired};
  auto* const place = find(id);
  if (place == nullptr || place->stage != Stage::held) {
    done(fail(Errc::not_held));
    return;
  }
  Part part;
  part.operations.push_back(
      rewrite(place->spot, value_of(*place->request.spec, Claim(request.mode))));
  part.answered = [this, id, mode = request.mode,
                   done = std::move(done)](const Answer& answer) mutable {
    if (!answer) {
      done(std::unexpected(answer.error()));
      return;
    }
    if (!answer->responses[0]->txn().succeeded()) {
      done(fail(Errc::not_held));
      return;
    }
    if (auto* const weakened = find(id)) {
      weakened->claim = mode;
      key_gone(weakened->spot.key);
    }
    done({});
  };
  rooms_.convoy.add(std::move(part));
}

void Locks::holders(std::string_view name, Backend::Done<std::vector<Holder>> done) {
  const auto folder = folder_of(root_, name);
  Part part{.folder = folder, .follows_removals = true};
  part.operations.push_back(list_from_front(folder, 0, holders_max));
  part.answered = [folder, done = std::move(done)](const Answer& answer) mutable {
    if (!answer) {
      done(std::unexpected(answer.error()));
      return;
    }
    done(holders_in(folder, answer->responses[0]->range()));
  };
  rooms_.convoy.add(std::move(part));
}

}  // namespace tenure::backends::etcd
