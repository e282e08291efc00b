#include <algorithm>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// Whether the earlier one keeps the later one out as long as it waits.
bool bars(const Use& earlier, const Use& later) {
  if (earlier.item->permits.has_value() && later.item->permits.has_value()) {
    // Of several items another may be what it waits for, and these permits may be enough for both.
    return earlier.request->items.size() == 1;
  }
  return conflict(*earlier.item, *later.item);
}

/// It was in the queue at this time for sure: it did not begin to leave, was not refused, and its
/// lease lived.
bool surely_waits(const History& history, const Request& request, Time at) {
  if (request.is_refused() || (request.left.has_value() && *request.left <= at) ||
      (request.failed.has_value() && *request.failed <= at)) {
    return false;
  }
  const auto lease = history.leases.find(request.owner);
  return lease != history.leases.end() && lease->second.belief.covers(*request.queued, at);
}

bool is_overtaken(const History& history, const Request& first, const Request& second) {
  if (first.is_granted()) {
    return first.token() > second.token();
  }
  return surely_waits(history, first, *second.answered);
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
                            second->request->asking != Asking::reenter &&
                            second->request->owner != first.request->owner;
        if (counts && bars(first, *second) &&
            is_overtaken(history, *first.request, *second->request)) {
          findings.add('F', place + ": " + words(*first.request) + " was told at " +
                                std::to_string(*first.request->queued) + " that it waits, and " +
                                words(*second->request) + ", asked at " +
                                std::to_string(second->request->invoked) + ", went before it");
        }
      }
    }
  }
}

}  // namespace tenure::history
