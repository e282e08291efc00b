#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/outcome.hpp"
#include "server/metrics/metrics.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Events of one batch of the store. All subscribers share the copy; it is immutable.
using EventBatch = std::shared_ptr<const std::vector<core::Event>>;

/// Selection of events by a subscriber.
struct EventFilter {
  std::string prefix{};                   ///< Prefix of lock names.
  std::optional<core::Revision> start{};  ///< First revision to deliver; nullopt: only new events.
  bool from_oldest = false;               ///< Start with the oldest retained event.
  /// Read permission; evaluated on the HTTP thread for each event before it is sent.
  std::function<bool(std::string_view name)> may_read = [](std::string_view) { return true; };
};

/// Pending events of one subscriber, as server-sent events (HTML standard, section 9.2). Bounded: a
/// slow reader is cancelled and gets the revision to resume from.
///
/// The id of an event is its revision; only the last event of a revision has one. A reader that
/// reconnects with Last-Event-ID gets whole revisions: some events twice, none lost.
///
/// Life cycle: replay of the history in parts, then live events, then the final event. A replay is
/// not counted against the limit, because its parts are fetched one at a time, each after the
/// reader has taken the one before.
///
/// HTTP thread only. Owned by its connection; the feed holds a weak_ptr, so closing the connection
/// unsubscribes.
class EventSubscription {
 public:
  /// `buffer_max`: maximum number of pending live events. `on_ready`: called when take() may return
  /// text; it may call take() directly.
  EventSubscription(EventFilter filter, std::size_t buffer_max, std::function<void()> on_ready);

  /// Next text to send, about `bytes_max` bytes; empty: none pending. An event is serialised only
  /// when it is taken, so pending events cost a reference each.
  [[nodiscard]] std::string take(std::size_t bytes_max);
  /// The stream has ended.
  [[nodiscard]] bool is_finished() const { return is_finished_; }

 private:
  friend class EventFeed;

  /// Reference to an event in a shared batch.
  struct Pending {
    EventBatch batch;
    std::size_t index = 0;
    bool is_live = false;
    bool ends_revision = true;

    [[nodiscard]] const core::Event& event() const { return (*batch)[index]; }
  };

  /// Part of the event history, copied from the store.
  struct Replay {
    core::Revision revision{};  ///< Revision of the store at the time of the copy.
    core::Revision compact_revision{};
    std::optional<core::Revision> start{};  ///< First revision of the replay.
    EventBatch events{};
    std::optional<core::Revision>
        next{};  ///< First revision of the next part; nullopt: the replay is complete.
  };

  /// Queues a part of the history. A start revision that is compacted ends the stream instead:
  /// events before it are lost, so the reader must list the locks and start again.
  void add_replay(const Replay& replay);
  /// Ends the stream with an error event: the store cannot be read.
  void refuse(const Error& error);
  /// Queues the live events of a batch; no effect once the stream is ending.
  void deliver(const EventBatch& batch);
  /// Queues a final event with the reason and the revision to resume from.
  void finish(std::string_view type, std::string_view why, core::Revision resume);
  /// Appends the wanted events, or ends the stream at the event that exceeds the limit.
  void queue(const EventBatch& batch, bool is_live);
  [[nodiscard]] bool wants(const core::Event& event) const;

  /// Its start moves forward with each part of a replay.
  EventFilter filter_;
  const std::size_t buffer_max_;
  std::function<void()> on_ready_;
  std::function<void()> fetch_;  ///< Requests the next part of the replay; empty: complete.
  /// The `ready` event was queued; it precedes the first part of a replay only.
  bool has_started_ = false;
  std::string initial_event_;  ///< Initial event, sent before all others.
  std::deque<Pending> pending_;
  /// Number of live events in pending_.
  std::size_t live_pending_ = 0;
  core::Revision replayed_{};  ///< Live events up to this revision are part of the replay.
  std::optional<core::Revision>
      resume_at_;  ///< Revision to resume from after pending_ is sent; set: the stream is ending.
  std::string final_event_;  ///< Final event, sent after pending_; then the stream ends.
  bool is_finished_ = false;
  std::shared_ptr<void> reader_guard_;  ///< Decrements the number of subscribers on destruction.
};

