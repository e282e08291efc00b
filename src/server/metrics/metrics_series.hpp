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

/// Result of an acquire request.
/// A request refused because the lock is busy is counted as would_block, which has no mode.
enum class AcquireResult : std::uint8_t { granted, abandoned, deadlock, expired, revoked };
inline constexpr std::size_t acquire_results = 5;

/// Reason for the end of a hold.
enum class ReleaseReason : std::uint8_t { released, expired, revoked, forced };
inline constexpr std::size_t release_reasons = 4;

// 100 us to 100 s in half-decade steps: waits and hold times depend on the application.
inline const prometheus::Histogram::BucketBoundaries waiting_buckets{
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};
// 30 us to 3 s: the range of a disk write.
inline const prometheus::Histogram::BucketBoundaries disk_buckets{
    0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3};
// Numbers of commands or entries, not times.
inline const prometheus::Histogram::BucketBoundaries batch_buckets{1,   2,   5,   10,   20,  50,
                                                                   100, 200, 500, 1000, 5000};

/// Registers series, with one family for each name.
class SeriesMaker {
 public:
  explicit SeriesMaker(prometheus::Registry& registry) : registry_(registry) {}

  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) const {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  prometheus::Counter& counter(const char* name, const char* help) const {
    return counters(name, help).Add({});
  }
  prometheus::Family<prometheus::Gauge>& gauges(const char* name, const char* help) const {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  }
  prometheus::Gauge& gauge(const char* name, const char* help) const {
    return gauges(name, help).Add({});
  }
  prometheus::Histogram& histogram(const char* name, const char* help,
                                   const prometheus::Histogram::BucketBoundaries& buckets) const {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add({}, buckets);
  }

 private:
  prometheus::Registry& registry_;
};

/// All series with their names and help texts. Resolved once, because a lookup by labels costs more
/// than the update.
///
/// Series of fixed labels exist with 0 from the start: a rate over a series that appears later
/// misses its first increment. The registry owns the series. The series of Prometheus are thread
/// safe.
struct Metrics::Series {
  explicit Series(std::string_view version);

  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  using Histogram = prometheus::Histogram;
  // A family instead of a series: its label values are settings, verbs or peers, which are few.
  using Counters = prometheus::Family<Counter>;
  using Gauges = prometheus::Family<Gauge>;

  prometheus::Registry registry;
  const SeriesMaker make{registry};

  // Locks
  std::array<std::array<Counter*, acquire_results>, claim_modes> acquired{};
  Counter* would_block{};
  std::array<Gauge*, claim_modes> held{};
  std::array<Counter*, release_reasons> released{};
  Histogram& acquire_seconds = make.histogram(
      "tenure_acquire_seconds", "Time from request to grant, in cluster time.", waiting_buckets);
  Histogram& hold_seconds = make.histogram(
      "tenure_hold_seconds", "Time from grant to release, in cluster time.", waiting_buckets);
  Gauge& waiters = make.gauge("tenure_waiters", "Requests in wait queues.");
  Counter& deadlocks =
      make.counter("tenure_deadlocks_total", "Requests refused as deadlock victims.");
  Counter& fencing_rejected =
      make.counter("tenure_fencing_rejected_total", "Checked fencing tokens that were not held.");
  Counters& limit_rejected =
      make.counters("tenure_limit_rejected_total", "Requests rejected by a limit, by setting.");
  Counters& denied =
      make.counters("tenure_denied_total", "Requests denied for lack of a right, by right.");

  // Leases
  Gauge& leases = make.gauge("tenure_leases", "Live leases.");
  Gauge& state_bytes =
      make.gauge("tenure_state_bytes",
                 "Size of leases, holds and waits, which limits.state_bytes_max bounds.");
  Gauge& state_bytes_limit =
      make.gauge("tenure_state_bytes_limit", "Value of limits.state_bytes_max.");
  Counter& answers_dropped = make.counter(
      "tenure_answers_dropped_total",
      "Stored replies to finished requests dropped before limits.answer_retention because the "
      "table was full.");
  Counter& lease_granted = make.counter("tenure_lease_granted_total", "Granted leases.");
  Counter& lease_expired = make.counter("tenure_lease_expired_total", "Leases that expired.");
  Counters& renewals = make.counters("tenure_lease_renew_total", "Lease renewals by result.");
  Counter& renewed = renewals.Add({{"result", "renewed"}});
  Counter& renewed_lost = renewals.Add({{"result", "lost"}});

