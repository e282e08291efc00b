#include "core/event_ring.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tenure::core {

void EventRing::append(Event event) {
  assert(events_.empty() || events_.back().revision <= event.revision);
  assert(event.revision > compacted_);
  events_.push_back(std::move(event));
}

void EventRing::trim(std::size_t events_max) {
  while (events_.size() > events_max) {
    compact(events_.front().revision);
  }
}

void EventRing::compact(Revision revision) {
  while (!events_.empty() && events_.front().revision <= revision) {
    events_.pop_front();
  }
  compacted_ = std::max(compacted_, revision);
}

std::vector<Event> EventRing::since(Revision start) const {
  assert(start > compacted_);
  const auto first = std::ranges::lower_bound(events_, start, {}, &Event::revision);
  return {first, events_.end()};
}

}  // namespace tenure::core
