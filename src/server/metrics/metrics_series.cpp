#include "server/metrics/metrics_series.hpp"

#include <chrono>
#include <map>

namespace tenure::server {
namespace {

using prometheus::Histogram;

// 100 us to 100 s, in steps of about a third of a decade: a lock is held for as long as it is.
const Histogram::BucketBoundaries waiting_buckets{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1,
                                                  0.3,    1,      3,     10,    30,   100};
// 30 us to 3 s: a write to a disk.
const Histogram::BucketBoundaries disk_buckets{0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01,
                                               0.03,    0.1,    0.3,    1,     3};
const Histogram::BucketBoundaries batch_buckets{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000};

/// Makes series with little to write.
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

void make_locks(const Maker& make, Metrics::Series& series) {
  auto& acquired = make.counters("tenure_acquire_total",
                                 "Locks that were asked for, by how that ended. Without a mode: "
                                 "refused at once.");
  constexpr std::array<const char*, acquire_results> results{"granted", "abandoned", "deadlock",
                                                             "expired", "revoked"};
  auto& held = make.gauges("tenure_locks_held", "Locks and ranges held now, by mode.");
  for (std::size_t mode = 0; mode < claim_modes; ++mode) {
    const std::string name(mode_name(mode));
    for (std::size_t i = 0; i < acquire_results; ++i) {
      series.acquired[mode][i] = &acquired.Add({{"mode", name}, {"result", results[i]}});
    }
    series.held[mode] = &held.Add({{"mode", name}});
  }
  series.would_block = &acquired.Add({{"result", "would_block"}});
  auto& released = make.counters("tenure_release_total", "Holds that ended, by why.");
  constexpr std::array<const char*, release_reasons> reasons{"released", "expired", "revoked",
                                                             "forced"};
  for (std::size_t i = 0; i < release_reasons; ++i) {
    series.released[i] = &released.Add({{"reason", reasons[i]}});
  }
  series.acquire_seconds = make.histogram(
      "tenure_acquire_seconds", "From asking to the grant, in cluster time.", waiting_buckets);
  series.hold_seconds = make.histogram(
      "tenure_hold_seconds", "From the grant to its end, in cluster time.", waiting_buckets);
  series.waiters = make.gauge("tenure_waiters", "Requests in queues now.");
  series.deadlocks =
      make.counter("tenure_deadlocks_total", "Requests that gave way because of a cycle.");
  series.fencing_rejected = make.counter("tenure_fencing_rejected_total",
                                         "Fencing tokens that were asked about and not held.");
  series.limit_rejected = &make.counters("tenure_limit_rejected_total",
                                         "Requests refused because of a limit, by its setting.");
  series.denied =
      &make.counters("tenure_denied_total", "Requests refused for want of a right, by the right.");
}

void make_leases(const Maker& make, Metrics::Series& series) {
  series.leases = make.gauge("tenure_leases", "Leases that live now.");
  series.state_bytes = make.gauge("tenure_state_bytes",
                                  "Leases, holds and waits, as counted for "
                                  "limits.state_bytes_max.");
  series.state_bytes_limit = make.gauge("tenure_state_bytes_limit", "limits.state_bytes_max.");
  series.answers_dropped = make.counter("tenure_answers_dropped_total",
                                        "Answers to finished requests forgotten before "
                                        "limits.answer_retention, for lack of room.");
  series.lease_granted = make.counter("tenure_lease_granted_total", "Leases that were granted.");
  series.lease_expired = make.counter("tenure_lease_expired_total",
                                      "Leases with locks or waits under them that ran out.");
  auto& renewed = make.counters("tenure_lease_renew_total", "Renewals of leases, by result.");
  series.renewed = &renewed.Add({{"result", "renewed"}});
  series.renewed_lost = &renewed.Add({{"result", "lost"}});
}

void make_log(const Maker& make, Metrics::Series& series) {
  series.is_leader = make.gauge("tenure_raft_is_leader", "1 if this member leads.");
  series.term = make.gauge("tenure_raft_term", "Term of the present leadership.");
  series.commit_index = make.gauge("tenure_raft_commit_index", "Last entry known to be durable.");
  series.applied_index = make.gauge("tenure_raft_applied_index", "Last entry in the state.");
  series.leader_changes =
      make.counter("tenure_leader_changes_total", "How often this member began to lead.");
  series.fsync_seconds = make.histogram("tenure_raft_fsync_seconds",
                                        "One write to the log until it is durable.", disk_buckets);
  series.fsync_entries = make.histogram("tenure_raft_fsync_entries",
                                        "Entries in one write to the log.", batch_buckets);
  series.commit_seconds = make.histogram(
      "tenure_commit_seconds", "From proposing an entry until it is applied.", disk_buckets);
  series.batch_commands = make.histogram("tenure_commit_batch_commands",
                                         "Commands that shared one entry.", batch_buckets);
  series.log_bytes = make.gauge("tenure_log_bytes", "The log on disk.");
  series.snapshot_bytes = make.gauge("tenure_snapshot_bytes", "The newest snapshot on disk.");
  series.snapshot_seconds =
      make.histogram("tenure_snapshot_seconds",
                     "One snapshot, in the background, until it is durable.", waiting_buckets);
  series.snapshot_failed =
      make.counter("tenure_snapshot_failed_total", "Snapshots that could not be written.");
  series.member_lost_entries =
      make.counter("tenure_member_lost_entries_total",
                   "Times that a member lost entries it had acknowledged; counted by the leader.");
  series.has_space = make.gauge("tenure_disk_has_space", "0 if the disk is full.");
  series.revision = make.gauge("tenure_revision", "Revision of the store.");
  series.cluster_version = make.gauge("tenure_cluster_version",
                                      "Version of the replicated formats that the cluster uses.");
}

void make_peers(const Maker& make, Metrics::Series& series) {
  series.peer_connected =
      &make.gauges("tenure_peer_connected", "1 if this member can send to that one.");
  series.peer_connections =
      &make.counters("tenure_peer_connections_total", "Connections made to a member.");
  series.peer_bytes = &make.counters("tenure_peer_bytes_total", "Bytes to and from a member.");
  series.peer_messages =
      &make.counters("tenure_peer_messages_total", "Messages to and from a member.");
  series.peer_dropped = &make.counters("tenure_peer_messages_dropped_total",
                                       "Messages dropped: the member was away or slow.");
  series.peer_snapshot_chunks = &make.counters("tenure_peer_snapshot_chunks_total",
                                               "Parts of snapshots to and from a member.");
}

void make_process(const Maker& make, Metrics::Series& series) {
  series.watchers = make.gauge("tenure_watchers", "Watches and event streams open now.");
  series.watches_cut = make.counter(
      "tenure_watch_cut_total", "Watches and event streams that were cut: their reader was slow.");
  series.requests =
      &make.counters("tenure_grpc_requests_total", "gRPC calls that ended, by method and code.");
  series.reload_failed = &make.counters("tenure_reload_failed_total",
                                        "Reloads of files that failed and changed nothing.");
  // Alerts see the first failure only as an increase.
  series.reload_failed->Add({{"what", "users"}});
  series.reload_failed->Add({{"what", "certificates"}});
  series.certificate_expiry = &make.gauges(
      "tenure_certificate_expiry_seconds",
      "Unix time at which the first certificate of a file expires, by the kind of the file.");
  series.start_time =
      make.gauge("process_start_time_seconds", "When this process began, in Unix time.");
  series.start_time->Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  series.clock_steering =
      make.gauge("tenure_clock_steering_seconds",
                 "CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW since this process began. Its slope is "
                 "how far NTP steers the clock.");
  series.resident_bytes = make.gauge("process_resident_memory_bytes", "Memory in use.");
  series.open_files = make.gauge("process_open_fds", "File descriptors in use.");
  series.cpu_seconds = make.counter("process_cpu_seconds_total", "Processor time used.");
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