  // Log and store
  Gauge& is_leader = make.gauge("tenure_raft_is_leader", "1 if this member is the leader.");
  Gauge& term = make.gauge("tenure_raft_term", "Current term.");
  Gauge& commit_index =
      make.gauge("tenure_raft_commit_index", "Index of the last committed log entry.");
  Gauge& applied_index =
      make.gauge("tenure_raft_applied_index", "Index of the last applied log entry.");
  Counter& leader_changes =
      make.counter("tenure_leader_changes_total", "Number of times this member became leader.");
  Histogram& fsync_seconds = make.histogram(
      "tenure_raft_fsync_seconds", "Duration of a log write including fdatasync.", disk_buckets);
  Histogram& fsync_entries =
      make.histogram("tenure_raft_fsync_entries", "Log entries per write.", batch_buckets);
  Histogram& commit_seconds = make.histogram(
      "tenure_commit_seconds", "Time from proposal to application of a log entry.", disk_buckets);
  Histogram& batch_commands =
      make.histogram("tenure_commit_batch_commands", "Commands per log entry.", batch_buckets);
  Gauge& log_bytes = make.gauge("tenure_log_bytes", "Size of the log on disk.");
  Gauge& snapshot_bytes =
      make.gauge("tenure_snapshot_bytes", "Size of the newest snapshot on disk.");
  Histogram& snapshot_seconds = make.histogram(
      "tenure_snapshot_seconds", "Duration of a snapshot until it is durable.", waiting_buckets);
  Counter& snapshot_failed = make.counter("tenure_snapshot_failed_total", "Failed snapshots.");
  Counter& member_lost_entries =
      make.counter("tenure_member_lost_entries_total",
                   "Members that lost acknowledged log entries; counted by the leader.");
  Gauge& has_space = make.gauge("tenure_disk_has_space", "0 if the disk is full.");
  Gauge& revision = make.gauge("tenure_revision", "Revision of the store.");
  Gauge& cluster_version = make.gauge("tenure_cluster_version",
                                      "Version of the replicated formats that the cluster uses.");

  // Peers, which are known later: members can be added.
  Gauges& peer_connected =
      make.gauges("tenure_peer_connected", "1 if this member can send to the peer.");
  Counters& peer_connections =
      make.counters("tenure_peer_connections_total", "Connections established to a peer.");
  Counters& peer_bytes =
      make.counters("tenure_peer_bytes_total", "Bytes sent to and received from a peer.");
  Counters& peer_messages =
      make.counters("tenure_peer_messages_total", "Messages sent to and received from a peer.");
  Counters& peer_dropped =
      make.counters("tenure_peer_messages_dropped_total",
                    "Messages dropped because the peer was unreachable or slow.");
  Counters& peer_snapshot_chunks = make.counters(
      "tenure_peer_snapshot_chunks_total", "Snapshot chunks sent to and received from a peer.");

  // Clients. method() creates the series of `requests` when a route is registered.
  Gauge& watchers = make.gauge("tenure_watchers", "Open watches and event streams.");
  Counter& watches_cut = make.counter(
      "tenure_watch_cut_total", "Watches and event streams cancelled because the reader was slow.");
  Counters& requests = make.counters("tenure_grpc_requests_total",
                                     "Completed gRPC calls by method and status code.");
  Counters& reload_failed =
      make.counters("tenure_reload_failed_total", "Failed reloads of users or certificates.");
  Gauges& certificate_expiry =
      make.gauges("tenure_certificate_expiry_seconds",
                  "Unix time at which the first certificate of a file expires, by kind of file.");

  // Process
  // Prometheus detects restarts by it, and resets of the counters.
  Gauge& start_time =
      make.gauge("process_start_time_seconds", "Start time of the process in Unix time.");
  Gauge& clock_steering =
      make.gauge("tenure_clock_steering_seconds",
                 "CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW since process start. Its slope is the "
                 "rate at which NTP slews the clock.");
  /// Offset between CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW at process start.
  std::chrono::nanoseconds clock_offset_at_start = sys::clock_offset();
  Gauge& resident_bytes = make.gauge("process_resident_memory_bytes", "Resident memory.");
  Gauge& open_files = make.gauge("process_open_fds", "Open file descriptors.");
  Counter& cpu_seconds = make.counter("process_cpu_seconds_total", "CPU time used.");
};

}  // namespace tenure::server
