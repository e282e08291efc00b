#include "core/deadlock.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace tenure::core {
namespace {

bool is_waited_for(const LockTable& table, LeaseId lease) {
  const auto& owned = table.owned(lease);
  const bool behind_holds = std::ranges::any_of(owned.holds, [&](FencingToken token) {
    return std::ranges::any_of(table.find(token)->items, [&](const Item& item) {
      return !table.find(item.place())->queue.empty();
    });
  });
  return behind_holds || std::ranges::any_of(owned.waits, [&](Revision ticket) {
           const auto* wait = table.find(ticket);
           return std::ranges::any_of(wait->items, [&](const Item& item) {
             return *table.find(item.place())->queue.rbegin() != wait->turn();
           });
         });
}

/// Breadth first, over leases. For a named lock it remembers per mode how far the queue was looked
/// through, so that a long queue is read once and not once for each of its waiters.
class Search {
 public:
  Search(const LockTable& table, LeaseId start) : table_(table), start_(start) {}

  std::vector<Edge> run() {
    reached_.emplace(start_, Step{});
    frontier_.push_back(start_);
    while (!frontier_.empty() && !closing_) {
      const auto lease = frontier_.front();
      frontier_.pop_front();
      for (const auto ticket : table_.owned(lease).waits) {
        expand(*table_.find(ticket));
      }
    }
    return closing_ ? cycle() : std::vector<Edge>{};
  }

 private:
  struct Step {
    LeaseId from{};
    Edge edge{};
  };

  void expand(const Wait& wait) {
    for (const auto& item : wait.items) {
      if (std::holds_alternative<Permits>(item.claim)) {
        expand_permits(wait, item);
      } else {
        expand_pairs(wait, item);
      }
    }
  }

  void expand_pairs(const Wait& wait, const Item& item) {
    const auto place = item.place();
    const auto& lock = *table_.find(place);
    auto from = lock.queue.begin();
    const auto to = lock.queue.find(wait.turn());
    bool look_at_holds = true;
    // What `start` looked through it did without its own, which others may wait for.
    if (const auto* whole = std::get_if<Whole>(&item.claim);
        whole != nullptr && wait.lease != start_) {
      auto [seen, is_first] = seen_.try_emplace({place, whole->mode}, wait.turn());
      look_at_holds = is_first;
      if (!is_first && wait.turn() <= seen->second) {
        return;
      }
      from = is_first ? from : lock.queue.find(seen->second);
      seen->second = wait.turn();
    }
    if (look_at_holds) {
      for (const auto token : lock.holds) {
        const auto& hold = *table_.find(token);
        reach_if_blocking(hold.lease, hold.items, {wait, item, place});
      }
    }
    for (; from != to; ++from) {
      const auto& other = *table_.find(from->ticket);
      reach_if_blocking(other.lease, other.items, {wait, item, place});
    }
  }

  struct Wanted {
    const Wait& wait;
    const Item& item;
    const Place& place;
  };

  void reach_if_blocking(LeaseId lease, const std::vector<Item>& items, const Wanted& wanted) {
    const bool blocks = std::ranges::any_of(items, [&](const Item& item) {
      return item.is_at(wanted.place) && conflict(item.claim, wanted.item.claim);
    });
    if (blocks) {
      reach(lease, wanted.wait, wanted.place);
    }
  }

  void expand_permits(const Wait& wait, const Item& item) {
    const auto place = item.place();
    const auto& lock = *table_.find(place);
    std::map<LeaseId, std::uint64_t> taken;
    const auto count = [&](LeaseId lease, const std::vector<Item>& items) {
      for (const auto& other : items) {
        if (other.is_at(place)) {
          taken[lease] += std::get<Permits>(other.claim).wanted;
        }
      }
    };
    for (const auto token : lock.holds) {
      count(table_.find(token)->lease, table_.find(token)->items);
    }
    for (auto it = lock.queue.begin(); *it != wait.turn(); ++it) {
      count(table_.find(it->ticket)->lease, table_.find(it->ticket)->items);
    }
    const auto wanted = std::get<Permits>(item.claim).wanted;
    const auto own = taken.contains(wait.lease) ? taken.at(wait.lease) : 0;
    for (const auto& [lease, permits] : taken) {
      if (own + permits + wanted > lock.capacity) {
        reach(lease, wait, place);
      }
    }
  }

  void reach(LeaseId lease, const Wait& wait, const Place& place) {
    if (lease == wait.lease || closing_) {
      return;
    }
    const Step step{.from = wait.lease, .edge = {.ticket = wait.ticket, .place = place}};
    if (lease == start_) {
      closing_ = step;
    } else if (reached_.emplace(lease, step).second) {
      frontier_.push_back(lease);
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
  std::map<LeaseId, Step> reached_;
  std::deque<LeaseId> frontier_;
  std::map<std::pair<Place, LockMode>, Turn> seen_;
  std::optional<Step> closing_;
};

}  // namespace

std::vector<Edge> find_cycle(const LockTable& table, LeaseId start) {
  if (!is_waited_for(table, start)) {
    return {};
  }
  return Search(table, start).run();
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
