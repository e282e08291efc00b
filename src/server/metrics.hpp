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

#include "server/store.hpp"

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
  void restored(const core::State& state) override;
  void role_changed(const LogPosition& log) override;

  /// Takes what is not told by events. REQUIRES: on the store's thread. Quick: no scan.
  void observe(const View& view);
  /// What observe() asks about the other members. REQUIRES: before the first observe().
  void ask_peers(std::function<std::vector<PeerTraffic>()> ask) { ask_peers_ = std::move(ask); }
  /// Everything in the text format, version 0.0.4. On any thread.
  [[nodiscard]] std::string text();

  // From any thread.
  void watch_began();
  void watch_ended();
  void watch_cut();
  void limit_rejected(std::string_view limit);  ///< Limits of this process, by their setting.

  /// The counters of one gRPC method, to be kept by whoever serves it. Thread safe.
  class Method {
   public:
    /// `code` is an h2::StatusCode.
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
