#include <algorithm>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// Time until which the other request can block the waiter; 0: it does not.
Time in_the_way_until(const History& history, const Use& waiter, const Use& other) {
  const auto& first = *other.request;
  const auto& second = *waiter.request;
  const bool is_same = &first == &second;
  const bool may_meet = conflict(*waiter.item, *other.item) ||
                        (waiter.item->permits.has_value() && other.item->permits.has_value());
  const bool is_behind = first.invoked > *second.queued;
  if (is_same || !may_meet || (is_behind && first.policy != WaitPolicy::reenter)) {
    return 0;
  }
  return latest_end(history, first);
}

Time end_of_wait(const History& history, const Request& request) {
  auto end = *history.end;
  for (const auto& moment : {request.answered, request.failed, request.left}) {
    end = std::min(end, moment.value_or(end));
  }
  return end;
}

}  // namespace

void check_progress(const History& history, Findings& findings) {
  if (history.bound == 0 || history.healed == never || !history.end.has_value()) {
    return;
  }
  for (const auto& [id, request] : history.requests) {
    const auto lease = history.leases.find(request.owner);
    if (!request.queued.has_value() || lease->second.lost.has_value()) {
      continue;
    }
    const auto end = end_of_wait(history, request);
    auto free = std::max(*request.queued, history.healed);
    for (const auto& item : request.items) {
      for (const auto& other : history.places.at(place_of(item))) {
        const Use waiter{.request = &request, .item = &item};
        free = std::max(free, in_the_way_until(history, waiter, other));
      }
    }
    // Compared in this order because `free` may be `never`.
    if (free < end && end - free > history.bound) {
      findings.add('R', describe(request) + " waits for " + describe(request.items.front()) +
                            ", which is free since " + std::to_string(free) + ", until " +
                            std::to_string(end));
    }
  }
}

}  // namespace tenure::history
