#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <tenure/lock_mode.hpp>

#include "core/item.hpp"
#include "server/metrics/metrics.hpp"
#include "sys/steered_clock.hpp"

namespace tenure::server {

/// Claim kinds used as labels: the lock modes, and permits of a semaphore.
inline constexpr std::size_t claim_modes = core::claim_kinds;
/// Value of the label `mode`.
[[nodiscard]] std::string_view mode_name(std::size_t index) noexcept;

/// Result of an acquire request.
/// A request refused because the lock is busy is counted as would_block, which has no mode.
enum class AcquireResult : std::uint8_t { granted, abandoned, deadlock, expired, revoked };
inline constexpr std::size_t acquire_results = 5;

/// Reason for the end of a hold.
enum class ReleaseReason : std::uint8_t { released, expired, revoked, forced };
inline constexpr std::size_t release_reasons = 4;

/// Pointers to all series. Resolved once, because a lookup by labels costs more than the update.
///
/// The registry owns the series, which live as long as it. The series of Prometheus are thread
/// safe. The names and help texts are in metrics_series.cpp.
struct Metrics::Series {
  explicit Series(std::string_view version);

  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  using Histogram = prometheus::Histogram;

  prometheus::Registry registry;

  // Locks and leases
  std::array<std::array<Counter*, acquire_results>, claim_modes> acquired{};
  Counter* would_block{};
  Histogram* acquire_seconds{};
  Histogram* hold_seconds{};
  std::array<Counter*, release_reasons> released{};
  std::array<Gauge*, claim_modes> held{};
  Gauge* waiters{};
  Gauge* leases{};
  Gauge* state_bytes{};
  Gauge* state_bytes_limit{};
  Counter* answers_dropped{};
  Counter* renewed{};
  Counter* renewed_lost{};
  Counter* lease_granted{};
  Counter* lease_expired{};
  Counter* deadlocks{};
  Counter* fencing_rejected{};
  // A family instead of a series: its label values are settings or verbs, which are few.
  prometheus::Family<Counter>* limit_rejected{};
  prometheus::Family<Counter>* denied{};

  // Log and store
  Gauge* is_leader{};
  Gauge* term{};
  Gauge* commit_index{};
  Gauge* applied_index{};
  Counter* leader_changes{};
  Histogram* fsync_seconds{};
  Histogram* fsync_entries{};
  Histogram* commit_seconds{};
  Histogram* batch_commands{};
  Gauge* log_bytes{};
  Gauge* snapshot_bytes{};
  Histogram* snapshot_seconds{};
  Counter* snapshot_failed{};
  Counter* member_lost_entries{};
  Gauge* has_space{};
  Gauge* revision{};
  Gauge* cluster_version{};

  // Labelled by peer; a cluster has few.
  prometheus::Family<Gauge>* peer_connected{};
  prometheus::Family<Counter>* peer_connections{};
  prometheus::Family<Counter>* peer_bytes{};
  prometheus::Family<Counter>* peer_messages{};
  prometheus::Family<Counter>* peer_dropped{};
  prometheus::Family<Counter>* peer_snapshot_chunks{};

  // Clients
  Gauge* watchers{};
  Counter* watches_cut{};
  prometheus::Family<Counter>* requests{};
  prometheus::Family<Counter>* reload_failed{};
  prometheus::Family<Gauge>* certificate_expiry{};

  // Process
  Gauge* start_time{};
  Gauge* clock_steering{};
  /// Offset between CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW at process start.
  std::chrono::nanoseconds clock_offset_at_start = sys::clock_offset();
  Gauge* resident_bytes{};
  Gauge* open_files{};
  Counter* cpu_seconds{};
};

}  // namespace tenure::server
