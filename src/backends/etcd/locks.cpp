#include "backends/etcd/locks.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace tenure::backends::etcd {
namespace {

/// Attempts of a request that does not wait, if other clients come and go between list and
/// creation.
constexpr std::uint32_t attempts_max = 16;
/// Factor by which the limit grows when a list was too short.
constexpr std::int64_t list_growth = 8;
constexpr std::int64_t holders_max = 1000;

/// The backend lacks the capabilities `ranges` and `modes`, so other claims do not occur.
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

Locks::Locks(boost::asio::io_context& loop, std::string root, Dependencies dependencies)
    : root_(std::move(root)), dependencies_(dependencies), timers_(loop) {}

Locks::Entry* Locks::find(const RequestKey& id) {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

// Acquire.

void Locks::grant_lease(const LeaseRequest& request, Backend::Done<void> done) {
  if (rejection_) {
    done(std::unexpected(*rejection_));
    return;
  }
  dependencies_.leases.grant(request.id, request.ttl, std::move(done));
}

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  if (rejection_) {
    done(std::unexpected(*rejection_));
    return;
  }
  const RequestKey id{.lease = request.lease, .request = request.request};
  const auto& item = request.spec->items.front();
  const auto claim = claim_of(item);
  auto folder = folder_of(root_, item.name);
  if (reenter(request, folder, claim, done)) {
    return;
  }
  Entry entry{
      .request = std::move(request), .claim = claim, .list_options = list_options_for(claim)};
  entry.queue_key.key = key_of(folder, entry.request.lease, entry.request.request);
  entry.queue_key.folder = std::move(folder);
  entry.queue_key.lease = number_of(entry.request.lease);
  if (is_self_blocking(entry)) {
    const bool would_wait = entry.request.queue == Queue::wait;
    done(would_wait ? fail(Errc::deadlock, "the lease would block itself")
                    : fail(Errc::would_block));
    return;
  }
  entry.done = std::move(done);
  const auto lease = entry.request.lease;
  by_key_.emplace(entry.queue_key.key, id);
  by_lease_[lease].push_back(id);
  entries_.insert_or_assign(id, std::move(entry));
  dependencies_.leases.when_granted(lease, [this, id](const Result<void>& granted) {
    auto* const waiting = find(id);
    if (waiting == nullptr || waiting->stage != Stage::starting) {
      return;
    }
    if (!granted) {
      fail_entry(id, {.code = Errc::lease_lost, .detail = granted.error().detail});
      return;
    }
    submit(id);
  });
}

// A hold covers a request if it is exclusive, or both are shared. An upgrade is not supported, so a
// shared hold does not cover an exclusive request.
bool Locks::reenter(const AcquireRequest& request, const std::string& folder, const Claim& claim,
                    Backend::Done<Granted>& done) {
  if (request.spec->self_conflict != SelfConflict::reenter ||
      !std::holds_alternative<LockMode>(claim)) {
    return false;
  }
  for (const auto& other : entries_of(request.lease)) {
    auto& entry = entries_.at(other);
    const bool covers = std::holds_alternative<LockMode>(entry.claim) &&
                        (is_shared(claim) || !is_shared(entry.claim));
    if (entry.stage == Stage::held && entry.queue_key.folder == folder && covers) {
      const RequestKey id{.lease = request.lease, .request = request.request};
      entry.reentries.push_back(id);
      reentries_.emplace(id, other);
      done(Granted{.token = FencingToken{static_cast<std::uint64_t>(entry.queue_key.revision)},
                   .count = ++entry.count});
      return true;
    }
  }
  return false;
}

// A conflicting entry of the same lease can only be released by the caller, which would wait for
// it. Permits conflict if their sum exceeds the capacity.
bool Locks::is_self_blocking(const Entry& entry) {
  const auto* const mine = std::get_if<Permits>(&entry.claim);
  std::uint64_t taken = mine == nullptr ? 0 : mine->wanted;
  for (const auto& id : entries_of(entry.request.lease)) {
    const auto& other = entries_.at(id);
    if (other.queue_key.folder != entry.queue_key.folder || other.stage == Stage::leaving) {
      continue;
    }
    const auto* const theirs = std::get_if<Permits>(&other.claim);
    if (mine != nullptr && theirs != nullptr) {
      taken += theirs->wanted;
    } else if (!is_shared(entry.claim) || !is_shared(other.claim)) {
      return true;
    }
  }
  return mine != nullptr && taken > mine->capacity;
}

void Locks::submit(const RequestKey& id) {
  auto& entry = entries_.at(id);
  entry.stage = Stage::enqueuing;
  const auto value = value_of(*entry.request.spec, entry.claim);
  TxnPart part{.folder = entry.queue_key.folder, .creates_key = true, .after_removals = true};
  if (entry.request.queue == Queue::wait) {
    // An own predecessor makes the list unnecessary. Readers behind a granted reader share one
    // list.
    auto list_options = entry.list_options;
    const auto folder = folders_.find(entry.queue_key.folder);
    const bool is_read =
        is_shared(entry.claim) && folder != folders_.end() && folder->second.no_writer_until > 0;
    list_options.limit = is_read || own_predecessor(entry) ? 0 : list_options.limit;
    part.operations.push_back(enqueue(entry.queue_key, value, list_options));
    part.on_reply = [this, id](const Outcome& answer) { enqueue_done(id, answer); };
  } else {
    part.operations.push_back(
        enqueue_if_unchanged(entry.queue_key, value, entry.listed_revision, entry.list_options));
    part.on_reply = [this, id](const Outcome& answer) { try_done(id, answer); };
  }
  dependencies_.batcher.add(std::move(part));
}

// The reply contains the list after the creation, so an uncontended acquire costs one request.
void Locks::enqueue_done(const RequestKey& id, const Outcome& answer) {
  auto* const entry = find(id);
  if (entry == nullptr) {
    return;  // The lease has ended, and etcd has deleted the key.
  }
  if (!answer) {
    fail_entry(id, answer.error());
    return;
  }
  watch_own_later(id);
  entry->may_be_recreated = answer->is_retry;
  const auto& txn = answer->responses[0]->txn();
  if (!txn.succeeded()) {
    // The key exists: an earlier attempt succeeded and its reply was lost.
    const auto& found = txn.responses(0).range();
    entry->position = 1;
    if (found.kvs_size() > 0) {
      revision_known(id, found.kvs(0).create_revision());
    }
    refresh(id);
    return;
  }
  revision_known(id, answer->revision);
  entry->listed_revision = answer->revision;
  if (txn.responses_size() > 1) {
    const auto& list = txn.responses(1).range();
    entry->position = list.count() > 0 ? static_cast<std::size_t>(list.count()) - 1 : 0;
    listed(id, list, answer->revision);
  } else if (const auto predecessor = own_predecessor(*entry)) {
    const auto& ours = folders_.at(entry->queue_key.folder).entries;
    const auto before = std::prev(ours.find(entry->queue_key.revision));
    entry->position = entries_.at(before->second).position + 1;
    wait_for(id, *predecessor);
  } else if (is_shared(entry->claim)) {
    entry->position = 1;
    refresh_with_readers(id);
  } else {
    entry->position = 1;
    refresh(id);
  }
}

/// Conflicting predecessor of this client, or the key that a non-conflicting own predecessor waits
/// for.
std::optional<WaitFor> Locks::own_predecessor(const Entry& entry) const {
  const auto it = folders_.find(entry.queue_key.folder);
  if (it == folders_.end() || std::holds_alternative<Permits>(entry.claim)) {
    return std::nullopt;
  }
  const auto& ours = it->second.entries;
  const auto after =
      entry.queue_key.revision == 0 ? ours.end() : ours.find(entry.queue_key.revision);
  if (after == ours.begin()) {
    return std::nullopt;
  }
  const auto& other = entries_.at(std::prev(after)->second);
  const bool stays = other.stage == Stage::waiting || other.stage == Stage::held;
  if (!stays || std::holds_alternative<Permits>(other.claim)) {
    return std::nullopt;
  }
  if (!is_shared(entry.claim) || !is_shared(other.claim)) {
    return WaitFor{.key = other.queue_key.key, .wakes_on_change = is_shared(entry.claim)};
  }
  // A waiter that lists the queue does so because its target changed; that change is not reported
  // again.
  return other.stage == Stage::waiting && !other.waits_for.empty() && !other.is_listing
             ? std::optional(WaitFor{.key = other.waits_for, .wakes_on_change = true})
             : std::nullopt;
}

void Locks::revision_known(const RequestKey& id, std::int64_t revision) {
  auto& entry = entries_.at(id);
  entry.queue_key.revision = revision;
  folders_[entry.queue_key.folder].entries.insert_or_assign(revision, id);
}

// The creation is conditional on the queue of the previous list. If the queue changed but has no
// conflict, the request is repeated with the new list.
void Locks::try_done(const RequestKey& id, const Outcome& answer) {
  auto* const entry = find(id);
  if (entry == nullptr) {
    return;
  }
  if (!answer) {
    fail_entry(id, answer.error());
    return;
  }
  entry->may_be_recreated = entry->may_be_recreated || answer->is_retry;
  const auto& txn = answer->responses[0]->txn();
  if (txn.succeeded()) {
    revision_known(id, answer->revision);
    entry->listed_revision = answer->revision;
    watch_own_later(id);
    grant(id, false);
    return;
  }
  if (const auto& found = txn.responses(0).range(); found.kvs_size() > 0) {
    // The key exists: an earlier attempt succeeded and its reply was lost.
    revision_known(id, found.kvs(0).create_revision());
    refresh(id);
    return;
  }
  const auto& list = txn.responses(1).range();
  const auto admission = admission_of(entry->claim, entry->queue_key.folder,
                                      {.keys = list.kvs(), .has_more = list.more()});
  if (const auto* misused = std::get_if<Misused>(&admission)) {
    fail_entry(id, {.code = Errc::invalid_argument, .detail = misused->why});
    return;
  }
  const bool may_go = std::holds_alternative<Admitted>(admission);
  if (std::holds_alternative<ListTooShort>(admission)) {
    entry->list_options.limit *= list_growth;
  }
  const bool is_over =
      std::holds_alternative<WaitFor>(admission) || ++entry->attempts > attempts_max;
  if (is_over || entry->is_cancelled) {
    fail_entry(id, {.code = entry->is_cancelled ? Errc::cancelled : Errc::would_block});
    return;
  }
  entry->listed_revision = may_go ? answer->revision : 0;
  submit(id);
}

// Wait.

// A serializable read from one member is enough: predecessors never come back, so a stale list only
// makes the entry wait for a key that is gone, followed by another list. If our own key was
// deleted, its watch reports that. A linearizable read would wait for the write in flight, usually
// that of the previous holder, which queues again.
void Locks::refresh(const RequestKey& id, std::int64_t notified_revision) {
  auto& entry = entries_.at(id);
  if (std::exchange(entry.is_listing, true)) {
    entry.needs_relist = true;
    return;
  }
  entry.needs_relist = false;
  TxnPart part;
  part.operations.push_back(
      list(entry.queue_key.folder, entry.queue_key.revision, entry.list_options));
  part.operations.front().mutable_range()->set_serializable(notified_revision > 0);
  part.on_reply = [this, id, notified_revision](const Outcome& answer) {
    auto* const looking = find(id);
    if (looking == nullptr || looking->stage == Stage::leaving) {
      return;
    }
    looking->is_listing = false;
    if (!answer) {
      leave(id, answer.error());
      return;
    }
    if (answer->revision < notified_revision) {
      refresh(id);  // A member that lags behind served the read.
      return;
    }
    listed(id, answer->responses[0]->range(), answer->revision);
  };
  dependencies_.batcher.add(std::move(part));
}

void Locks::listed(const RequestKey& id, const pb::RangeResponse& list, std::int64_t revision) {
  auto& entry = entries_.at(id);
  const auto& keys = list.kvs();
  // Skip entries of a lock below this one that the same transaction created.
  int own = 0;
  while (own < keys.size() && !is_queue_key(entry.queue_key.folder, keys[own].key())) {
    ++own;
  }
  if (own == keys.size() && list.more()) {
    entry.list_options.limit *= list_growth;
    refresh(id);
    return;
  }
  const bool is_there =
      own < keys.size() && keys[own].key() == entry.queue_key.key &&
      keys[own].create_revision() > 0 &&
      (entry.queue_key.revision == 0 || keys[own].create_revision() == entry.queue_key.revision);
  if (!is_there) {
    own_key_lost(id);
    return;
  }
  revision_known(id, keys[own].create_revision());
  entry.listed_revision = revision;
  apply_admission(id,
                  admission_of(entry.claim, entry.queue_key.folder,
                               {.keys = keys, .first = own + 1, .has_more = list.more()}),
                  list.count() > keys.size());
}

void Locks::apply_admission(const RequestKey& id, const Admission& admission, bool has_successors) {
  auto& entry = entries_.at(id);
  if (std::holds_alternative<Admitted>(admission)) {
    grant(id, has_successors);
  } else if (const auto* predecessor = std::get_if<WaitFor>(&admission)) {
    wait_for(id, *predecessor);
  } else if (const auto* misused = std::get_if<Misused>(&admission)) {
    leave(id, {.code = Errc::invalid_argument,
               .detail = '"' + entry.request.spec->items.front().name + "\": " + misused->why});
  } else if (const auto ours = own_predecessor(entry)) {
    // The list was too short. Waiting for an own predecessor avoids that many waiters each request
    // a longer list.
    wait_for(id, *ours);
  } else {
    entry.list_options.limit *= list_growth;
    refresh(id);
  }
}

// The create revision is the fencing token: revisions increase with every transaction of the
// cluster.
void Locks::grant(const RequestKey& id, bool has_successors) {
  auto& entry = entries_.at(id);
  if (entry.done == nullptr) {
    leave(id, {.code = Errc::cancelled});  // The callback has been called already.
    return;
  }
  const bool has_waited = entry.stage == Stage::waiting;
  stop_waiting(id, entry);
  entry.stage = Stage::held;
  entry.is_listing = false;
  if (is_shared(entry.claim)) {
    auto& known = folders_.at(entry.queue_key.folder).no_writer_until;
    known = std::max(known, entry.queue_key.revision);
  }
  const bool is_permits = std::holds_alternative<Permits>(entry.claim);
  if (is_permits && has_waited && has_successors) {
    // The successor waits for this entry to leave or to be granted. Rewriting the value notifies
    // watchers in other processes.
    TxnPart part;
    part.operations.push_back(
        update_value(entry.queue_key, value_of(*entry.request.spec, entry.claim)));
    part.on_reply = [](const Outcome&) {};
    dependencies_.batcher.add(std::move(part));
  }
  if (is_permits && has_waited) {
    key_released(entry.queue_key.key);
  }
  complete(entry,
           Granted{.token = FencingToken{static_cast<std::uint64_t>(entry.queue_key.revision)},
                   .queue_position = has_waited ? std::max<std::size_t>(1, entry.position) : 0});
}

// Other operations.

// The key keeps its create revision, so position and token stay the same.
void Locks::downgrade(const DowngradeRequest& request, Backend::Done<void> done) {
  const RequestKey id{.lease = request.lease, .request = request.acquired};
  auto* const entry = find(id);
  if (entry == nullptr || entry->stage != Stage::held) {
    done(fail(Errc::not_held));
    return;
  }
  TxnPart part;
  part.operations.push_back(
      update_value(entry->queue_key, value_of(*entry->request.spec, Claim(request.mode))));
  part.on_reply = [this, id, mode = request.mode,
                   done = std::move(done)](const Outcome& answer) mutable {
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
      key_released(weakened->queue_key.key);
    }
    done({});
  };
  dependencies_.batcher.add(std::move(part));
}

void Locks::holders(std::string_view name, Backend::Done<std::vector<Holder>> done) {
  if (rejection_) {
    done(std::unexpected(*rejection_));
    return;
  }
  const auto folder = folder_of(root_, name);
  TxnPart part{.folder = folder, .after_removals = true};
  part.operations.push_back(list_from_front(folder, 0, holders_max));
  part.on_reply = [folder, done = std::move(done)](const Outcome& answer) mutable {
    if (!answer) {
      done(std::unexpected(answer.error()));
      return;
    }
    done(holders_in(folder, answer->responses[0]->range()));
  };
  dependencies_.batcher.add(std::move(part));
}

}  // namespace tenure::backends::etcd
