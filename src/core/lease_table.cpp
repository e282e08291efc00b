#include "core/lease_table.hpp"

#include <algorithm>
#include <cassert>

namespace tenure::core {

const Lease* LeaseTable::find(LeaseId id) const {
  const auto* lease = leases_.find(id);
  return lease == nullptr ? nullptr : &**lease;
}

Lease* LeaseTable::edit(LeaseId id) {
  auto* lease = leases_.edit(id);
  return lease == nullptr ? nullptr : &lease->edit();
}

const std::set<LeaseId>& LeaseTable::of_client(const std::string& client) const {
  static const std::set<LeaseId> none;
  const auto it = clients_.find(client);
  return it == clients_.end() ? none : it->second;
}

std::size_t LeaseTable::waits_of_client(std::string_view client) const {
  const auto it = client_waits_.find(client);
  return it == client_waits_.end() ? 0 : it->second;
}

// Leases without a client are not counted: they have no limit per client.
void LeaseTable::count_wait(LeaseId id) {
  const auto* lease = find(id);
  if (lease != nullptr && !lease->client.empty()) {
    ++client_waits_.try_emplace(std::string(lease->client.view())).first->second;
  }
}

void LeaseTable::uncount_wait(LeaseId id) {
  const auto* lease = find(id);
  const auto it = lease == nullptr ? client_waits_.end() : client_waits_.find(lease->client.view());
  if (it != client_waits_.end() && --it->second == 0) {
    client_waits_.erase(it);
  }
}

const Lease& LeaseTable::add(Lease lease) {
  assert(find(lease.id) == nullptr);
  // The indexes first, because they read the lease before it moves into the table.
  deadlines_.emplace(lease.deadline, lease.id);
  if (!lease.client.empty()) {
    clients_[lease.client].insert(lease.id);
  }
  lease.bytes = {.records = bytes_of(lease), .answers = lease.history.finished_bytes()};
  usage_.add(lease.user.view(), lease.bytes);
  const auto id = lease.id;
  auto& added = leases_[id];
  added = CowPtr(std::move(lease));
  return *added;
}

void LeaseTable::remove(LeaseId id, ClusterTime ended) {
  const auto* lease = find(id);
  // Idempotent: an unknown lease has ended already.
  if (lease == nullptr) {
    return;
  }
  remember_ended({.id = id, .request = lease->request, .ended = ended});
  usage_.remove(lease->user.view(), lease->bytes);
  deadlines_.erase({lease->deadline, id});
  if (const auto client = clients_.find(lease->client); client != clients_.end()) {
    client->second.erase(id);
    if (client->second.empty()) {
      clients_.erase(client);
    }
  }
  leases_.erase(id);
}

bool LeaseTable::has_ended(LeaseId id, RequestId request) const {
  return ended_index_.contains(RequestKey{.lease = id, .request = request});
}

void LeaseTable::set_ended_times(ClusterTime ended) {
  for (auto& origin : ended_) {
    origin.ended = ended;
  }
}

void LeaseTable::remember_ended(const LeaseOrigin& origin) {
  if (origin.request == RequestId{}) {
    return;  // Without a request id there is no duplicate detection.
  }
  ended_.push_back(origin);
  ended_index_.insert({.lease = origin.id, .request = origin.request});
}

std::size_t LeaseTable::forget_ended(const Forget& what) {
  // More than one per added origin, so that a backlog of outdated ones shrinks; few, so that the
  // step stays short.
  constexpr std::size_t outdated_at_once = 4;
  std::size_t early = 0;
  for (std::size_t count = 0; !ended_.empty(); ++count) {
    const auto& oldest = ended_.front();
    const bool is_outdated = what.outdated > ClusterTime{} && oldest.ended <= what.outdated;
    const bool is_beyond = ended_.size() > what.ended_max;
    if (!is_beyond && (!is_outdated || count >= outdated_at_once)) {
      break;
    }
    early += is_outdated ? 0 : 1;
    ended_index_.erase(
        ended_index_.find(RequestKey{.lease = oldest.id, .request = oldest.request}));
    ended_.pop_front();
  }
  return early;
}

void LeaseTable::set_deadline(Lease& lease, ClusterTime deadline) {
  deadlines_.erase({lease.deadline, lease.id});
  lease.deadline = deadline;
  deadlines_.emplace(deadline, lease.id);
}

std::vector<LeaseId> LeaseTable::forget_answers_beyond(std::size_t finished_max) {
  // Two passes: edit() may copy shared nodes, which invalidates iterators.
  std::vector<LeaseId> some;
  for (const auto& [id, lease] : leases_) {
    if (lease->history.finished() > finished_max) {
      some.push_back(id);
    }
  }
  for (const auto id : some) {
    edit(id)->history.forget({.finished_max = finished_max});
  }
  return some;
}

void LeaseTable::set_bytes(Lease& lease, const Bytes& bytes) {
  if (lease.bytes != bytes) {
    usage_.remove(lease.user.view(), lease.bytes);
    usage_.add(lease.user.view(), bytes);
    lease.bytes = bytes;
  }
}

void LeaseTable::clear_usage() {
  usage_ = {};
  for (const auto id : leases_.keys()) {
    edit(id)->bytes = {};
  }
}

// Reads the index by deadline up to `now`: costs O(expired), not O(leases).
std::vector<LeaseId> LeaseTable::expired(ClusterTime now) const {
  std::vector<LeaseId> ids;
  for (auto it = deadlines_.begin(); it != deadlines_.end() && it->first <= now; ++it) {
    ids.push_back(it->second);
  }
  // By id, so that the order of effects does not depend on the deadlines.
  std::ranges::sort(ids);
  return ids;
}

std::optional<ClusterTime> LeaseTable::next_deadline() const {
  return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

LeaseId LeaseTable::fresh_id() {
  do {
    last_id_ = LeaseId{last_id_.get() + 1};
  } while (last_id_ == LeaseId{} || find(last_id_) != nullptr);
  return last_id_;
}

bool LeaseTable::has_sound_index() const {
  Usage usage;
  std::map<std::string, std::set<LeaseId>> expected;
  for (const auto& [id, lease] : leases_) {
    usage.add(lease->user.view(), lease->bytes);
    if (!lease->client.empty()) {
      expected[lease->client].insert(id);
    }
  }
  const bool has_sound_ended = std::ranges::all_of(ended_, [this](const LeaseOrigin& origin) {
    return ended_index_.contains(RequestKey{.lease = origin.id, .request = origin.request});
  });
  return usage == usage_ && has_sound_ended && ended_index_.size() == ended_.size() &&
         clients_ == expected && deadlines_.size() == leases_.size() &&
         std::ranges::all_of(leases_, [this](const auto& entry) {
           return entry.first == entry.second->id &&
                  deadlines_.contains({entry.second->deadline, entry.first});
         });
}

}  // namespace tenure::core
