#include "core/admission.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/items_at.hpp"

namespace tenure::core {
namespace {

/// Whether no further claim can be admitted beside this load: the rest of the queue is not read.
bool is_full(const Lock& lock, const Load& ahead) {
  const auto exclusive = static_cast<std::size_t>(LockMode::exclusive);
  const auto held = lock.held();
  return held.modes[exclusive] + ahead.modes[exclusive] > 0 ||
         (lock.capacity() > 0 && held.permits + ahead.permits >= lock.capacity());
}

/// Ranges of one request, which do not overlap: whether one of them conflicts with a claim.
class WantedRanges {
 public:
  /// REQUIRES: the items are ranges in the order of their starts.
  explicit WantedRanges(std::span<const Item> items) {
    for (const auto& item : items) {
      const auto& keys = std::get<Keys>(item.claim);
      by_mode_[index_of(keys.mode)].push_back(&keys.range);
    }
  }

  [[nodiscard]] bool conflicts(const std::string& start, const std::optional<std::string>& end,
                               LockMode mode) const {
    return std::ranges::any_of(all_lock_modes, [&](LockMode wanted) {
      if (compatible_with(mode, wanted)) {
        return false;
      }
      const auto& ranges = by_mode_[index_of(wanted)];
      const auto reaching = std::ranges::partition_point(
          ranges, [&](const auto* range) { return range->end() && *range->end() <= start; });
      return reaching != ranges.end() && (!end || (*reaching)->start() < *end);
    });
  }

