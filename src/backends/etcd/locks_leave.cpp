#include <algorithm>
#include <utility>

#include "backends/etcd/locks.hpp"

// How places end: given back, called off, lost.

namespace tenure::backends::etcd {
namespace {

/// Age at which a place is watched, in case another client removes its key. Most places have ended
/// before.
constexpr std::chrono::milliseconds watch_own_after{100};

Error wait_lost() {
  return {.code = Errc::lease_lost, .detail = "the lease of this wait ended; ask again"};
}

}  // namespace

void Locks::settle(Place& place, Result<Granted> answer) {
  if (auto done = std::exchange(place.done, nullptr)) {
    done(std::move(answer));
  }
}

// Giving back.

void Locks::release(const ReleaseRequest& request, Backend::Done<void> done) {
  const RequestKey own{.lease = request.lease, .request = request.acquired};
  auto id = own;
  if (const auto it = reentries_.find(own); it != reentries_.end()) {
    id = it->second;
    reentries_.erase(it);
  }
  auto* const place = find(id);
  if (place == nullptr || place->stage != Stage::held) {
    done(fail(Errc::not_held));
    return;
  }
  std::erase(place->reentries, own);
  if (--place->count > 0) {
    done({});
    return;
  }
  remove_key(id, std::move(done));
}

/// Removes the key, and asks in the same transaction who of ours may go then.
void Locks::remove_key(const RequestKey& id, Backend::Done<void> done) {
  auto& place = places_.at(id);
  unfollow(id, place);
  place.stage = Stage::leaving;
  rooms_.watches.remove(std::exchange(place.own_watch, 0));
  Part part{.folder = place.spot.folder, .removes = true};
  part.operations.push_back(remove(place.spot));
  auto asked = lookers(place.spot.key);
  const bool is_together = look_together(asked);
  if (!is_together) {
    const auto firsts = lookers(place.spot.folder);
    asked.insert(asked.end(), firsts.begin(), firsts.end());
  }
  part.is_awaited = !asked.empty();
  for (const auto& next : asked) {
    auto& follower = places_.at(next);
    follower.is_looking = true;
    follower.is_stale = false;
    if (!is_together) {
      part.operations.push_back(list(follower.spot.folder, follower.spot.revision, follower.view));
    }
  }
  if (is_together) {
    part.operations.push_back(list_from_front(place.spot.folder, 0, 0));
  }
  part.answered = [this, id, is_together, lease = place.request.lease, spot = place.spot,
                   may_come_late = place.may_come_late, asked = std::move(asked),
                   done = std::move(done)](const Answer& answer) mutable {
    erase(id);
    if (!answer) {
      sweep(lease, spot);
    } else if (may_come_late) {
      watch_for_late(lease, spot, answer->revision);
    }
    // First who waited: it is his turn.
    if (answer && is_together) {
      all_seen(spot.folder, asked, *answer, answer->responses[1]->range());
    } else {
      each_seen(asked, answer);
    }
    key_gone(spot.key);
    removed(answer, std::move(done));
  };
  rooms_.convoy.add(std::move(part));
}

void Locks::each_seen(const std::vector<RequestKey>& ids, const Answer& answer) {
  for (std::size_t n = 0; n < ids.size(); ++n) {
    auto* const place = find(ids[n]);
    if (place == nullptr || place->stage == Stage::leaving) {
      continue;
    }
    place->is_looking = false;
    if (answer) {
      seen(ids[n], answer->responses[n + 1]->range(), answer->revision);
    } else {
      look(ids[n]);  // What happened meanwhile was left to this answer.
    }
  }
}

void Locks::removed(const Answer& answer, Backend::Done<void> done) {
  if (!answer) {
    done(std::unexpected(answer.error()));
  } else if (answer->responses[0]->txn().succeeded()) {
    done({});
  } else if (answer->is_retry) {
    done(fail(Errc::unavailable, "the connection broke while it was given back; it is free now"));
  } else {
    done(fail(Errc::not_held));
  }
}

// Calling off.

void Locks::abandon(LeaseId lease, RequestId request) {
  const RequestKey id{.lease = lease, .request = request};
  auto* const place = find(id);
  if (place == nullptr || place->stage == Stage::held || place->stage == Stage::leaving ||
      std::exchange(place->is_called_off, true)) {
    return;
  }
  if (place->stage == Stage::starting) {
    auto taken = take(id);
    settle(taken, fail(Errc::cancelled));
  } else if (place->stage == Stage::waiting) {
    leave(id, {.code = Errc::cancelled});
  } else if (!rooms_.connection.is_up()) {
    // Nobody is there to say whether it was granted meanwhile. Told now, and cleaned up later.
    settle(*place, fail(Errc::cancelled));
  }
  // Else the answer that is on its way decides.
}

void Locks::leave(const RequestKey& id, Error why) {
  auto& place = places_.at(id);
  if (!rooms_.connection.is_up() || is_ending_) {
    settle(place, std::unexpected(why));
  }
  // The caller hears of it when nothing is left behind.
  auto done = std::exchange(place.done, nullptr);
  remove_key(id, [done = std::move(done), why = std::move(why)](const Result<void>&) mutable {
    if (done) {
      done(std::unexpected(std::move(why)));
    }
  });
}

/// Nobody knows whether the key is there, or will be. Its lease may be used on, so it must go.
void Locks::sweep(LeaseId lease, const Spot& spot) {
  remove_any(spot, [this, lease, spot](const Answer& answer) {
    if (answer) {
      watch_for_late(lease, spot, answer->revision);
    }
  });
}

/// The key, whenever it was made.
void Locks::remove_any(Spot spot, std::move_only_function<void(const Answer&)> answered) {
  if (is_ending_) {
    return;  // With its lease.
  }
  spot.revision = 0;
  Part part{.folder = spot.folder, .removes = true, .outlives_refusal = true};
  part.operations.push_back(remove(spot));
  part.answered = std::move(answered);
  rooms_.convoy.add(std::move(part));
}

/// It was asked for more than once, since an answer was lost. A member that hung may still bring
/// the first question when the key is gone, and make it again: nobody would remove it while its
/// lease lives.
void Locks::watch_for_late(LeaseId lease, const Spot& spot, std::int64_t revision) {
  if (is_ending_ || !rooms_.leases.has(lease)) {
    return;
  }
  const auto told = [this, lease, spot](const Result<KeyWatches::Seen>& what) {
    if (what && *what == KeyWatches::Seen::changed) {
      remove_any(spot, [](const Answer&) {});
    } else if (what && *what == KeyWatches::Seen::forgotten) {
      sweep(lease, spot);
    }
  };
  late_[lease].push_back(rooms_.watches.add(
      {.key = spot.key, .from = revision + 1, .of = KeyWatches::Of::changes}, told));
}

void Locks::give_up(const RequestKey& id, const Error& why) {
  auto place = take(id);
  if (why == Errc::lease_lost) {
    settle(place, std::unexpected(why));
    if (place.stage != Stage::starting) {
      lease_lost(place.request.lease);
      key_gone(place.spot.key);
    }
    return;
  }
  const bool is_known =
      (why == Errc::would_block || why == Errc::cancelled) && !place.may_come_late;
  if (!is_known && place.stage != Stage::starting) {
    sweep(place.request.lease, place.spot);
  }
  settle(place, std::unexpected(why));
  key_gone(place.spot.key);
}

Locks::Place Locks::take(const RequestKey& id) {
  const auto it = places_.find(id);
  unfollow(id, it->second);
  auto place = std::move(it->second);
  places_.erase(it);
  rooms_.watches.remove(std::exchange(place.own_watch, 0));
  for (const auto& other : place.reentries) {
    reentries_.erase(other);
  }
  by_key_.erase(place.spot.key);
  if (const auto folder = folders_.find(place.spot.folder); folder != folders_.end()) {
    folder->second.places.erase(place.spot.revision);
    if (folder->second.places.empty() && !folder->second.is_looking) {
      folders_.erase(folder);
    }
  }
  if (const auto lease = by_lease_.find(id.lease); lease != by_lease_.end()) {
    std::erase(lease->second, id);
    if (lease->second.empty()) {
      by_lease_.erase(lease);
    }
  }
  return place;
}

void Locks::erase(const RequestKey& id) {
  if (places_.contains(id)) {
    (void)take(id);
  }
}

// What others do to our keys.

void Locks::watch_own_soon(const RequestKey& id) {
  timers_.call_at(net::TimerQueue::Clock::now() + watch_own_after, [this, id] {
    if (auto* const place = find(id); place != nullptr && place->own_watch == 0 &&
                                      place->spot.revision > 0 && place->stage != Stage::leaving) {
      watch_own(id);
    }
  });
}

void Locks::watch_own(const RequestKey& id) {
  auto& place = places_.at(id);
  place.own_watch = rooms_.watches.add(
      {.key = place.spot.key, .from = std::max(place.seen, place.spot.revision) + 1},
      [this, id](const Result<KeyWatches::Seen>& what) { own_told(id, what); });
}

void Locks::own_told(const RequestKey& id, const Result<KeyWatches::Seen>& what) {
  auto* const place = find(id);
  if (place == nullptr || place->stage == Stage::leaving) {
    return;
  }
  if (what && *what == KeyWatches::Seen::gone) {
    own_gone(id);
    return;
  }
  place->own_watch = 0;
  if (!what) {
    return;  // We may not watch; renewals tell of most losses, too.
  }
  Part part;
  part.operations.push_back(look_at(place->spot.key));
  part.answered = [this, id](const Answer& answer) {
    auto* const looked = find(id);
    if (!answer || looked == nullptr || looked->stage == Stage::leaving) {
      return;
    }
    const auto& found = answer->responses[0]->range();
    if (found.kvs_size() == 0 || found.kvs(0).create_revision() != looked->spot.revision) {
      own_gone(id);
      return;
    }
    looked->seen = std::max(looked->seen, answer->revision);
    watch_own(id);
  };
  rooms_.convoy.add(std::move(part));
}

void Locks::own_gone(const RequestKey& id) {
  auto place = take(id);
  const auto lease = place.request.lease;
  std::vector<RequestId> holds;
  if (place.stage == Stage::held) {
    holds.push_back(place.request.request);
    for (const auto& other : place.reentries) {
      holds.push_back(other.request);
    }
  }
  settle(place, fail(Errc::lease_lost,
                     "its place in the queue is gone: the lease has ended, or an operator removed "
                     "it; ask again"));
  for (const auto hold : holds) {
    if (listener_ != nullptr) {
      listener_->hold_force_released(lease, hold);
    }
  }
  // If it was the lease that ended, all under it are to know.
  rooms_.leases.check(lease);
  key_gone(place.spot.key);
}

// Leases.

std::vector<RequestKey> Locks::places_of(LeaseId lease) const {
  const auto it = by_lease_.find(lease);
  return it == by_lease_.end() ? std::vector<RequestKey>() : it->second;
}

std::vector<std::string> Locks::drop(LeaseId lease, const Error& why) {
  std::vector<std::string> keys;
  for (const auto& id : places_of(lease)) {
    auto place = take(id);
    keys.push_back(place.spot.key);
    settle(place, std::unexpected(why));
  }
  if (const auto late = late_.extract(lease)) {
    for (const auto watch : late.mapped()) {
      rooms_.watches.remove(watch);
    }
  }
  return keys;
}

void Locks::revoke(LeaseId lease, Backend::Done<void> done) {
  rooms_.leases.revoke(lease, [this, keys = drop(lease, wait_lost()),
                               done = std::move(done)](Result<void> result) mutable {
    for (const auto& key : keys) {
      key_gone(key);
    }
    done(std::move(result));
  });
}

void Locks::lease_lost(LeaseId lease) {
  rooms_.leases.forget(lease);
  const auto keys = drop(lease, wait_lost());
  if (listener_ != nullptr) {
    listener_->lease_lost(lease);
  }
  for (const auto& key : keys) {
    key_gone(key);
  }
}

void Locks::fail_waits(const Error& why) {
  std::vector<RequestKey> waiting;
  for (const auto& [id, place] : places_) {
    if (place.stage == Stage::waiting) {
      waiting.push_back(id);
    }
  }
  for (const auto& id : waiting) {
    if (find(id) != nullptr) {
      give_up(id, why);
    }
  }
}

void Locks::end() {
  is_ending_ = true;
  listener_ = nullptr;
  timers_.clear();
  rooms_.watches.clear();
  std::vector<RequestKey> all;
  for (const auto& [id, place] : places_) {
    all.push_back(id);
  }
  for (const auto& id : all) {
    if (auto* const place = find(id)) {
      settle(*place, std::unexpected(client_closed()));
    }
  }
  for (const auto lease : rooms_.leases.all()) {
    revoke(lease, [](const Result<void>&) {});
  }
}

}  // namespace tenure::backends::etcd
