#include "core/admissible_waits.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/admission.hpp"

namespace tenure::core {
namespace {

/// Whether a wait behind the load `ahead` may be admissible. Does not consider upgrades, which may
/// be admissible in any case. Ends the scan of a queue early.
bool may_admit_more(const Lock& lock, const Load& ahead) {
  const auto held = lock.held();
  if (lock.capacity() > 0) {
    return held.permits + ahead.permits < lock.capacity();
  }
  return std::ranges::any_of(all_lock_modes, [&](LockMode mode) {
    return lock.queued().modes[index_of(mode)] > ahead.modes[index_of(mode)] && held.admits(mode) &&
           ahead.admits(mode);
  });
}

/// Finds the waits of one space that overlap freed ranges. All other waits are blocked as before.
class FreedWaits {
 public:
  FreedWaits(const RangeIndex& ranges, const std::vector<BytesRange>& freed, Visits& visits)
      : ranges_(ranges), freed_(freed), visits_(visits) {}

  /// Returns the turns of these waits in ascending order, without duplicates.
  std::vector<Turn> find() && {
    if (!find_by_range()) {
      turns_.clear();
      find_by_wait();
    }
    std::ranges::sort(turns_);
    const auto twice = std::ranges::unique(turns_);
    turns_.erase(twice.begin(), twice.end());
    return std::move(turns_);
  }

 private:
  /// Searches the index once per freed range. Gives up, and returns false, after as many visits as
  /// there are waits and ranges, because find_by_wait() is cheaper then.
  bool find_by_range() {
    const auto visits_max = ranges_.queued.size() + freed_.size();
    return std::ranges::all_of(freed_, [&](const BytesRange& range) {
      visits_.add();
      return ranges_.queued.visit_overlapping(range, [&](const RangeIndex::Queued& queued) {
        visits_.add();
        turns_.push_back(queued.turn);
        return turns_.size() <= visits_max;
      });
    });
  }

  void find_by_wait() {
    std::vector<const BytesRange*> freed;
    for (const auto& range : freed_) {
      freed.push_back(&range);
    }
    const auto start_of = [](const BytesRange* range) -> const std::string& {
      return range->start();
    };
    std::ranges::sort(freed, {}, start_of);
    // Prefix maximum of the ends: an earlier range may reach further than a later one.
    std::vector<const std::optional<std::string>*> reach;
    for (const auto* range : freed) {
      const bool is_longer =
          reach.empty() || (*reach.back() && (!range->end() || **reach.back() < *range->end()));
      reach.push_back(is_longer ? &range->end() : reach.back());
    }
    ranges_.queued.visit_ranges([&](const auto& start, const auto& end,
                                    const RangeIndex::Queued& queued) {
      visits_.add();
      const auto behind = end ? std::ranges::lower_bound(freed, *end, {}, start_of) : freed.end();
      if (behind == freed.begin()) {
        return;
      }
      const auto& last = *reach[static_cast<std::size_t>(behind - freed.begin() - 1)];
      if (!last || start < *last) {
        turns_.push_back(queued.turn);
      }
    });
  }

  const RangeIndex& ranges_;
  const std::vector<BytesRange>& freed_;
  Visits& visits_;
  std::vector<Turn> turns_;
};

/// Merges the queues of the freed resources in the order of turns, as Admission requires.
class AdmissionPass {
 public:
  AdmissionPass(const LockTable& table, Visits& visits)
      : table_(table), visits_(visits), admission_(table, visits) {}

  void add(const Resource& resource, const std::vector<BytesRange>& freed) {
    const auto* lock = table_.find(resource);
    if (lock == nullptr) {
      return;
    }
    Place place{.resource = &resource, .lock = lock};
    if (resource.kind == ResourceKind::space) {
      place.turns = FreedWaits(lock->ranges(), freed, visits_).find();
    }
    places_.push_back(std::move(place));
    schedule(places_.size() - 1);
  }

  [[nodiscard]] std::vector<Revision> run() && {
    while (!next_.empty()) {
      const auto [turn, at] = next_.extract(next_.begin()).value();
      auto& place = places_[at];
      visits_.add();
      if (!may_admit(place, turn)) {
        continue;  // nor any wait behind it
      }
      // A wait at several freed resources comes once for each of them, in their order.
      if (turn != last_ && admission_.admits(*table_.find(turn.ticket))) {
        place.admitted.push_back(turn.ticket);
      }
      last_ = turn;
      ++place.visited;
      schedule(at);
    }
    std::vector<Revision> admitted;
    for (const auto& place : places_) {
      admitted.insert(admitted.end(), place.admitted.begin(), place.admitted.end());
    }
    return admitted;
  }

 private:
  /// A freed resource with waits.
  struct Place {
    const Resource* resource = nullptr;
    const Lock* lock = nullptr;
    std::vector<Turn> turns{};  ///< Of a space: its waits that overlap a freed range.
    std::size_t visited = 0;    ///< Number of its waits that were visited.
    std::vector<Revision> admitted{};

    [[nodiscard]] bool is_space() const { return resource->kind == ResourceKind::space; }
  };

  /// Adds the next wait of this place to the merge.
  void schedule(std::size_t at) {
    const auto& place = places_[at];
    const auto& queue = place.lock->queue();
    if (place.visited < (place.is_space() ? place.turns.size() : queue.size())) {
      next_.emplace(place.is_space() ? place.turns[place.visited] : queue[place.visited], at);
    }
  }

  /// Whether this wait, or one behind it in the queue of this place, may be admissible.
  [[nodiscard]] bool may_admit(const Place& place, const Turn& turn) {
    return place.is_space() || turn.rank == Rank::upgrade ||
           may_admit_more(*place.lock, admission_.load_before(*place.lock, *place.resource, turn));
  }

  const LockTable& table_;
  Visits& visits_;
  Admission admission_;
  std::vector<Place> places_;  ///< Freed resources, in name order.
  /// Next wait of each place, by turn.
  std::set<std::pair<Turn, std::size_t>> next_;
  std::optional<Turn> last_;
};

}  // namespace

std::vector<Revision> admissible_waits(const LockTable& table, const Freed& freed, Visits& visits) {
  AdmissionPass pass(table, visits);
  for (const auto& [resource, ranges] : freed) {
    pass.add(resource, ranges);
  }
  return std::move(pass).run();
}

}  // namespace tenure::core
