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

using EventBatch = std::shared_ptr<const std::vector<core::Event>>;

/// What a reader of events asked for.
struct EventFilter {
  std::string prefix{};                   ///< Only names that begin with this.
  std::optional<core::Revision> start{};  ///< From this revision on; else from now on.
  bool from_oldest = false;               ///< From the first that is remembered, whichever it is.
  /// Asked at home for each name, before it is sent.
  std::function<bool(std::string_view name)> may_read = [](std::string_view) { return true; };
};

/// The events that one reader has not been sent yet, as server-sent events (the HTML standard,
/// section 9.2). Bounded: one who reads too slowly is cut, and told the revision to go on from.
///
/// The id of an event is its revision, and only the last event of a revision has one: who comes
/// back with Last-Event-ID gets whole revisions, some events twice and none not at all.
class EventSubscription {
 public:
  EventSubscription(EventFilter filter, std::size_t buffer_max, std::function<void()> on_ready);

  /// Text to send, about `bytes_max` of it; empty if there is nothing.
  [[nodiscard]] std::string take(std::size_t bytes_max);
  /// Nothing comes any more.
  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  friend class EventFeed;

  struct Pending {
    EventBatch batch;
    std::size_t index = 0;
    bool is_live = false;
    bool ends_revision = true;

    [[nodiscard]] const core::Event& event() const { return (*batch)[index]; }
  };

  /// Some of what happened before, as the store has it.
  struct Replay {
    core::Revision revision{};  ///< Of the store, now.
    core::Revision compact_revision{};
    std::optional<core::Revision> start{};  ///< Where it begins.
    EventBatch events{};
    std::optional<core::Revision> next{};  ///< Where the rest begins; nothing: this is all.
  };

  void take_in(const Replay& replay);
  void refuse(const Error& error);
  void deliver(const EventBatch& batch);
  /// After what waits to be sent: a last event that says why, and where to go on.
  void finish(std::string_view type, std::string_view why, core::Revision resume);
  void queue(const EventBatch& batch, bool is_live);
  [[nodiscard]] bool wants(const core::Event& event) const;

  EventFilter filter_;
  const std::size_t buffer_max_;
  std::function<void()> on_ready_;
  std::function<void()> fetch_;  ///< The next part of the replay; empty when it is all here.
  bool has_begun_ = false;
  std::string prelude_;  ///< Goes before the events.
  std::deque<Pending> pending_;
  std::size_t live_pending_ = 0;
  core::Revision replayed_{};             ///< Live events up to this are known already.
  std::optional<core::Revision> cut_at_;  ///< Where to go on elsewhere, once pending_ is sent.
  std::string finale_;                    ///< Goes behind the events; then it is over.
  bool is_over_ = false;
  std::shared_ptr<void> presence_;  ///< Counts it as a reader for as long as it lives.
};

/// Hands every event to all readers. On the store's thread it only copies events, once for all
/// readers, and nothing if there is none; the rest happens at home, on the thread of HTTP.
class EventFeed final : public Listener {
 public:
  struct Options {
    std::size_t buffer_max = 4096;      ///< Events that wait for one reader.
    std::size_t in_flight_max = 65536;  ///< Events on their way to the thread of HTTP.
    /// Events looked at in one visit to the store's thread; who wants more history comes again.
    std::size_t replay_max = 1000;
    /// How long nobody may lead before streams end: without a leader nothing happens here, and what
    /// happens elsewhere is not heard. Longer than an election takes, and short for who waits.
    std::chrono::milliseconds leader_grace{2000};
  };

  EventFeed(Store& store, Metrics& metrics, boost::asio::any_io_executor home,
            const Options& options);

  void applied(const core::Applied& what, const core::State& state) override;
  void settled() override;
  void restored(const core::State& state) override;
  void role_changed(const LogPosition& log) override;

  /// `on_ready` is called at home whenever there is something to take. REQUIRES: at home.
  [[nodiscard]] std::shared_ptr<EventSubscription> subscribe(const EventFilter& filter,
                                                             std::function<void()> on_ready);
  /// Forgets its timer. REQUIRES: home does not run any more.
  void close() { grace_.reset(); }

 private:
  using Reader = std::weak_ptr<EventSubscription>;

  void fetch(const Reader& reader, const EventFilter& filter);
  static void refuse(const Reader& reader, const Error& error);
  void hand_over(const Reader& reader, const EventFilter& filter,
                 const EventSubscription::Replay& replay);
  [[nodiscard]] EventSubscription::Replay look(const View& view, const EventFilter& filter);
  [[nodiscard]] std::shared_ptr<void> count_reader();
  void deliver(const EventBatch& batch);
  void cut_all(core::Revision resume, std::string_view why);
  void set_leader(bool is_there);
  void wait_for_leader();
  void end_leaderless();
  void each_active(const std::function<void(EventSubscription&)>& visit);

  Store& store_;
  Metrics& metrics_;
  boost::asio::any_io_executor home_;
  const Options options_;

  std::vector<core::Event> gathered_;  ///< Of the store's thread, and so is the next.
  bool has_told_gap_ = false;          ///< All who read now will be cut.
  core::Revision known_{};             ///< Up to here all events were passed on, or looked at.

  std::atomic<std::size_t> readers_ = 0;
  std::atomic<std::size_t> in_flight_ = 0;

  std::vector<Reader> active_;  ///< At home, and so are the next.
  bool has_leader_ = false;
  bool is_waiting_ = false;  ///< For a leader, by grace_.
  std::optional<boost::asio::steady_timer> grace_;
};

}  // namespace tenure::server::http
