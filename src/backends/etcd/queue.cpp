#include "backends/etcd/queue.hpp"

#include <algorithm>

namespace tenure::backends::etcd {
namespace {

constexpr std::int64_t limit_shared = 32;
constexpr std::int64_t limit_max = 256;

/// Every predecessor conflicts; wait for the nearest, so that a release wakes one waiter.
Admission exclusive_admission(const std::string& folder, const Before& before) {
  for (int index = before.first; index < before.keys.size(); ++index) {
    if (is_queue_key(folder, before.keys[index].key())) {
      return WaitFor{.key = before.keys[index].key()};
    }
  }
  return before.has_more ? Admission(ListTooShort{}) : Admitted{};
}

/// The last writer before a reader conflicts, also while it waits: otherwise writers would starve.
Admission shared_admission(const std::string& folder, const Before& before) {
  for (int index = before.first; index < before.keys.size(); ++index) {
    if (!is_queue_key(folder, before.keys[index].key())) {
      continue;
    }
    const auto claim = record_from(before.keys[index].value()).claim;
    const auto* const mode = std::get_if<LockMode>(&claim);
    if (mode == nullptr) {
      return Misused{.why = "it is used as a semaphore"};
    }
    if (*mode != LockMode::shared) {
      return WaitFor{.key = before.keys[index].key(), .wakes_on_change = true};
    }
  }
  return before.has_more ? Admission(ListTooShort{}) : Admitted{};
}

/// All predecessors count, whether they hold permits or wait: a smaller request must not overtake a
/// larger one.
Admission permits_admission(const Permits& mine, const std::string& folder, const Before& before) {
  std::uint64_t taken = 0;
  std::string last;
  for (int index = before.first; index < before.keys.size() && taken <= mine.capacity; ++index) {
    if (!is_queue_key(folder, before.keys[index].key())) {
      continue;
    }
    const auto claim = record_from(before.keys[index].value()).claim;
    const auto* const permits = std::get_if<Permits>(&claim);
    if (permits == nullptr) {
      return Misused{.why = "it is used as a mutex"};
    }
    if (permits->capacity != mine.capacity) {
      return Misused{.why = "its capacity is " + std::to_string(permits->capacity) + ", not " +
                            std::to_string(mine.capacity)};
    }
    if (last.empty()) {
      last = before.keys[index].key();
    }
    taken += permits->wanted;
  }
  if (taken > mine.capacity) {
    return WaitFor{.key = std::move(last), .wakes_on_change = true};
  }
  if (before.has_more) {
    return ListTooShort{};
  }
  if (taken + mine.wanted > mine.capacity) {
    return WaitFor{.key = std::move(last), .is_first = true};
  }
  return Admitted{};
}

}  // namespace

Admission admission_of(const Claim& claim, const std::string& folder, const Before& before) {
  if (const auto* permits = std::get_if<Permits>(&claim)) {
    return permits_admission(*permits, folder, before);
  }
  return std::get<LockMode>(claim) == LockMode::shared ? shared_admission(folder, before)
                                                       : exclusive_admission(folder, before);
}

ListOptions list_options_for(const Claim& claim) {
  if (const auto* permits = std::get_if<Permits>(&claim)) {
    return {.limit = std::min<std::int64_t>(limit_max, std::int64_t{permits->capacity} + 2),
            .with_values = true};
  }
  return std::get<LockMode>(claim) == LockMode::shared
             ? ListOptions{.limit = limit_shared, .with_values = true}
             : ListOptions{};
}

// Holders are a prefix of the queue: one exclusive entry, shared entries up to the first exclusive
// one, or permits up to the capacity.
std::vector<Holder> holders_in(const std::string& folder, const pb::RangeResponse& list) {
  std::vector<Holder> holders;
  bool is_shared = false;
  std::uint64_t taken = 0;
  for (const auto& one : list.kvs()) {
    if (!is_queue_key(folder, one.key())) {
      continue;
    }
    auto record = record_from(one.value());
    bool is_in = holders.empty();
    if (const auto* permits = std::get_if<Permits>(&record.claim)) {
      taken += permits->wanted;
      is_in = is_in || taken <= permits->capacity;
    } else {
      const bool wants_share = std::get<LockMode>(record.claim) == LockMode::shared;
      is_in = is_in || (is_shared && wants_share);
      is_shared = is_in && wants_share;
    }
    if (!is_in) {
      break;
    }
    // Keys of other programs carry only their lease.
    auto owner = record.owner.empty() ? one.key().substr(folder.size()) : std::move(record.owner);
    holders.push_back({.owner = std::move(owner),
                       .token = FencingToken{static_cast<std::uint64_t>(one.create_revision())},
                       .lease = LeaseId{static_cast<std::uint64_t>(one.lease())},
                       .metadata = std::move(record.metadata)});
  }
  return holders;
}

}  // namespace tenure::backends::etcd
