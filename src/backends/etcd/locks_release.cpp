#include <algorithm>
#include <utility>

#include "backends/etcd/locks.hpp"

// Release, cancellation and loss of queue entries.

namespace tenure::backends::etcd {
namespace {

/// Age at which an entry is watched for deletion by another client. Most entries are released
/// before, which saves two requests for each.
constexpr std::chrono::milliseconds watch_own_delay{100};

Error wait_lost() {
  return {.code = Errc::lease_lost, .detail = "the lease of this wait ended; retry"};
}

}  // namespace

void Locks::complete(Entry& entry, Result<Granted> answer) {
  if (auto done = std::exchange(entry.done, nullptr)) {
    done(std::move(answer));
  }
}

// Release.

// Reentrant acquisitions share one key; only the last release deletes it.
void Locks::release(const ReleaseRequest& request, Backend::Done<void> done) {
  const RequestKey own{.lease = request.lease, .request = request.acquired};
  auto id = own;
  if (const auto it = reentries_.find(own); it != reentries_.end()) {
    id = it->second;
    reentries_.erase(it);
  }
  auto* const entry = find(id);
  if (entry == nullptr || entry->stage != Stage::held) {
    done(fail(Errc::not_held));
    return;
  }
  std::erase(entry->reentries, own);
  if (--entry->count > 0) {
    done({});
    return;
  }
  remove_key(id, std::move(done));
}

/// Deletes the key and, in the same transaction, lists the queue for the local waiters that it
/// blocks.
void Locks::remove_key(const RequestKey& id, Backend::Done<void> done) {
  auto& entry = entries_.at(id);
  stop_waiting(id, entry);
  entry.stage = Stage::leaving;
  dependencies_.watches.remove(std::exchange(entry.own_watch, 0));
  TxnPart part{.folder = entry.queue_key.folder, .removes_key = true};
  part.operations.push_back(remove(entry.queue_key));
  auto next_waiters = idle_waiters(entry.queue_key.key);
  const bool is_together = should_list_together(next_waiters);
  if (!is_together) {
    const auto firsts = idle_waiters(entry.queue_key.folder);
    next_waiters.insert(next_waiters.end(), firsts.begin(), firsts.end());
  }
  part.is_urgent = !next_waiters.empty();
  for (const auto& next : next_waiters) {
    auto& follower = entries_.at(next);
    follower.is_listing = true;
    follower.needs_relist = false;
    if (!is_together) {
      part.operations.push_back(
          list(follower.queue_key.folder, follower.queue_key.revision, follower.list_options));
    }
  }
  if (is_together) {
    part.operations.push_back(list_from_front(entry.queue_key.folder, 0, 0));
  }
  part.on_reply = [this, id, is_together, lease = entry.request.lease, queue_key = entry.queue_key,
                   may_be_recreated = entry.may_be_recreated,
                   next_waiters = std::move(next_waiters),
                   done = std::move(done)](const Outcome& answer) mutable {
    if (entries_.contains(id)) {
      (void)extract(id);
    }
    if (!answer) {
      remove_unconfirmed(lease, queue_key);
    } else if (may_be_recreated) {
      watch_for_recreation(lease, queue_key, answer->revision);
    }
    // Waiters first: one of them may hold the lock now.
    if (answer && is_together) {
      listed_together(queue_key.folder, next_waiters, *answer, answer->responses[1]->range());
    } else {
      listed_each(next_waiters, answer);
    }
    key_released(queue_key.key);
    removal_done(answer, std::move(done));
  };
  dependencies_.batcher.add(std::move(part));
}

void Locks::listed_each(const std::vector<RequestKey>& ids, const Outcome& answer) {
  for (std::size_t index = 0; index < ids.size(); ++index) {
    auto* const entry = find(ids[index]);
    if (entry == nullptr || entry->stage == Stage::leaving) {
      continue;
    }
    entry->is_listing = false;
    if (answer) {
      listed(ids[index], answer->responses[index + 1]->range(), answer->revision);
    } else {
      refresh(
          ids[index]);  // Changes during the transaction were left to this reply, so list again.
    }
  }
}

void Locks::removal_done(const Outcome& answer, Backend::Done<void> done) {
  if (!answer) {
    done(std::unexpected(answer.error()));
  } else if (answer->responses[0]->txn().succeeded()) {
    done({});
  } else if (answer->is_retry) {
    done(fail(Errc::unavailable, "connection lost during the release; the lock is free now"));
  } else {
    done(fail(Errc::not_held));
  }
}

// Cancel.

void Locks::abandon(LeaseId lease, RequestId request) {
  const RequestKey id{.lease = lease, .request = request};
  auto* const entry = find(id);
  if (entry == nullptr || entry->stage == Stage::held || entry->stage == Stage::leaving ||
      std::exchange(entry->is_cancelled, true)) {
    return;
  }
  if (entry->stage == Stage::starting) {
    auto extracted = extract(id);
    complete(extracted, fail(Errc::cancelled));
  } else if (entry->stage == Stage::waiting) {
    leave(id, {.code = Errc::cancelled});
  } else if (!dependencies_.connection.is_up()) {
    // Without a connection it is unknown whether the request was granted. The caller gets
    // `cancelled` now; the key is deleted later.
    complete(*entry, fail(Errc::cancelled));
  }
  // Otherwise the reply in flight decides.
}

void Locks::leave(const RequestKey& id, Error why) {
  auto& entry = entries_.at(id);
  if (!dependencies_.connection.is_up() || is_shutting_down_) {
    complete(entry, std::unexpected(why));
  }
  // Complete after the deletion, so that the queue is clean when the caller continues.
  auto done = std::exchange(entry.done, nullptr);
  remove_key(id, [done = std::move(done), why = std::move(why)](const Result<void>&) mutable {
    if (done) {
      done(std::unexpected(std::move(why)));
    }
  });
}

/// Deletes a key whose creation is unconfirmed. Its lease may stay in use, so the key would
/// otherwise block the lock.
void Locks::remove_unconfirmed(LeaseId lease, const QueueKey& queue_key) {
  remove_any(queue_key, [this, lease, queue_key](const Outcome& answer) {
    if (answer) {
      watch_for_recreation(lease, queue_key, answer->revision);
    }
  });
}

/// Deletes the key regardless of its create revision.
void Locks::remove_any(QueueKey queue_key, std::move_only_function<void(const Outcome&)> answered) {
  if (is_shutting_down_) {
    return;  // The key is deleted with its lease.
  }
  queue_key.revision = 0;
  TxnPart part{.folder = queue_key.folder, .removes_key = true, .survives_rejection = true};
  part.operations.push_back(remove(queue_key));
  part.on_reply = std::move(answered);
  dependencies_.batcher.add(std::move(part));
}

/// Watches for a late creation. The creation was sent more than once because a reply was lost; a
/// stalled member may still deliver the first copy after the deletion and create the key again, and
/// it would stay while its lease lives.
void Locks::watch_for_recreation(LeaseId lease, const QueueKey& queue_key, std::int64_t revision) {
  if (is_shutting_down_ || !dependencies_.leases.has(lease)) {
    return;
  }
  const auto on_change = [this, lease, queue_key](const Result<KeyWatches::Change>& what) {
    if (what && *what == KeyWatches::Change::changed) {
      remove_any(queue_key, [](const Outcome&) {});
    } else if (what && *what == KeyWatches::Change::unknown) {
      remove_unconfirmed(lease, queue_key);
    }
  };
  recreation_watches_[lease].push_back(dependencies_.watches.add(
      {.key = queue_key.key, .from = revision + 1, .events = KeyWatches::Events::changes},
      on_change));
}

// A lost lease ends all entries under it. For other errors the key may exist if its creation is
// unconfirmed, so it is deleted.
void Locks::fail_entry(const RequestKey& id, const Error& why) {
  auto entry = extract(id);
  if (why == Errc::lease_lost) {
    complete(entry, std::unexpected(why));
    if (entry.stage != Stage::starting) {
      lease_lost(entry.request.lease);
      key_released(entry.queue_key.key);
    }
    return;
  }
  const bool is_known =
      (why == Errc::would_block || why == Errc::cancelled) && !entry.may_be_recreated;
  if (!is_known && entry.stage != Stage::starting) {
    remove_unconfirmed(entry.request.lease, entry.queue_key);
  }
  complete(entry, std::unexpected(why));
  key_released(entry.queue_key.key);
}

Locks::Entry Locks::extract(const RequestKey& id) {
  const auto it = entries_.find(id);
  stop_waiting(id, it->second);
  auto entry = std::move(it->second);
  entries_.erase(it);
  dependencies_.watches.remove(std::exchange(entry.own_watch, 0));
  for (const auto& other : entry.reentries) {
    reentries_.erase(other);
  }
  by_key_.erase(entry.queue_key.key);
  if (const auto folder = folders_.find(entry.queue_key.folder); folder != folders_.end()) {
    folder->second.entries.erase(entry.queue_key.revision);
    if (folder->second.entries.empty() && !folder->second.is_listing) {
      folders_.erase(folder);
    }
  }
  if (const auto lease = by_lease_.find(id.lease); lease != by_lease_.end()) {
    std::erase(lease->second, id);
    if (lease->second.empty()) {
      by_lease_.erase(lease);
    }
  }
  return entry;
}

// Deletion of own keys by other clients.

void Locks::watch_own_later(const RequestKey& id) {
  timers_.call_at(net::TimerQueue::Clock::now() + watch_own_delay, [this, id] {
    if (auto* const entry = find(id); entry != nullptr && entry->own_watch == 0 &&
                                      entry->queue_key.revision > 0 &&
                                      entry->stage != Stage::leaving) {
      watch_own(id);
    }
  });
}

void Locks::watch_own(const RequestKey& id) {
  auto& entry = entries_.at(id);
  entry.own_watch = dependencies_.watches.add(
      {.key = entry.queue_key.key,
       .from = std::max(entry.listed_revision, entry.queue_key.revision) + 1},
      [this, id](const Result<KeyWatches::Change>& what) { own_key_changed(id, what); });
}

void Locks::own_key_changed(const RequestKey& id, const Result<KeyWatches::Change>& what) {
  auto* const entry = find(id);
  if (entry == nullptr || entry->stage == Stage::leaving) {
    return;
  }
  if (what && *what == KeyWatches::Change::deleted) {
    own_key_lost(id);
    return;
  }
  entry->own_watch = 0;
  if (!what) {
    return;  // Not permitted to watch; renewals report most losses, too.
  }
  TxnPart part;
  part.operations.push_back(read_key(entry->queue_key.key));
  part.on_reply = [this, id](const Outcome& answer) {
    auto* const looked = find(id);
    if (!answer || looked == nullptr || looked->stage == Stage::leaving) {
      return;
    }
    const auto& found = answer->responses[0]->range();
    if (found.kvs_size() == 0 || found.kvs(0).create_revision() != looked->queue_key.revision) {
      own_key_lost(id);
      return;
    }
    looked->listed_revision = std::max(looked->listed_revision, answer->revision);
    watch_own(id);
  };
  dependencies_.batcher.add(std::move(part));
}

void Locks::own_key_lost(const RequestKey& id) {
  auto entry = extract(id);
  const auto lease = entry.request.lease;
  std::vector<RequestId> holds;
  if (entry.stage == Stage::held) {
    holds.push_back(entry.request.request);
    for (const auto& other : entry.reentries) {
      holds.push_back(other.request);
    }
  }
  complete(entry, fail(Errc::lease_lost,
                       "its queue key was deleted: the lease has ended, or an operator removed it; "
                       "retry"));
  for (const auto hold : holds) {
    if (listener_ != nullptr) {
      listener_->hold_force_released(lease, hold);
    }
  }
  // If the lease ended, all holds under it must be reported lost.
  dependencies_.leases.check(lease);
  key_released(entry.queue_key.key);
}

// Leases.

std::vector<RequestKey> Locks::entries_of(LeaseId lease) const {
  const auto it = by_lease_.find(lease);
  return it == by_lease_.end() ? std::vector<RequestKey>() : it->second;
}

std::vector<std::string> Locks::drop_lease(LeaseId lease, const Error& why) {
  std::vector<std::string> keys;
  for (const auto& id : entries_of(lease)) {
    auto entry = extract(id);
    keys.push_back(entry.queue_key.key);
    complete(entry, std::unexpected(why));
  }
  if (const auto late = recreation_watches_.extract(lease)) {
    for (const auto watch : late.mapped()) {
      dependencies_.watches.remove(watch);
    }
  }
  return keys;
}

void Locks::revoke(LeaseId lease, Backend::Done<void> done) {
  dependencies_.leases.revoke(lease, [this, keys = drop_lease(lease, wait_lost()),
                                      done = std::move(done)](Result<void> result) mutable {
    for (const auto& key : keys) {
      key_released(key);
    }
    done(std::move(result));
  });
}

void Locks::lease_lost(LeaseId lease) {
  dependencies_.leases.forget(lease);
  const auto keys = drop_lease(lease, wait_lost());
  if (listener_ != nullptr) {
    listener_->lease_lost(lease);
  }
  for (const auto& key : keys) {
    key_released(key);
  }
}

void Locks::rejected(const Error& why) {
  rejection_ = why;
  std::vector<RequestKey> waiting;
  for (const auto& [id, entry] : entries_) {
    if (entry.stage == Stage::waiting) {
      waiting.push_back(id);
    }
  }
  for (const auto& id : waiting) {
    if (find(id) != nullptr) {
      fail_entry(id, why);
    }
  }
}

// Revoking the leases deletes all keys with one request per lease.
void Locks::shut_down() {
  is_shutting_down_ = true;
  listener_ = nullptr;
  timers_.clear();
  dependencies_.watches.clear();
  std::vector<RequestKey> all;
  for (const auto& [id, entry] : entries_) {
    all.push_back(id);
  }
  for (const auto& id : all) {
    if (auto* const entry = find(id)) {
      complete(*entry, std::unexpected(client_closed()));
    }
  }
  for (const auto lease : dependencies_.leases.all()) {
    revoke(lease, [](const Result<void>&) {});
  }
}

}  // namespace tenure::backends::etcd