 private:
  std::array<std::vector<const BoxedRange*>, all_lock_modes.size()> by_mode_;
};

}  // namespace

bool Admission::admits(const Wait& wanted) {
  const std::span<const Item> items(wanted.items);
  for (std::size_t i = 0; i < items.size();) {
    // Counts one visit per item even at free names, because a request may have many items.
    visits_.add();
    if (items[i].kind() == ResourceKind::name) {
      if (!admits_at_name(wanted, items[i])) {
        return false;
      }
      ++i;
      continue;
    }
    const auto here = items_at(items, items[i].resource_view());
    if (!admits_in_space(wanted, here)) {
      return false;
    }
    i += here.size();
  }
  return true;
}

// The load of the holders and the load of the waits ahead suffice: at a name, only modes and
// permits matter, not who holds them. The hold that the wait upgrades is subtracted.
bool Admission::admits_at_name(const Wait& wanted, const Item& item) {
  const auto resource = item.resource_view();
  const auto* lock = table_.find(resource);
  if (lock == nullptr) {
    return true;
  }
  auto held = lock->held();
  if (const auto* some = std::get_if<Permits>(&item.claim)) {
    const auto ahead = load_before(*lock, resource, wanted.turn());
    return held.permits + ahead.permits + some->wanted <= lock->capacity();
  }
  const auto mode = std::get<Whole>(item.claim).mode;
  if (wanted.upgrades && lock->has_holder(*wanted.upgrades)) {
    held.remove(table_.find(*wanted.upgrades)->items.front().claim);
  }
  if (!held.admits(mode)) {
    return false;  // the holders block it, whatever the queue contains
  }
  return load_before(*lock, resource, wanted.turn()).admits(mode);
}

Load Admission::load_before(const Lock& lock, const ResourceView& resource, const Turn& turn) {
  // Two cases need no scan: no wait is ahead, or the whole queue is. The counter of the lock
  // answers the second one, which every new request of a long queue meets.
  const auto& queue = lock.queue();
  if (queue.empty() || !(queue.front() < turn)) {
    return {};
  }
  if (queue.back() < turn) {
    return lock.queued();
  }
  auto it = ahead_.find(resource);
  if (it == ahead_.end()) {
    it = ahead_.emplace(Resource{.name = resource.name, .kind = resource.kind}, Ahead{}).first;
  }
  auto& ahead = it->second;
  auto other = queue.lower_bound(ahead.next);
  for (; other != queue.end() && *other < turn && !is_full(lock, ahead.load); ++other) {
    visits_.add();
    for (const auto& item : items_at(table_.find(other->ticket)->items, resource)) {
      ahead.load.add(item.claim);
    }
  }
  // The cursor advances only, because the turns ascend from call to call. A scan that ended early
  // because the load is full stays at that turn: later waits are rejected by the same load.
  ahead.next = other == queue.end() ? turn : *other;
  return ahead.load;
}

// Each range is searched for alone until the searches have visited as many claims as there are;
// then one pass over all claims is cheaper.
bool Admission::admits_in_space(const Wait& wanted, std::span<const Item> items) {
  const auto resource = items.front().resource_view();
  const auto* lock = table_.find(resource);
  if (lock == nullptr) {
    return true;
  }
  const auto& ranges = lock->ranges();
  for (const auto& item : items) {
    if (range_visits_ >= ranges.held.size() + ranges.queued.size()) {
      return lock->queue().contains(wanted.turn()) ? admits_indexed(wanted, resource, *lock)
                                                   : admits_in_one_pass(wanted, items, ranges);
    }
    if (!admits_keys(wanted, std::get<Keys>(item.claim), ranges)) {
      return false;
    }
  }
  return true;
}

bool Admission::admits_indexed(const Wait& wanted, const ResourceView& resource, const Lock& lock) {
  auto& space = space_of(resource, lock);
  // The index still lists claims of waits that were granted since it was built. They block the same
  // waits as holds.
  return std::ranges::all_of(space.index.of_turn(wanted.turn()), [&](ClaimIndex::Id claim) {
    return space.index.visit_blocking(
        ClaimIndex::query_of(space.index[claim]), space.heads, [&](ClaimIndex::Id id) {
          visits_.add();
          return wanted.upgrades && space.index[id].token == *wanted.upgrades
                     ? ClaimIndex::Next::keep
                     : ClaimIndex::Next::stop;
        });
  });
}

bool Admission::admits_in_one_pass(const Wait& wanted, std::span<const Item> items,
                                   const RangeIndex& ranges) {
  const WantedRanges all(items);
  bool is_admitted = true;
  ranges.held.visit_ranges([&](const auto& start, const auto& end, const RangeIndex::Held& held) {
    visits_.add();
    is_admitted =
        is_admitted && (held.token == wanted.upgrades || !all.conflicts(start, end, held.mode));
  });
  ranges.queued.visit_ranges([&](const auto& start, const auto& end,
                                 const RangeIndex::Queued& other) {
    visits_.add();
    is_admitted =
        is_admitted && (!(other.turn < wanted.turn()) || !all.conflicts(start, end, other.mode));
  });
  return is_admitted;
}

Admission::Space& Admission::space_of(const ResourceView& resource, const Lock& lock) {
  const auto it = spaces_.find(resource);
  if (it != spaces_.end()) {
    return it->second;
  }
  // REQUIRES of Admission: only grants change the ranges after this, so the index stays usable for
  // all waits of the same pass.
  ClaimIndex index(lock.ranges());
  visits_.add(index.size());
  auto heads = index.heads();
  return spaces_
      .emplace(Resource{.name = resource.name, .kind = resource.kind},
               Space{.index = std::move(index), .heads = std::move(heads)})
      .first->second;
}

bool Admission::admits_keys(const Wait& wanted, const Keys& keys, const RangeIndex& ranges) {
  const auto count = [&] {
    ++range_visits_;
    visits_.add();
  };
  // Holds first: a holder that blocks the wait saves the search of the queue.
  return ranges.held.visit_overlapping(keys.range, [&](const RangeIndex::Held& held) {
    count();
    return held.token == wanted.upgrades || compatible_with(held.mode, keys.mode);
  }) && ranges.queued.visit_overlapping(keys.range, [&](const RangeIndex::Queued& other) {
    count();
    return !(other.turn < wanted.turn()) || compatible_with(other.mode, keys.mode);
  });
}

}  // namespace tenure::core
