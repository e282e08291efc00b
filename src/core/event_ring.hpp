#pragma once

#include <cstddef>
#include <ranges>
#include <vector>

#include "core/cow_ptr.hpp"
#include "core/flat_queue.hpp"
#include "core/ids.hpp"
#include "core/outcome.hpp"

namespace tenure::core {

/// Events in the order in which they happened. Copies share what is old, so to copy it costs next
/// to nothing.
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
  static constexpr std::size_t chunk_events = 64;

  /// INVARIANT: all but the last are full.
  FlatQueue<CowPtr<std::vector<Event>>> chunks_;
  std::size_t gone_ = 0;  ///< Of the first chunk, those that were popped.
  std::size_t size_ = 0;
};

/// The latest events, for watchers that come late. All events of a revision are kept or none, so
/// a watcher that starts after compact_revision() misses nothing.
class EventRing {
 public:
  /// REQUIRES: not older than the last one.
  void append(Event event);
  /// Drops whole revisions, oldest first, until no more than `events_max` are left.
  void trim(std::size_t events_max);
  /// Drops all up to and with this revision.
  void compact(Revision revision);

  /// All events from `start` on. REQUIRES: start > compact_revision().
  [[nodiscard]] std::vector<Event> since(Revision start) const;
  /// Events up to and with this revision are gone.
  [[nodiscard]] Revision compact_revision() const noexcept { return compacted_; }
  [[nodiscard]] const Events& all() const noexcept { return events_; }

 private:
  Events events_;
  Revision compacted_{};
};

}  // namespace tenure::core
