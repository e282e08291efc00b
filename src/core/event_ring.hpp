#pragma once

#include <cstddef>
#include <ranges>
#include <vector>

#include "core/cow_ptr.hpp"
#include "core/flat_queue.hpp"
#include "core/ids.hpp"
#include "core/outcome.hpp"

namespace tenure::core {

/// Chunked deque of events with copy-on-write chunks: a copy costs one pointer per 64 events, so a
/// snapshot of the ring does not stall the state machine. Different threads may use different
/// copies.
class Events {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const Event& operator[](std::size_t index) const {
    const auto position = gone_ + index;
    return (*chunks_[position / chunk_events])[position % chunk_events];
  }
  [[nodiscard]] const Event& front() const { return (*this)[0]; }
  [[nodiscard]] const Event& back() const { return chunks_.back()->back(); }
  [[nodiscard]] auto in_order() const {
    return std::views::iota(std::size_t{0}, size_) |
           std::views::transform(
               [this](std::size_t index) -> const Event& { return (*this)[index]; });
  }

  void push_back(Event event);
  void pop_front();

 private:
  /// Events of a chunk: few, because an append copies a chunk that an image shares; and enough that
  /// an image of 4096 events copies 64 pointers.
  static constexpr std::size_t chunk_events = 64;

  /// Chunks, oldest first.
  /// INVARIANT: all chunks but the last are full.
  FlatQueue<CowPtr<std::vector<Event>>> chunks_;
  std::size_t gone_ = 0;  ///< Number of popped events in the first chunk.
  std::size_t size_ = 0;
};

/// Bounded history of events, from which a watch can resume. Keeps all events of a revision or
/// none, so a watch that starts after compact_revision() misses no event. Not thread safe.
class EventRing {
 public:
  /// REQUIRES: event.revision is not less than that of the last event.
  void append(Event event);
  /// Drops whole revisions, oldest first, until at most `events_max` events are left.
  void trim(std::size_t events_max);
  /// Drops all events up to and with this revision.
  void compact(Revision revision);

  /// All events from `start` on. REQUIRES: start > compact_revision().
  [[nodiscard]] std::vector<Event> since(Revision start) const;
  /// Revision up to and with which events were dropped.
  [[nodiscard]] Revision compact_revision() const noexcept { return compacted_; }
  [[nodiscard]] const Events& all() const noexcept { return events_; }

 private:
  /// Kept events, oldest first.
  Events events_;
  /// Last revision whose events were dropped.
  Revision compacted_{};
};

}  // namespace tenure::core
