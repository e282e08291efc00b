#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/store.hpp"

namespace prometheus {
class Counter;
}

namespace tenure::server {

/// Traffic counters for one peer since the start of the process.
struct PeerTraffic {
  std::uint64_t peer{};
  bool is_connected = false;  ///< An outgoing connection is established.
  std::uint64_t connections = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_dropped = 0;
  std::uint64_t snapshot_chunks_sent = 0;
  std::uint64_t snapshot_chunks_received = 0;
};

/// Totals since the start of the process, from which clients compute rates.
/// Counters are `double`, as in Prometheus.
struct Totals {
  struct Bucket {
    double bound = 0;         ///< Upper bound in seconds; the last bucket is unbounded.
    std::uint64_t count = 0;  ///< Cumulative number of observations up to the bound.
  };
  using Buckets = std::vector<Bucket>;

  double granted = 0;
  double released = 0;  ///< Holds released by their holders.
  double expired = 0;   ///< Holds ended by lease expiry.
  double forced = 0;
  double deadlocks = 0;
  double renewed = 0;
  double commands = 0;  ///< Commands applied while leading.
  Buckets acquire_seconds{};
  Buckets hold_seconds{};
  Buckets commit_seconds{};
  Buckets fsync_seconds{};
};

/// Prometheus metrics. Updated by store events on the store's thread, at a few hundred nanoseconds
/// per event. No label contains a lock name, so the number of series does not depend on client
/// input.
///
/// Two kinds of series: counters and histograms are updated by events; gauges of the present state
/// are set by observe() before a scrape, which is cheaper than updating them with each event.
class Metrics final : public Listener {
 public:
  explicit Metrics(std::string_view version);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Listener; called on the store's thread.
  void applied(const core::Applied& what, const core::State& state) override;
  void synced(std::chrono::nanoseconds took, std::size_t entries) override;
  void committed(std::chrono::nanoseconds took, std::size_t commands) override;
  void snapshot_taken(std::chrono::nanoseconds took) override;
  void snapshot_failed() override;
  void member_lost_entries() override;
  void restored(const core::State& state) override;
  void role_changed(const LogPosition& log) override;

  /// Updates gauges that have no events. Constant time. REQUIRES: the store's thread.
  void observe(const View& view);
  /// Source of the peer counters for observe(). REQUIRES: set before the first observe().
  /// `ask` is called on the store's thread and must not block.
  void ask_peers(std::function<std::vector<PeerTraffic>()> ask) { ask_peers_ = std::move(ask); }
  /// All metrics in the Prometheus text format 0.0.4. Any thread.
  /// Also updates the metrics of the process.
  [[nodiscard]] std::string text();
  /// Totals for rates. Any thread.
  [[nodiscard]] Totals totals() const;

  // Counters that any thread may increment.
  void watch_began();
  void watch_ended();
  void watch_cut();
  void fencing_rejected();  ///< A checked fencing token is not that of a current holder.
  void limit_rejected(std::string_view limit);  ///< Rejection by a limit of this process, labelled
                                                ///< with its setting.
  void denied(std::string_view verb);  ///< Request denied by the policy; see auth::Authorizer.
  void reload_failed(std::string_view what);  ///< `users` or `certificates`.
  void certificate_expires(std::string_view kind, std::chrono::sys_seconds when);

  /// Counters of one gRPC method, kept by its route. Thread safe.
  /// The counters are resolved once per route, so that a call costs one atomic increment.
  class Method {
   public:
    /// `code` is a grpc::StatusCode.
    void done(int code) const;

   private:
    friend class Metrics;
    static constexpr std::size_t codes = 17;
    std::array<prometheus::Counter*, codes> counters_{};
  };
  /// `name` as in /tenure.v1.LockService/Lock. REQUIRES: a small set, the same for all clients.
  /// Creates the series of all status codes.
  [[nodiscard]] Method method(std::string_view name);

  // Implementation
  // In metrics_series.hpp and metrics_tracker.hpp, so that other folders do not include Prometheus.
  struct Series;
  class Tracker;

 private:
  /// Applies the events of one command to the series.
  class Tally;

  /// Sets the series of one peer to its counters.
  void observe_peer(const PeerTraffic& traffic);

  /// All series; the pointers in it are constant after construction.
  std::unique_ptr<Series> series_;
  std::function<std::vector<PeerTraffic>()> ask_peers_;
  std::unique_ptr<Tracker> tracker_;  ///< Store thread only, like the next member.
  bool is_in_step_ = false;           ///< The tracker contains all holds and waits of the state.
};

}  // namespace tenure::server
