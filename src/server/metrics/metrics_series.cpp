#include "server/metrics/metrics_series.hpp"

#include <chrono>
#include <map>

namespace tenure::server {
namespace {

using prometheus::Histogram;

// 100 us to 100 s in half-decade steps: waits and hold times depend on the application.
const Histogram::BucketBoundaries waiting_buckets{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1,
                                                  0.3,    1,      3,     10,    30,   100};
// 30 us to 3 s: the range of a disk write.
const Histogram::BucketBoundaries disk_buckets{0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01,
                                               0.03,    0.1,    0.3,    1,     3};
// Numbers of commands or entries, not times.
const Histogram::BucketBoundaries batch_buckets{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000};

/// Shorthand for registering series.
struct Maker {
  prometheus::Registry& registry;

  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) const {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Counter* counter(const char* name, const char* help) const {
    return &counters(name, help).Add({});
  }
  prometheus::Family<prometheus::Gauge>& gauges(const char* name, const char* help) const {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  prometheus::Gauge* gauge(const char* name, const char* help) const {
    return &gauges(name, help).Add({});
  }
  prometheus::Histogram* histogram(const char* name, const char* help,
                                   const Histogram::BucketBoundaries& buckets) const {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
  }
};

// All series of fixed labels are created here, so that they exist with 0 from the start: a rate
// over a series that appears later misses its first increment.
void make_locks(const Maker& make, Metrics::Series& series) {
  auto& acquired =
      make.counters("tenure_acquire_total",
                    "Acquire requests by mode and result. Result would_block has no mode.");
  constexpr std::array<const char*, acquire_results> results{"granted", "abandoned", "deadlock",
                                                             "expired", "revoked"};
  auto& held = make.gauges("tenure_locks_held", "Currently held locks and ranges by mode.");
  for (std::size_t mode = 0; mode < claim_modes; ++mode) {
    const std::string name(mode_name(mode));
    for (std::size_t i = 0; i < acquire_results; ++i) {
      series.acquired[mode][i] = &acquired.Add({{"mode", name}, {"result", results[i]}});
    }
    series.held[mode] = &held.Add({{"mode", name}});
  }
  series.would_block = &acquired.Add({{"result", "would_block"}});
  auto& released = make.counters("tenure_release_total", "Ended holds by reason.");
  constexpr std::array<const char*, release_reasons> reasons{"released", "expired", "revoked",
                                                             "forced"};
  for (std::size_t i = 0; i < release_reasons; ++i) {
    series.released[i] = &released.Add({{"reason", reasons[i]}});
  }
  series.acquire_seconds = make.histogram(
      "tenure_acquire_seconds", "Time from request to grant, in cluster time.", waiting_buckets);
  series.hold_seconds = make.histogram(
      "tenure_hold_seconds", "Time from grant to release, in cluster time.", waiting_buckets);
  series.waiters = make.gauge("tenure_waiters", "Requests in wait queues.");
  series.deadlocks =
      make.counter("tenure_deadlocks_total", "Requests refused as deadlock victims.");
  series.fencing_rejected =
      make.counter("tenure_fencing_rejected_total", "Checked fencing tokens that were not held.");
  series.limit_rejected =
      &make.counters("tenure_limit_rejected_total", "Requests rejected by a limit, by setting.");
  series.denied =
      &make.counters("tenure_denied_total", "Requests denied for lack of a right, by right.");
}

// Gauges of the state are set at each scrape, counters by events.
void make_leases(const Maker& make, Metrics::Series& series) {
  series.leases = make.gauge("tenure_leases", "Live leases.");
  series.state_bytes = make.gauge("tenure_state_bytes",
                                  "Size of leases, holds and waits, which limits.state_bytes_max "
                                  "bounds.");
  series.state_bytes_limit =
      make.gauge("tenure_state_bytes_limit", "Value of limits.state_bytes_max.");
  series.answers_dropped = make.counter("tenure_answers_dropped_total",
                                        "Stored replies to finished requests dropped before "
                                        "limits.answer_retention because the table was full.");
  series.lease_granted = make.counter("tenure_lease_granted_total", "Granted leases.");
  series.lease_expired = make.counter("tenure_lease_expired_total", "Leases that expired.");
  auto& renewed = make.counters("tenure_lease_renew_total", "Lease renewals by result.");
  series.renewed = &renewed.Add({{"result", "renewed"}});
  series.renewed_lost = &renewed.Add({{"result", "lost"}});
}

// Times of the log use the buckets of disk writes; a snapshot can take seconds.
void make_log(const Maker& make, Metrics::Series& series) {
  series.is_leader = make.gauge("tenure_raft_is_leader", "1 if this member is the leader.");
  series.term = make.gauge("tenure_raft_term", "Current term.");
  series.commit_index =
      make.gauge("tenure_raft_commit_index", "Index of the last committed log entry.");
  series.applied_index =
      make.gauge("tenure_raft_applied_index", "Index of the last applied log entry.");
  series.leader_changes =
      make.counter("tenure_leader_changes_total", "Number of times this member became leader.");
  series.fsync_seconds = make.histogram(
      "tenure_raft_fsync_seconds", "Duration of a log write including fdatasync.", disk_buckets);
  series.fsync_entries =
      make.histogram("tenure_raft_fsync_entries", "Log entries per write.", batch_buckets);
  series.commit_seconds = make.histogram(
      "tenure_commit_seconds", "Time from proposal to application of a log entry.", disk_buckets);
  series.batch_commands =
      make.histogram("tenure_commit_batch_commands", "Commands per log entry.", batch_buckets);
  series.log_bytes = make.gauge("tenure_log_bytes", "Size of the log on disk.");
  series.snapshot_bytes =
      make.gauge("tenure_snapshot_bytes", "Size of the newest snapshot on disk.");
  series.snapshot_seconds = make.histogram(
      "tenure_snapshot_seconds", "Duration of a snapshot until it is durable.", waiting_buckets);
  series.snapshot_failed = make.counter("tenure_snapshot_failed_total", "Failed snapshots.");
  series.member_lost_entries =
      make.counter("tenure_member_lost_entries_total",
                   "Members that lost acknowledged log entries; counted by the leader.");
  series.has_space = make.gauge("tenure_disk_has_space", "0 if the disk is full.");
  series.revision = make.gauge("tenure_revision", "Revision of the store.");
  series.cluster_version = make.gauge("tenure_cluster_version",
                                      "Version of the replicated formats that the cluster uses.");
}

// Families only: the peers are known later, and members can be added.
void make_peers(const Maker& make, Metrics::Series& series) {
  series.peer_connected =
      &make.gauges("tenure_peer_connected", "1 if this member can send to the peer.");
  series.peer_connections =
      &make.counters("tenure_peer_connections_total", "Connections established to a peer.");
  series.peer_bytes =
      &make.counters("tenure_peer_bytes_total", "Bytes sent to and received from a peer.");
  series.peer_messages =
      &make.counters("tenure_peer_messages_total", "Messages sent to and received from a peer.");
  series.peer_dropped =
      &make.counters("tenure_peer_messages_dropped_total",
                     "Messages dropped because the peer was unreachable or slow.");
  series.peer_snapshot_chunks = &make.counters("tenure_peer_snapshot_chunks_total",
                                               "Snapshot chunks sent to and received from a peer.");
}

void make_process(const Maker& make, Metrics::Series& series) {
  series.watchers = make.gauge("tenure_watchers", "Open watches and event streams.");
  series.watches_cut = make.counter(
      "tenure_watch_cut_total", "Watches and event streams cancelled because the reader was slow.");
  // Series per method and code are created by method(), when a route is registered.
  series.requests = &make.counters("tenure_grpc_requests_total",
                                   "Completed gRPC calls by method and status code.");
  series.reload_failed =
      &make.counters("tenure_reload_failed_total", "Failed reloads of users or certificates.");
  // Initialised to 0, so that alerts see the first failure as an increase.
  series.reload_failed->Add({{"what", "users"}});
  series.reload_failed->Add({{"what", "certificates"}});
  series.certificate_expiry =
      &make.gauges("tenure_certificate_expiry_seconds",
                   "Unix time at which the first certificate of a file expires, by kind of file.");
  series.start_time =
      make.gauge("process_start_time_seconds", "Start time of the process in Unix time.");
  // Prometheus detects restarts by it, and resets of the counters.
  series.start_time->Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  series.clock_steering =
      make.gauge("tenure_clock_steering_seconds",
                 "CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW since process start. Its slope is the "
                 "rate at which NTP slews the clock.");
  series.resident_bytes = make.gauge("process_resident_memory_bytes", "Resident memory.");
  series.open_files = make.gauge("process_open_fds", "Open file descriptors.");
  series.cpu_seconds = make.counter("process_cpu_seconds_total", "CPU time used.");
}

}  // namespace

std::string_view mode_name(std::size_t index) noexcept {
  return index < all_lock_modes.size() ? to_string(all_lock_modes[index]) : "permits";
}

Metrics::Series::Series(std::string_view version) {
  const Maker make{registry};
  make_locks(make, *this);
  make_leases(make, *this);
  make_log(make, *this);
  make_peers(make, *this);
  make_process(make, *this);
  make.gauges("tenure_build_info", "Always 1; the version is in the label.")
      .Add({{"version", std::string(version)}})
      .Set(1);
}

}  // namespace tenure::server
