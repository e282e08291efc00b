#pragma once

#include <cstddef>
#include <vector>

#include "core/flat_queue.hpp"
#include "core/ids.hpp"
#include "core/outcome.hpp"

namespace tenure::core {

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
  [[nodiscard]] const FlatQueue<Event>& all() const noexcept { return events_; }

 private:
  FlatQueue<Event> events_;
  Revision compacted_{};
};

}  // namespace tenure::core
