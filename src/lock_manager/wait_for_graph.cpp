#include <algorithm>
#include <deque>
#include <iterator>

#include <tenure/lock_manager/wait_for_graph.hpp>

namespace tenure {

namespace {

using Edges = std::map<TxnId, std::set<TxnId>>;

/// Transactions that `waiter` waits for; a shared empty set if there are none.
const std::set<TxnId>& holders_of(const Edges& edges, TxnId waiter) {
  static const std::set<TxnId> none;
  const auto found = edges.find(waiter);
  return found == edges.end() ? none : found->second;
}

/// State of a breadth-first search: reached transactions with their predecessors, and the frontier.
struct Reached {
  void add(TxnId txn, TxnId waiter) {
    if (from.try_emplace(txn, waiter).second) {
      to_search.push_back(txn);
    }
  }

  /// Path by which `start` was reached from itself.
  [[nodiscard]] std::vector<TxnId> cycle_through(TxnId start) const {
    std::vector<TxnId> cycle;
    for (TxnId txn = from.at(start); txn != start; txn = from.at(txn)) {
      cycle.push_back(txn);
    }
    cycle.push_back(start);
    std::ranges::reverse(cycle);
    return cycle;
  }

  std::map<TxnId, TxnId> from = {};
  std::deque<TxnId> to_search = {};
};

/// Depth-first search of the parts of the graph that were not searched yet. Iterative, because a
/// chain of waiters may be longer than the stack of a thread.
class CycleSearch {
 public:
  explicit CycleSearch(const Edges& edges) : edges_(edges) {}

  [[nodiscard]] std::optional<std::vector<TxnId>> search_from(TxnId start) {
    enter(start);
    while (!path_.empty()) {
      Step& step = path_.back();
      // All edges of the transaction are searched, and none closes a cycle.
      if (step.next == step.holders->end()) {
        is_on_path_[step.txn] = false;
        path_.pop_back();
        continue;
      }
      const TxnId holder = *step.next++;
      const auto known = is_on_path_.find(holder);
      if (known == is_on_path_.end()) {
        enter(holder);
      } else if (known->second) {
        return path_since(holder);
      } else {
        // Searched before without finding a cycle, so no cycle leads through it.
      }
    }
    return std::nullopt;
  }

 private:
  /// Transaction on the current path, with the next edge to search.
  struct Step {
    TxnId txn;
    const std::set<TxnId>* holders;
    std::set<TxnId>::const_iterator next;
  };

  /// Appends a transaction to the path, unless it was visited before.
  void enter(TxnId txn) {
    if (is_on_path_.try_emplace(txn, true).second) {
      const std::set<TxnId>& holders = holders_of(edges_, txn);
      path_.push_back({.txn = txn, .holders = &holders, .next = holders.begin()});
    }
  }

  /// Part of the path from `first` on, which is a cycle when its last edge leads back to `first`.
  [[nodiscard]] std::vector<TxnId> path_since(TxnId first) const {
    std::vector<TxnId> cycle;
    const auto begin = std::ranges::find(path_, first, &Step::txn);
    std::ranges::transform(begin, path_.end(), std::back_inserter(cycle), &Step::txn);
    return cycle;
  }

  const Edges& edges_;
  std::vector<Step> path_;
  std::map<TxnId, bool>
      is_on_path_;  ///< For every visited transaction: whether it is on the current path.
};

}  // namespace

void WaitForGraph::add_wait(TxnId waiter, TxnId holder) {
  if (waiter != holder) {
    edges_[waiter].insert(holder);
  }
}

void WaitForGraph::add_waits(TxnId waiter, std::span<const TxnId> holders) {
  for (const TxnId holder : holders) {
    add_wait(waiter, holder);
  }
}

void WaitForGraph::clear_waiter(TxnId waiter) {
  edges_.erase(waiter);
}

void WaitForGraph::remove_txn(TxnId txn) {
  edges_.erase(txn);
  for (auto& [waiter, holders] : edges_) {
    holders.erase(txn);
  }
  std::erase_if(edges_, [](const auto& edge) { return edge.second.empty(); });
}

std::optional<std::vector<TxnId>> WaitForGraph::detect_cycle() const {
  CycleSearch search(edges_);
  for (const auto& [waiter, holders] : edges_) {
    if (auto cycle = search.search_from(waiter)) {
      return cycle;
    }
  }
  return std::nullopt;
}

/// Breadth first, so that the cycle is a shortest one through `start`.
std::optional<std::vector<TxnId>> WaitForGraph::cycle_from(TxnId start) const {
  Reached reached{.to_search = {start}};
  while (!reached.to_search.empty()) {
    const TxnId waiter = reached.to_search.front();
    reached.to_search.pop_front();
    for (const TxnId holder : holders_of(edges_, waiter)) {
      reached.add(holder, waiter);
    }
    // `start` has a predecessor as soon as an edge leads back to it.
    if (reached.from.contains(start)) {
      return reached.cycle_through(start);
    }
  }
  return std::nullopt;
}

std::optional<TxnId> WaitForGraph::pick_victim(std::span<const TxnId> cycle, VictimPolicy policy) {
  if (cycle.empty()) {
    return std::nullopt;
  }
  return policy == VictimPolicy::oldest ? std::ranges::min(cycle) : std::ranges::max(cycle);
}

}  // namespace tenure
