#include "core/event_ring.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace tenure::core {

// Appends to the last chunk, which is copied first if an image shares it: at most 64 events.
void Events::push_back(Event event) {
  if (chunks_.empty() || chunks_.back()->size() == chunk_events) {
    // Reserved as a whole, so that a chunk that no image shares does not reallocate while it fills.
    std::vector<Event> chunk;
    chunk.reserve(chunk_events);
    chunks_.push_back(CowPtr(std::move(chunk)));
  }
  chunks_.edit_back().edit().push_back(std::move(event));
  ++size_;
}

void Events::pop_front() {
  --size_;
  // Events are freed by chunk. An empty ring drops its last chunk, too, and so owns no events.
  if (++gone_ == chunk_events || size_ == 0) {
    chunks_.pop_front();
    gone_ = 0;
  }
}

void EventRing::append(Event event) {
  assert(events_.empty() || events_.back().revision <= event.revision);
  assert(event.revision > compacted_);
  events_.push_back(std::move(event));
}

// Drops all events of a revision at once, so that a watch never resumes in the middle of one.
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
  const auto all = events_.in_order();
  std::vector<Event> events;
  // Binary search: a watch that resumes near the end does not read the whole ring.
  std::ranges::copy(std::ranges::lower_bound(all, start, {}, &Event::revision), all.end(),
                    std::back_inserter(events));
  return events;
}

}  // namespace tenure::core
