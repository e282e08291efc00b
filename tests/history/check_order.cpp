#include <algorithm>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// Whether the earlier waiter blocks the later one.
bool bars(const Use& earlier, const Use& later) {
  if (earlier.item->permits.has_value() && later.item->permits.has_value()) {
    // A request of several items may wait for another item, and free permits may suffice for both.
    return earlier.request->items.size() == 1;
  }
  return conflict(*earlier.item, *later.item);
}

/// Whether the request was certainly queued at this time: not leaving, not failed, lease valid.
bool surely_waits(const History& history, const Request& request, Time at) {
  if (request.is_refused() || (request.left.has_value() && *request.left <= at) ||
      (request.failed.has_value() && *request.failed <= at)) {
    return false;
  }
  const auto lease = history.leases.find(request.owner);
  return lease != history.leases.end() && lease->second.belief.covers(*request.queued, at);
}

/// Token of the grant as observed by the client, or by a watcher if the client did not observe it.
std::optional<Token> token_of(const History& history, const Request& request) {
  if (request.is_granted()) {
    return request.token();
  }
  for (const auto& [name, watcher] : history.watchers) {
    const auto seen = std::ranges::find(watcher.events, request.id, &Watched::request);
    if (seen != watcher.events.end()) {
      return seen->token;
    }
  }
  return std::nullopt;
}

/// Number of permits that were certainly held at this time.
std::uint64_t surely_taken(const std::vector<Use>& uses, Time at) {
  std::uint64_t permits = 0;
  for (const auto& use : uses) {
    const bool is_held = use.request->is_granted() && use.request->belief.covers(at, at + 1);
    permits += is_held && use.item->permits.has_value() ? use.item->permits->wanted : 0;
  }
  return permits;
}

/// The service may have granted the first request earlier, and its reply was lost. This is possible
/// only for permits: a whole lock is not granted to both.
bool may_be_let_in(const std::vector<Use>& uses, const Use& first, const Use& second) {
  const auto& permits = first.item->permits;
  return permits.has_value() &&
         surely_taken(uses, *second.request->answered) + permits->wanted <= permits->capacity;
}

bool is_overtaken(const History& history, const std::vector<Use>& uses, const Use& first,
                  const Use& second) {
  if (const auto token = token_of(history, *first.request); token.has_value()) {
    return *token > second.request->token();
  }
  return surely_waits(history, *first.request, *second.request->answered) &&
         !may_be_let_in(uses, first, second);
}

}  // namespace

void check_order(const History& history, Findings& findings) {
  for (const auto& [place, uses] : history.places) {
    for (const auto& first : uses) {
      if (!first.request->queued.has_value()) {
        continue;
      }
      const auto after = std::ranges::upper_bound(
          uses, *first.request->queued, {}, [](const Use& use) { return use.request->invoked; });
      for (auto second = after; second != uses.end(); ++second) {
        const bool counts = second->request->is_granted() && second->request != first.request &&
                            second->request->policy != WaitPolicy::reenter &&
                            second->request->owner != first.request->owner;
        if (counts && bars(first, *second) && is_overtaken(history, uses, first, *second)) {
          findings.add('F', place + ": " + describe(*first.request) + " was observed at " +
                                std::to_string(*first.request->queued) + " to be queued, and " +
                                describe(*second->request) + ", asked at " +
                                std::to_string(second->request->invoked) + ", was granted first");
        }
      }
    }
  }
}

}  // namespace tenure::history
