#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "history/check.hpp"

namespace tenure::history {
namespace {

using Requests = std::vector<const Request*>;

bool may_meet(const Item& left, const Item& right) {
  return conflict(left, right) || (place_of(left) == place_of(right) && left.permits.has_value() &&
                                   right.permits.has_value());
}

/// Wait-for graph. Owners are the nodes, since a waiting owner does nothing else.
class Graph {
 public:
  /// Whether the wait of `waiter` for `other` is an edge.
  using Edge = std::function<bool(const Request& waiter, const Request& other)>;

  Graph(const History& history, Edge edge) : history_(history), edge_(std::move(edge)) {}

  void add_waiter(const Request& request) { waits_[request.owner].push_back(&request); }

  /// Whether a path leads from this wait back to its owner.
  [[nodiscard]] bool has_cycle(const Request& start) const {
    std::set<std::string> seen;
    std::vector<std::string> open = reached(start);
    while (!open.empty()) {
      auto owner = std::move(open.back());
      open.pop_back();
      if (owner == start.owner) {
        return true;
      }
      if (!seen.insert(owner).second) {
        continue;
      }
      const auto waits = waits_.find(owner);
      for (const auto* wait : waits == waits_.end() ? Requests{} : waits->second) {
        const auto more = reached(*wait);
        open.insert(open.end(), more.begin(), more.end());
      }
    }
    return false;
  }

 private:
  [[nodiscard]] std::vector<std::string> reached(const Request& waiter) const {
    std::vector<std::string> owners;
    for (const auto& item : waiter.items) {
      for (const auto& use : history_.places.at(place_of(item))) {
        if (use.request != &waiter && may_meet(item, *use.item) && edge_(waiter, *use.request)) {
          owners.push_back(use.request->owner);
        }
      }
    }
    return owners;
  }

  const History& history_;
  Edge edge_;
  std::map<std::string, Requests> waits_;
};

/// A request that was abandoned because its lease was lost, by the clock of the client, may stay in
/// the queue for a while.
bool may_wait(const History& history, const Request& request, Time begin, Time end) {
  const bool is_out =
      request.failed.has_value() && *request.failed < begin &&
      (request.is_refused() || request.why == "cancelled" || latest_end(history, request) < begin);
  return request.invoked <= end && (!request.answered || *request.answered >= begin) && !is_out;
}

// All edges that may have existed during the victim's request: without a cycle among them there was
// no deadlock.
void check_victim(const History& history, const Request& victim, Findings& findings) {
  const auto begin = victim.invoked;
  const auto end = *victim.failed;
  Graph graph(history, [&](const Request& /*waiter*/, const Request& other) {
    return other.invoked <= end && other.may_hold() && latest_end(history, other) >= begin;
  });
  for (const auto& [id, request] : history.requests) {
    if (may_wait(history, request, begin, end)) {
      graph.add_waiter(request);
    }
  }
  if (!graph.has_cycle(victim)) {
    findings.add('W', describe(victim) + " was refused at " + std::to_string(end) +
                          " as the victim of a deadlock that cannot have existed");
  }
}

bool surely_waits(const Request& request, Time begin, Time end) {
  return request.queued.has_value() && *request.queued <= begin && request.is_pending(end) &&
         (!request.left || *request.left > end);
}

// Only edges that existed during the whole interval: a cycle among them was not resolved.
void check_unresolved_cycle(const History& history, const Request& waiter, Findings& findings) {
  const auto begin = std::max(*waiter.queued, history.healed);
  const auto end = begin + history.bound;
  if (!surely_waits(waiter, begin, end) || end > *history.end) {
    return;
  }
  Graph graph(history, [&](const Request& waits, const Request& other) {
    const bool holds =
        other.is_granted() && *other.answered <= begin && other.belief.covers(begin, end);
    const bool is_ahead = surely_waits(other, begin, end) && *other.queued < waits.invoked;
    return holds || is_ahead;
  });
  for (const auto& [id, request] : history.requests) {
    const bool is_counted = std::ranges::any_of(
        request.items, [](const Item& item) { return item.permits.has_value(); });
    if (!is_counted && surely_waits(request, begin, end)) {
      graph.add_waiter(request);
    }
  }
  if (graph.has_cycle(waiter)) {
    findings.add('W', describe(waiter) + " is in a cycle since " + std::to_string(begin) +
                          " that was not resolved until " + std::to_string(end));
  }
}

}  // namespace

void check_deadlocks(const History& history, Findings& findings) {
  const bool is_bounded = history.bound > 0 && history.healed != never && history.end.has_value();
  for (const auto& [id, request] : history.requests) {
    if (request.failed.has_value() && request.why == "deadlock") {
      check_victim(history, request, findings);
    }
    // Semaphores are left to property R: the free permits may suffice for several waiters.
    const bool is_counted = std::ranges::any_of(
        request.items, [](const Item& item) { return item.permits.has_value(); });
    if (is_bounded && request.queued.has_value() && !is_counted) {
      check_unresolved_cycle(history, request, findings);
    }
  }
}

}  // namespace tenure::history
