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

/// What went to and came from one other member since the start of the process.
struct PeerTraffic {
  std::uint64_t peer{};
  bool is_connected = false;  ///< We can send to it.
  std::uint64_t connections = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_dropped = 0;
  std::uint64_t snapshot_chunks_sent = 0;
  std::uint64_t snapshot_chunks_received = 0;
};

/// What was counted since the start of the process, for those who compute rates.
struct Totals {
  struct Bucket {
    double bound = 0;         ///< In seconds; the last one has none.
    std::uint64_t count = 0;  ///< Of all that were observed up to this bound.
  };
  using Buckets = std::vector<Bucket>;

  double granted = 0;
  double released = 0;  ///< By the holder.
  double expired = 0;   ///< Holds that ended with their lease.
  double forced = 0;
  double deadlocks = 0;
  double renewed = 0;
  double commands = 0;  ///< Only by the leader.
  Buckets acquire_seconds{};
  Buckets hold_seconds{};
  Buckets commit_seconds{};
  Buckets fsync_seconds{};
};

/// Counts what happens, for Prometheus. Hears of it on the store's thread, where it costs a few
/// hundred nanoseconds for each event; no lock is ever named in a label, so the number of series
/// does not depend on what clients do.
class Metrics final : public Listener {
 public:
  explicit Metrics(std::string_view version);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void applied(const core::Applied& what, const core::State& state) override;
  void synced(std::chrono::nanoseconds took, std::size_t entries) override;
  void committed(std::chrono::nanoseconds took, std::size_t commands) override;
  void snapshot_taken(std::chrono::nanoseconds took) override;
  void snapshot_failed() override;
  void member_lost_entries() override;
  void restored(const core::State& state) override;
  void role_changed(const LogPosition& log) override;

  /// Takes what is not told by events. REQUIRES: on the store's thread. Quick: no scan.
  void observe(const View& view);
  /// What observe() asks about the other members. REQUIRES: before the first observe().
  void ask_peers(std::function<std::vector<PeerTraffic>()> ask) { ask_peers_ = std::move(ask); }
  /// Everything in the text format, version 0.0.4. On any thread.
  [[nodiscard]] std::string text();
  /// On any thread.
  [[nodiscard]] Totals totals() const;

  // From any thread.
  void watch_began();
  void watch_ended();
  void watch_cut();
  void fencing_rejected();  ///< Somebody asked about a token that is nobody's any more.
  void limit_rejected(std::string_view limit);  ///< Limits of this process, by their setting.
  void denied(std::string_view verb);           ///< By the rights of users; see auth::Gate.
  void reload_failed(std::string_view what);    ///< `users` or `certificates`.
  void certificate_expires(std::string_view kind, std::chrono::sys_seconds when);

  /// The counters of one gRPC method, to be kept by whoever serves it. Thread safe.
  class Method {
   public:
    /// `code` is an grpc::StatusCode.
    void done(int code) const;

   private:
    friend class Metrics;
    static constexpr std::size_t codes = 17;
    std::array<prometheus::Counter*, codes> counters_{};
  };
  /// `name` as in /tenure.v1.Lock/Acquire. REQUIRES: a few, and the same for all clients.
  [[nodiscard]] Method method(std::string_view name);

  // How it is made.
  struct Series;
  class Tracker;

 private:
  class Tally;

  void observe_peer(const PeerTraffic& traffic);

  std::unique_ptr<Series> series_;
  std::function<std::vector<PeerTraffic>()> ask_peers_;
  std::unique_ptr<Tracker> tracker_;  ///< Of the store's thread, and so is the next.
  bool is_in_step_ = false;           ///< The tracker knows all holds and waits of the state.
};

}  // namespace tenure::server
