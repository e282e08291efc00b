#include <algorithm>
#include <utility>

#include <absl/container/flat_hash_set.h>

#include "backends/etcd/locks.hpp"

// Behind whom a place waits, and what happens when that one moves.

namespace tenure::backends::etcd {
namespace {

/// More than so many look together: one list of all, instead of one for each.
constexpr std::size_t look_alone_max = 4;

}  // namespace

void Locks::wait_behind(const RequestKey& id, const Behind& behind) {
  auto& place = places_.at(id);
  if (place.is_called_off || place.request.queue == Queue::skip) {
    leave(id, {.code = place.is_called_off ? Errc::cancelled : Errc::would_block});
    return;
  }
  place.stage = Stage::waiting;
  const auto key = behind.is_first ? place.spot.folder : behind.key;
  if (place.behind != key) {
    unfollow(id, place);
    place.behind = key;
    targets_[key].waiting.push_back(id);
    // What was told already, and after what we have seen, is not told again.
    place.is_stale = place.is_stale || targets_[key].told > place.seen;
  }
  auto& target = targets_.at(key);
  const auto wanted = behind.wakes_on_change ? KeyWatches::Of::changes : KeyWatches::Of::deletes;
  if (!by_key_.contains(key)) {
    if (target.watch != 0 && target.of == KeyWatches::Of::deletes && wanted != target.of) {
      rooms_.watches.remove(std::exchange(target.watch, 0));
    }
    if (target.watch == 0) {
      target.of = wanted;
      watch_target(key, target, place.seen + 1);
    }
  }
  if (std::exchange(place.is_stale, false)) {
    look(id);
  }
}

void Locks::watch_target(const std::string& key, Target& target, std::int64_t from) {
  const bool is_folder = key.ends_with('/');
  target.watch = rooms_.watches.add(
      {.key = key, .end = is_folder ? end_of(key) : std::string(), .from = from, .of = target.of},
      [this, key](const Result<KeyWatches::Seen>& what) { target_told(key, what); });
}

void Locks::target_told(const std::string& key, const Result<KeyWatches::Seen>& what) {
  const auto it = targets_.find(key);
  if (it == targets_.end()) {
    return;
  }
  if (!what) {
    it->second.watch = 0;
    for (const auto& id : std::vector(it->second.waiting)) {
      if (find(id) != nullptr) {
        leave(id, what.error());
      }
    }
    return;
  }
  const auto told = rooms_.watches.reached(it->second.watch);
  it->second.told = told;
  const bool is_forgotten = *what == KeyWatches::Seen::forgotten;
  if (is_forgotten) {
    it->second.watch = 0;
  }
  key_gone(key, is_forgotten ? 0 : told);
}

void Locks::unfollow(const RequestKey& id, Place& place) {
  const auto it = targets_.find(std::exchange(place.behind, {}));
  if (it == targets_.end()) {
    return;
  }
  std::erase(it->second.waiting, id);
  if (it->second.waiting.empty()) {
    rooms_.watches.remove(it->second.watch);
    targets_.erase(it);
  }
}

/// It is gone, or lets others in: who waits for it looks.
void Locks::key_gone(const std::string& key, std::int64_t told) {
  const auto it = targets_.find(key);
  if (it == targets_.end()) {
    return;
  }
  const auto waiting = it->second.waiting;
  const auto free = lookers(key);
  const bool is_together = look_together(free);
  for (const auto& id : waiting) {
    auto& place = places_.at(id);
    if (place.stage != Stage::waiting) {
      continue;
    }
    if (!is_together) {
      look(id, told);
    } else if (place.is_looking) {
      place.is_stale = true;
    }
  }
  if (is_together) {
    look_all(places_.at(free.front()).spot.folder, free, 0);
  }
}

/// Who waits for it and does not look at the moment.
std::vector<RequestKey> Locks::lookers(const std::string& key) {
  std::vector<RequestKey> ids;
  if (const auto it = targets_.find(key); it != targets_.end()) {
    std::ranges::copy_if(it->second.waiting, std::back_inserter(ids), [this](const RequestKey& id) {
      const auto& place = places_.at(id);
      return place.stage == Stage::waiting && !place.is_looking;
    });
  }
  return ids;
}

bool Locks::look_together(const std::vector<RequestKey>& ids) const {
  return ids.size() > look_alone_max && std::ranges::all_of(ids, [this](const RequestKey& id) {
           return std::holds_alternative<LockMode>(places_.at(id).claim);
         });
}

void Locks::look_with_readers(const RequestKey& id) {
  const auto& folder = places_.at(id).spot.folder;
  folders_.at(folder).readers.push_back(id);
  if (!folders_.at(folder).is_looking) {
    look_at_readers(folder);
  }
}

void Locks::look_at_readers(const std::string& folder) {
  auto& known = folders_.at(folder);
  auto since = known.no_writer_until;
  std::vector<RequestKey> ids;
  for (const auto& id : std::exchange(known.readers, {})) {
    if (const auto* const place = find(id); place != nullptr && place->stage == Stage::asked) {
      ids.push_back(id);
      since = std::min(since, place->spot.revision - 1);
    }
  }
  known.is_looking = !ids.empty();
  if (!ids.empty()) {
    look_all(folder, ids, since);
  } else if (known.places.empty()) {
    folders_.erase(folder);
  }
}

void Locks::look_all(const std::string& folder, const std::vector<RequestKey>& ids,
                     std::int64_t since) {
  for (const auto& id : ids) {
    places_.at(id).is_looking = true;
    places_.at(id).is_stale = false;
  }
  Part part{.folder = folder};
  part.operations.push_back(list_from_front(folder, since, 0));
  part.answered = [this, folder, ids](const Answer& answer) {
    if (answer) {
      all_seen(folder, ids, *answer, answer->responses[0]->range());
    } else {
      for (const auto& id : ids) {
        if (auto* const place = find(id); place != nullptr && place->stage != Stage::leaving) {
          place->is_looking = false;
          leave(id, answer.error());
        }
      }
    }
    if (folders_.contains(folder)) {
      look_at_readers(folder);
    }
  };
  rooms_.convoy.add(std::move(part));
}

/// By one list of all, from the front, what many lists would say. REQUIRES: modes, no permits.
void Locks::all_seen(const std::string& folder, const std::vector<RequestKey>& ids,
                     const Part::Answer& answer, const pb::RangeResponse& list) {
  absl::flat_hash_set<RequestKey> missing(ids.begin(), ids.end());
  std::vector<std::pair<RequestKey, Turn>> turns;
  std::string last;
  std::string last_writer;
  for (const auto& one : list.kvs()) {
    const auto own = by_key_.find(one.key());
    if (own != by_key_.end() && missing.erase(own->second) > 0) {
      const auto* const place = find(own->second);
      const auto* const mode = std::get_if<LockMode>(&place->claim);
      const bool is_reader = mode != nullptr && *mode == LockMode::shared;
      const auto& before = is_reader ? last_writer : last;
      turns.emplace_back(own->second, before.empty()
                                          ? Turn(MayGo{})
                                          : Behind{.key = before, .wakes_on_change = is_reader});
    }
    if (!is_place_in(folder, one.key())) {
      continue;
    }
    last = one.key();
    const auto claim = record_from(one.value()).claim;
    const auto* const mode = std::get_if<LockMode>(&claim);
    if (mode == nullptr || *mode != LockMode::shared) {
      last_writer = one.key();
    }
  }
  const auto is_here = [](const Place* place) {
    return place != nullptr && (place->stage == Stage::waiting || place->stage == Stage::asked);
  };
  for (const auto& [id, turn] : turns) {
    if (auto* const place = find(id); is_here(place)) {
      place->is_looking = false;
      place->seen = answer.revision;
      decide(id, turn, false);
    }
  }
  for (const auto& id : missing) {
    if (is_here(find(id))) {
      own_gone(id);
    }
  }
}

}  // namespace tenure::backends::etcd
