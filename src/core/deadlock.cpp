#include "core/deadlock.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/stuck.hpp"

namespace tenure::core {
namespace {

bool is_waited_for(const LockTable& table, LeaseId lease) {
  const auto& owned = table.owned(lease);
  const bool behind_holds = std::ranges::any_of(owned.holds, [&](FencingToken token) {
    return std::ranges::any_of(table.find(token)->items, [&](const Item& item) {
      return !table.find(item.place())->queue().empty();
    });
  });
  return behind_holds || std::ranges::any_of(owned.waits, [&](Revision ticket) {
           const auto* wait = table.find(ticket);
           return std::ranges::any_of(wait->items, [&](const Item& item) {
             return table.find(item.place())->queue().back() != wait->turn();
           });
         });
}

/// Breadth first, over leases, along all waits or those of the stuck only. For a name it remembers
/// per mode how far the queue was looked through, so that a long queue is read once and not once
/// for each of its waiters.
class Search {
 public:
  Search(const LockTable& table, LeaseId start, const Stuck* stuck = nullptr)
      : table_(table), start_(start), stuck_(stuck) {}

  /// A shortest cycle through `start`, or nothing.
  std::vector<Edge> run() {
    reached_.emplace(start_, Step{});
    frontier_.push_back(start_);
    while (!frontier_.empty()) {
      const auto lease = frontier_.front();
      frontier_.pop_front();
      for (const auto ticket : table_.owned(lease).waits) {
        expand(*table_.find(ticket));
      }
    }
    return closing_ ? cycle() : std::vector<Edge>{};
  }

  /// Whom `start` waits for, over however many others, and itself.
  [[nodiscard]] std::set<LeaseId> reached() const {
    std::set<LeaseId> leases;
    for (const auto& [lease, step] : reached_) {
      leases.insert(lease);
    }
    return leases;
  }
  /// Did it follow a wait for permits, who may come from somebody else?
  [[nodiscard]] bool has_met_permits() const noexcept { return has_met_permits_; }

 private:
  struct Step {
    LeaseId from{};
    Edge edge{};
  };

  void expand(const Wait& wait) {
    for (const auto& item : wait.items) {
      const Wanted wanted{wait, item, item.place()};
      if (std::holds_alternative<Keys>(item.claim)) {
        expand_range(wanted);
      } else if (!std::holds_alternative<Permits>(item.claim) || is_starving(wanted)) {
        expand_name(wanted);
      }
    }
  }

  struct Wanted {
    const Wait& wait;
    const Item& item;
    Place place;
  };

  bool is_starving(const Wanted& wanted) {
    has_met_permits_ = true;
    if (stuck_ == nullptr) {
      return true;  // or it is waiting for something else only; that makes no difference yet
    }
    const auto it = stuck_->starving.find(wanted.place);
    return it != stuck_->starving.end() && it->second.contains(wanted.wait.ticket);
  }

  void expand_name(const Wanted& wanted) {
    const auto& lock = *table_.find(wanted.place);
    auto from = lock.queue().begin();
    const auto turn = wanted.wait.turn();
    bool look_at_holds = true;
    // What `start` looked through it did without its own, which others may wait for.
    if (wanted.wait.lease != start_) {
      auto [seen, is_first] = seen_.try_emplace({wanted.place, mode_of(wanted.item)}, turn);
      look_at_holds = is_first;
      if (!is_first && turn <= seen->second) {
        return;
      }
      from = is_first ? from : lock.queue().lower_bound(seen->second);
      seen->second = turn;
    }
    if (look_at_holds) {
      for (const auto token : lock.holds()) {
        const auto& hold = *table_.find(token);
        reach_if_blocking(hold.lease, hold.items, wanted);
      }
    }
    for (const auto to = lock.queue().lower_bound(turn); from != to; ++from) {
      const auto& other = *table_.find(from->ticket);
      reach_if_blocking(other.lease, other.items, wanted);
    }
  }

  /// Nothing for permits.
  static std::optional<LockMode> mode_of(const Item& item) {
    const auto* whole = std::get_if<Whole>(&item.claim);
    return whole == nullptr ? std::nullopt : std::optional(whole->mode);
  }

  void reach_if_blocking(LeaseId lease, std::span<const Item> items, const Wanted& wanted) {
    const bool blocks = std::ranges::any_of(items, [&](const Item& item) {
      return item.is_at(wanted.place) && (std::holds_alternative<Permits>(item.claim) ||
                                          conflict(item.claim, wanted.item.claim));
    });
    if (blocks) {
      reach(lease, wanted);
    }
  }

  void expand_range(const Wanted& wanted) {
    const auto& ranges = table_.find(wanted.place)->ranges();
    const auto& keys = std::get<Keys>(wanted.item.claim);
    ranges.held.visit_overlapping(keys.range, [&](const RangeIndex::Held& held) {
      if (!compatible_with(held.mode, keys.mode)) {
        reach(table_.find(held.token)->lease, wanted);
      }
      return true;
    });
    ranges.queued.visit_overlapping(keys.range, [&](const RangeIndex::Queued& queued) {
      if (queued.turn < wanted.wait.turn() && !compatible_with(queued.mode, keys.mode)) {
        reach(table_.find(queued.turn.ticket)->lease, wanted);
      }
      return true;
    });
  }

  void reach(LeaseId lease, const Wanted& wanted) {
    if (lease == wanted.wait.lease || (stuck_ != nullptr && !stuck_->leases.contains(lease))) {
      return;
    }
    const Step step{.from = wanted.wait.lease,
                    .edge = {.ticket = wanted.wait.ticket, .place = wanted.place}};
    if (lease != start_) {
      if (reached_.emplace(lease, step).second) {
        frontier_.push_back(lease);
      }
    } else if (!closing_) {
      closing_ = step;
    }
  }

  [[nodiscard]] std::vector<Edge> cycle() const {
    std::vector<Edge> edges{closing_->edge};
    for (auto at = closing_->from; at != start_;) {
      const auto& step = reached_.at(at);
      edges.push_back(step.edge);
      at = step.from;
    }
    std::ranges::reverse(edges);
    return edges;
  }

  const LockTable& table_;
  LeaseId start_;
  const Stuck* stuck_;
  std::map<LeaseId, Step> reached_;
  std::deque<LeaseId> frontier_;
  std::map<std::pair<Place, std::optional<LockMode>>, Turn> seen_;
  std::optional<Step> closing_;
  bool has_met_permits_ = false;
};

}  // namespace

std::vector<Edge> find_cycle(const LockTable& table, LeaseId start) {
  if (!is_waited_for(table, start)) {
    return {};
  }
  Search search(table, start);
  auto cycle = search.run();
  if (cycle.empty() || !search.has_met_permits()) {
    return cycle;
  }
  // Where permits are counted, a cycle alone proves nothing: somebody outside may give back some.
  const auto stuck = find_stuck(table, search.reached());
  if (!stuck.leases.contains(start)) {
    return {};
  }
  return Search(table, start, &stuck).run();
}

std::vector<CycleStep> describe(const LockTable& table, const std::vector<Edge>& cycle) {
  std::vector<CycleStep> steps;
  for (const auto& edge : cycle) {
    const auto& wait = *table.find(edge.ticket);
    steps.push_back(
        {.lease = wait.lease, .request = wait.request, .owner = wait.owner, .place = edge.place});
  }
  return steps;
}

}  // namespace tenure::core
