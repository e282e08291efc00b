#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/ids.hpp"
#include "core/outcome.hpp"
#include "server/metrics/metrics.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// How the key of a watch selects lock names.
enum class Match : std::uint8_t { exact, prefix };

/// A set of event types.
class EventTypes {
 public:
  [[nodiscard]] static EventTypes all() { return EventTypes(~0U); }
  [[nodiscard]] static EventTypes none() { return EventTypes(0); }
  void add(core::EventType type) { bits_ |= 1U << static_cast<unsigned>(type); }
  [[nodiscard]] bool contains(core::EventType type) const {
    return ((bits_ >> static_cast<unsigned>(type)) & 1U) != 0;
  }

 private:
  explicit EventTypes(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_;
};

/// Subscription: keys, event types, start revision and buffer size.
struct WatchSpec {
  std::string key{};
  Match match = Match::exact;
  core::Revision start{};  ///< First revision; 0: new events only.
  EventTypes types = EventTypes::all();
  std::size_t buffer_events_max = 4096;  ///< A watch with more pending events is cancelled.
};

/// Watch: buffered events of some locks, in order, without gap or duplicate. Not thread safe;
/// belongs to the store's thread.
class Watch {
 public:
  using Events = std::vector<std::shared_ptr<const core::Event>>;

  /// Removes the next events: whole revisions, at most `events_max` unless one revision has more.
  [[nodiscard]] Events take(std::size_t events_max);
  [[nodiscard]] bool has_events() const noexcept { return !pending_.empty(); }
  /// Whether more of the replay follows: call WatchHub::replay() after take().
  [[nodiscard]] bool is_replaying() const noexcept { return replay_from_.has_value(); }
  /// Resume revision of a cancelled watch, whose reader was too slow; empty: active.
  [[nodiscard]] std::optional<core::Revision> cancelled_at() const noexcept {
    return cancelled_at_;
  }
  /// First revision that was not taken; `otherwise` if no events are pending.
  [[nodiscard]] core::Revision resume_revision(core::Revision otherwise) const;

 private:
  friend class WatchHub;

  /// Queues the event if the watch wants it; cancels the watch if its buffer is full.
  void offer(std::shared_ptr<const core::Event> event);

  WatchSpec spec_;
  /// Notifies the reader; see WatchHub::add().
  std::function<void()> ready_;
  std::deque<std::shared_ptr<const core::Event>> pending_;
  /// First revision that is not copied from the state yet; empty: the replay is complete. New
  /// events are not offered before: the replay reaches them.
  std::optional<core::Revision> replay_from_;
  std::optional<core::Revision> cancelled_at_;
  /// ready_ is due at the end of the batch.
  bool is_notified_ = false;
};

/// Publisher of events to watches. A watch whose reader is too slow is cancelled and never blocks
/// the store. Watches belong to a connection and are not replicated. Not thread safe; belongs to
/// the store's thread.
class WatchHub final : public Listener {
 public:
  /// Error of add(): events up to and including this revision are compacted.
  struct Compacted {
    core::Revision revision{};
  };

  /// `metrics` counts watches; null: none.
  explicit WatchHub(Metrics* metrics = nullptr) : metrics_(metrics) {}

  /// Upper bound for the events that one call visits, beyond the end of a revision: about 1 ms.
  static constexpr std::size_t replay_max = 4096;

  /// Adds a watch. Replays the retained events from `spec.start` on, the first `replay_max` in this
  /// call, then continues with new events. `ready` is called when events become available after the
  /// buffer was empty, and when the watch is cancelled.
  [[nodiscard]] std::expected<std::shared_ptr<Watch>, Compacted> add(WatchSpec spec,
                                                                     const core::State& state,
                                                                     std::function<void()> ready);
  /// Copies the next part of the replay. Cancels the watch if these events were compacted since. No
  /// effect on a watch that is not replaying.
  void replay(Watch& watch, const core::State& state);
  void remove(const std::shared_ptr<Watch>& watch);

  [[nodiscard]] std::size_t watches() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t cancelled_total() const noexcept { return cancelled_total_; }

  void applied(const core::Applied& what, const core::State& state) override;
  void settled() override;
  /// Publishes the events in the new state that were missed. If some were compacted, cancels every
  /// watch at that revision.
  void restored(const core::State& state) override;

 private:
  using Watches = std::vector<std::shared_ptr<Watch>>;

  [[nodiscard]] absl::flat_hash_map<std::string, Watches>& table_of(Match match) {
    return match == Match::exact ? exact_ : prefixes_;
  }
  void offer(const Watches& watches, const std::shared_ptr<const core::Event>& event);
  /// Offers an event to the watches of its name and of every prefix of its name.
  void publish(const core::Event& event);
  /// Ends a watch; its reader learns the resume revision from cancelled_at().
  void cancel(Watch& watch, core::Revision resume);
  /// Cancels every watch at its first event that was not taken, or at `start`.
  void cancel_all(core::Revision start);

  Metrics* metrics_;
  /// Watches by key. The cost of an event depends on the matching watches and on the number of
  /// distinct prefix lengths, not on all watches.
  absl::flat_hash_map<std::string, Watches> exact_;
  absl::flat_hash_map<std::string, Watches> prefixes_;
  /// Number of entries of prefixes_ by length. A name is looked up once per existing length.
  std::map<std::size_t, std::size_t> lengths_;
  /// Watches to notify in settled(): once per batch of entries, not once per event. weak: a watch
  /// may be removed before.
  std::vector<std::weak_ptr<Watch>> to_notify_;
  core::Revision last_{};  ///< Last published revision.
  std::size_t count_ = 0;
  std::uint64_t cancelled_total_ = 0;
};

}  // namespace tenure::server
