#include <algorithm>
#include <utility>

#include <absl/container/flat_hash_set.h>

#include "backends/etcd/locks.hpp"

// Predecessors of a waiting entry, and their changes.

namespace tenure::backends::etcd {
namespace {

/// Number of waiters above which one list of the whole queue replaces one list per waiter.
constexpr std::size_t list_alone_max = 4;

}  // namespace

// A key of this client needs no watch: its release lists the queue for the waiter. A watch for
// deletions is replaced if one waiter needs every change.
void Locks::wait_for(const RequestKey& id, const WaitFor& wait_target) {
  auto& entry = entries_.at(id);
  if (entry.is_cancelled || entry.request.queue == Queue::skip) {
    leave(id, {.code = entry.is_cancelled ? Errc::cancelled : Errc::would_block});
    return;
  }
  entry.stage = Stage::waiting;
  const auto key = wait_target.is_first ? entry.queue_key.folder : wait_target.key;
  if (entry.waits_for != key) {
    stop_waiting(id, entry);
    entry.waits_for = key;
    targets_[key].waiting.push_back(id);
    // A change reported after the latest list is not reported again.
    entry.needs_relist =
        entry.needs_relist || targets_[key].notified_revision > entry.listed_revision;
  }
  auto& target = targets_.at(key);
  const auto wanted =
      wait_target.wakes_on_change ? KeyWatches::Events::changes : KeyWatches::Events::deletes;
  if (!by_key_.contains(key)) {
    if (target.watch != 0 && target.events == KeyWatches::Events::deletes &&
        wanted != target.events) {
      dependencies_.watches.remove(std::exchange(target.watch, 0));
    }
    if (target.watch == 0) {
      target.events = wanted;
      watch_target(key, target, entry.listed_revision + 1);
    }
  }
  if (std::exchange(entry.needs_relist, false)) {
    refresh(id);
  }
}

void Locks::watch_target(const std::string& key, Target& target, std::int64_t from) {
  const bool is_folder = key.ends_with('/');
  target.watch = dependencies_.watches.add(
      {.key = key,
       .end = is_folder ? end_of(key) : std::string(),
       .from = from,
       .events = target.events},
      [this, key](const Result<KeyWatches::Change>& what) { target_changed(key, what); });
}

void Locks::target_changed(const std::string& key, const Result<KeyWatches::Change>& what) {
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
  const auto notified_revision = dependencies_.watches.delivered_revision(it->second.watch);
  it->second.notified_revision = notified_revision;
  const bool is_unknown = *what == KeyWatches::Change::unknown;
  if (is_unknown) {
    it->second.watch = 0;
  }
  key_released(key, is_unknown ? 0 : notified_revision);
}

void Locks::stop_waiting(const RequestKey& id, Entry& entry) {
  const auto it = targets_.find(std::exchange(entry.waits_for, {}));
  if (it == targets_.end()) {
    return;
  }
  std::erase(it->second.waiting, id);
  if (it->second.waiting.empty()) {
    dependencies_.watches.remove(it->second.watch);
    targets_.erase(it);
  }
}

/// The key was deleted or became compatible: its waiters list the queue.
void Locks::key_released(const std::string& key, std::int64_t notified_revision) {
  const auto it = targets_.find(key);
  if (it == targets_.end()) {
    return;
  }
  const auto waiting = it->second.waiting;
  const auto free = idle_waiters(key);
  const bool is_together = should_list_together(free);
  for (const auto& id : waiting) {
    auto& entry = entries_.at(id);
    if (entry.stage != Stage::waiting) {
      continue;
    }
    if (!is_together) {
      refresh(id, notified_revision);
    } else if (entry.is_listing) {
      entry.needs_relist = true;
    }
  }
  if (is_together) {
    refresh_together(entries_.at(free.front()).queue_key.folder, free, 0);
  }
}

/// Waiters of the key without a list in flight.
std::vector<RequestKey> Locks::idle_waiters(const std::string& key) {
  std::vector<RequestKey> ids;
  if (const auto it = targets_.find(key); it != targets_.end()) {
    std::ranges::copy_if(it->second.waiting, std::back_inserter(ids), [this](const RequestKey& id) {
      const auto& entry = entries_.at(id);
      return entry.stage == Stage::waiting && !entry.is_listing;
    });
  }
  return ids;
}

bool Locks::should_list_together(const std::vector<RequestKey>& ids) const {
  return ids.size() > list_alone_max && std::ranges::all_of(ids, [this](const RequestKey& id) {
           return std::holds_alternative<LockMode>(entries_.at(id).claim);
         });
}

void Locks::refresh_with_readers(const RequestKey& id) {
  const auto& folder = entries_.at(id).queue_key.folder;
  folders_.at(folder).readers.push_back(id);
  if (!folders_.at(folder).is_listing) {
    refresh_readers(folder);
  }
}

// One list serves all readers collected so far. It starts at the last revision known to have no
// writer before it, so that its size does not grow with the number of readers.
void Locks::refresh_readers(const std::string& folder) {
  auto& known = folders_.at(folder);
  auto since = known.no_writer_until;
  std::vector<RequestKey> ids;
  for (const auto& id : std::exchange(known.readers, {})) {
    if (const auto* const entry = find(id); entry != nullptr && entry->stage == Stage::enqueuing) {
      ids.push_back(id);
      since = std::min(since, entry->queue_key.revision - 1);
    }
  }
  known.is_listing = !ids.empty();
  if (!ids.empty()) {
    refresh_together(folder, ids, since);
  } else if (known.entries.empty()) {
    folders_.erase(folder);
  }
}

void Locks::refresh_together(const std::string& folder, const std::vector<RequestKey>& ids,
                             std::int64_t since) {
  for (const auto& id : ids) {
    entries_.at(id).is_listing = true;
    entries_.at(id).needs_relist = false;
  }
  TxnPart part{.folder = folder};
  part.operations.push_back(list_from_front(folder, since, 0));
  part.on_reply = [this, folder, ids](const Outcome& answer) {
    if (answer) {
      listed_together(folder, ids, *answer, answer->responses[0]->range());
    }
    for (const auto& id : answer ? std::vector<RequestKey>() : ids) {
      if (auto* const entry = find(id); entry != nullptr && entry->stage != Stage::leaving) {
        entry->is_listing = false;
        leave(id, answer.error());
      }
    }
    if (folders_.contains(folder)) {
      refresh_readers(folder);
    }
  };
  dependencies_.batcher.add(std::move(part));
}

/// Applies one list of the whole queue to many waiters. REQUIRES: modes, no permits.
void Locks::listed_together(const std::string& folder, const std::vector<RequestKey>& ids,
                            const TxnPart::Reply& answer, const pb::RangeResponse& list) {
  absl::flat_hash_set<RequestKey> missing(ids.begin(), ids.end());
  std::vector<std::pair<RequestKey, Admission>> admissions;
  std::string last;
  std::string last_writer;
  for (const auto& one : list.kvs()) {
    const auto own = by_key_.find(one.key());
    if (own != by_key_.end() && missing.erase(own->second) > 0) {
      const auto* const entry = find(own->second);
      const auto* const mode = std::get_if<LockMode>(&entry->claim);
      const bool is_reader = mode != nullptr && *mode == LockMode::shared;
      const auto& before = is_reader ? last_writer : last;
      admissions.emplace_back(
          own->second, before.empty() ? Admission(Admitted{})
                                      : WaitFor{.key = before, .wakes_on_change = is_reader});
    }
    if (!is_queue_key(folder, one.key())) {
      continue;
    }
    last = one.key();
    const auto claim = record_from(one.value()).claim;
    const auto* const mode = std::get_if<LockMode>(&claim);
    if (mode == nullptr || *mode != LockMode::shared) {
      last_writer = one.key();
    }
  }
  const auto is_here = [](const Entry* entry) {
    return entry != nullptr && (entry->stage == Stage::waiting || entry->stage == Stage::enqueuing);
  };
  for (const auto& [id, admission] : admissions) {
    if (auto* const entry = find(id); is_here(entry)) {
      entry->is_listing = false;
      entry->listed_revision = answer.revision;
      apply_admission(id, admission, false);
    }
  }
  for (const auto& id : missing) {
    if (is_here(find(id))) {
      own_key_lost(id);
    }
  }
}

}  // namespace tenure::backends::etcd