/// Publishes store events to all subscribers. On the store's thread it only copies each batch once,
/// and nothing without subscribers; the rest runs on the HTTP thread.
///
/// Delivery is gapless: the store's thread posts every batch in log order, and a replay is posted
/// between the batches at the revision it was copied at. Live events up to that revision are then
/// skipped by the subscriber, so none is duplicated.
///
/// Flow control has two stages: `in_flight_max` bounds the queue between the threads, `buffer_max`
/// bounds each subscriber. Both cancel readers instead of delaying the store.
class EventFeed final : public Listener {
 public:
  struct Options {
    std::size_t buffer_max = 4096;  ///< Maximum number of pending events per subscriber.
    std::size_t in_flight_max =
        65536;  ///< Maximum number of events posted to the HTTP thread and not yet processed.
    /// Maximum number of events visited in one step on the store's thread; longer replays take
    /// several steps.
    std::size_t replay_max = 1000;
    /// Time without a leader before streams end: a member without a leader does not receive events.
    /// Longer than an election, short enough for readers to move to another member.
    std::chrono::milliseconds leader_grace{2000};
  };

  EventFeed(Store& store, Metrics& metrics, boost::asio::any_io_executor executor,
            const Options& options);

  // Listener; called on the store's thread.
  void applied(const core::Applied& what, const core::State& state) override;
  void settled() override;
  void restored(const core::State& state) override;
  void role_changed(const LogPosition& log) override;

  /// `on_ready` is called on the HTTP thread when there is text to send. REQUIRES: the HTTP thread.
  [[nodiscard]] std::shared_ptr<EventSubscription> subscribe(const EventFilter& filter,
                                                             std::function<void()> on_ready);
  /// Destroys the timer. REQUIRES: the executor has stopped.
  void close() { grace_.reset(); }

 private:
  /// weak: a subscription belongs to its connection and may end at any time.
  using SubscriberRef = std::weak_ptr<EventSubscription>;

  /// Copies one part of the history on the store's thread and passes it to hand_over().
  void fetch(const SubscriberRef& reader, const EventFilter& filter);
  static void refuse(const SubscriberRef& reader, const Error& error);
  /// Adds a part of the replay. After the last part the subscriber becomes active.
  void hand_over(const SubscriberRef& reader, const EventFilter& filter,
                 const EventSubscription::Replay& replay);
  /// Copies the part of the history that starts at the filter. Store thread only.
  [[nodiscard]] EventSubscription::Replay read_replay(const View& view, const EventFilter& filter);
  /// Counts a subscriber until the returned guard is destroyed.
  [[nodiscard]] std::shared_ptr<void> count_reader();
  void deliver(const EventBatch& batch);
  /// Ends all active streams; their readers resume at this revision.
  void cancel_all(core::Revision resume, std::string_view why);
  /// Starts or cancels the grace period. HTTP thread.
  void set_leader(bool is_there);
  void wait_for_leader();
  /// Ends all streams after the grace period, so that readers move to a member that has a leader.
  void end_streams_without_leader();
  /// Visits the subscribers that are neither closed nor ending, and forgets the others. A visited
  /// subscriber may unsubscribe itself or others: shared_ptrs keep all of them alive for the visit.
  void each_active(const std::function<void(EventSubscription&)>& visit);

  Store& store_;
  Metrics& metrics_;
  boost::asio::any_io_executor executor_;
  const Options options_;

  std::vector<core::Event> gathered_;  ///< Events of the current entry. Guarded by the store's
                                       ///< thread, like the next two members.
  bool has_reported_gap_ = false;      ///< A cancellation of all current readers has been posted.
  core::Revision known_{};  ///< All events up to this revision were published or replayed.

  /// Number of subscribers; the store's thread skips all copies when it is zero. Relaxed order is
  /// sufficient: a subscriber gets events it missed here from its replay.
  std::atomic<std::size_t> readers_ = 0;
  /// Number of events posted to the HTTP thread and not yet delivered.
  std::atomic<std::size_t> in_flight_ = 0;

  std::vector<SubscriberRef>
      active_;  ///< Active subscribers. HTTP thread only, like the following members.
  bool has_leader_ = false;
  bool is_waiting_ = false;  ///< grace_ is running.
  std::optional<boost::asio::steady_timer> grace_;
};

}  // namespace tenure::server::http
