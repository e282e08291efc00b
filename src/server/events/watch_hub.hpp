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

/// What somebody wants to hear of.
struct WatchSpec {
  std::string key{};
  Match match = Match::exact;
  core::Revision start{};  ///< The first revision to tell; 0: from now on.
  EventTypes types = EventTypes::all();
  std::size_t buffer_events_max = 4096;  ///< Who is further behind than this is cut.
};

/// Everything that happens to some locks, in order, without gap or duplicate, waiting to be taken.
class Watch {
 public:
  using Events = std::vector<std::shared_ptr<const core::Event>>;

  /// The next events, whole revisions, at most `events_max` unless one revision alone has more.
  [[nodiscard]] Events take(std::size_t events_max);
  [[nodiscard]] bool has_events() const noexcept { return !pending_.empty(); }
  /// More of the replay follows after what can be taken: call WatchHub::replay().
  [[nodiscard]] bool is_replaying() const noexcept { return replay_from_.has_value(); }
  /// The reader was too slow: nothing more comes. Start again from here to miss nothing.
  [[nodiscard]] std::optional<core::Revision> cancelled_at() const noexcept {
    return cancelled_at_;
  }

 private:
  friend class WatchHub;

  void offer(std::shared_ptr<const core::Event> event);
  /// First revision that was not taken; `otherwise` if everything known was taken.
  [[nodiscard]] core::Revision resume_revision(core::Revision otherwise) const;

  WatchSpec spec_;
  std::function<void()> ready_;
  std::deque<std::shared_ptr<const core::Event>> pending_;
  /// First revision that is not copied from the state yet. Until all are copied, new events are
  /// not offered: the replay gets to them.
  std::optional<core::Revision> replay_from_;
  std::optional<core::Revision> cancelled_at_;
  bool is_notified_ = false;
};

/// Passes events on to watches. A watcher that does not take its events is cut; nobody waits for
/// it. Watches are of a connection, never of the log. For the store's thread only.
class WatchHub final : public Listener {
 public:
  /// What was asked for is forgotten up to and with this revision.
  struct Compacted {
    core::Revision revision{};
  };

  /// `metrics`: where watches are counted, or nowhere.
  explicit WatchHub(Metrics* metrics = nullptr) : metrics_(metrics) {}

  /// Upper bound for the events that one call looks at, beyond the end of a revision: about a
  /// millisecond.
  static constexpr std::size_t replay_max = 4096;

  /// Replays what the state still remembers from `wish.start` on, the first `replay_max` events at
  /// once, then goes on with what comes. `ready` is called when there is something to take, or it
  /// was cut, after it had nothing.
  [[nodiscard]] std::expected<std::shared_ptr<Watch>, Compacted> add(WatchSpec spec,
                                                                     const core::State& state,
                                                                     std::function<void()> ready);
  /// Copies the next part of the replay. The watch is cut if the state has forgotten it. No effect
  /// on a watch that is not replaying.
  void replay(Watch& watch, const core::State& state);
  void remove(const std::shared_ptr<Watch>& watch);

  [[nodiscard]] std::size_t watches() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t cancelled_total() const noexcept { return cancelled_total_; }

  void applied(const core::Applied& what, const core::State& state) override;
  void settled() override;
  /// Tells what the new state remembers of the time in between. If that is not all, every watch is
  /// cut there.
  void restored(const core::State& state) override;

 private:
  using Watches = std::vector<std::shared_ptr<Watch>>;

  [[nodiscard]] absl::flat_hash_map<std::string, Watches>& table_of(Match match) {
    return match == Match::exact ? exact_ : prefixes_;
  }
  void offer(const Watches& watches, const std::shared_ptr<const core::Event>& event);
  void publish(const core::Event& event);
  void cancel(Watch& watch, core::Revision resume);
  void cancel_all(core::Revision start);

  Metrics* metrics_;
  absl::flat_hash_map<std::string, Watches> exact_;
  absl::flat_hash_map<std::string, Watches> prefixes_;
  /// How many of prefixes_ have each length: a name is looked up once per length that there is.
  std::map<std::size_t, std::size_t> lengths_;
  std::vector<std::weak_ptr<Watch>> to_notify_;
  core::Revision last_{};  ///< Everything up to here was told to those who watch.
  std::size_t count_ = 0;
  std::uint64_t cancelled_total_ = 0;
};

}  // namespace tenure::server
