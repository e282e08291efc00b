#include "server/metrics/metrics.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include "grpc/status.hpp"
#include "server/metrics/metrics_series.hpp"
#include "server/metrics/metrics_tracker.hpp"

namespace tenure::server {
namespace {

double in_seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// Process metrics are read from /proc at each scrape; 0 if it is not mounted.
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t whole = 0;
  std::uint64_t resident = 0;
  statm >> whole >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_files() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(files), end(files)));
}

// User and system time of the whole process.
double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

/// Updates the series for one applied command.
class Metrics::Tally {
 public:
  Tally(Series& series, Tracker& tracker, const core::Applied& what)
      : series_(series), tracker_(tracker), what_(what) {}

  void run() {
    // Upgrades first: the end of a hold in the same command needs its original start.
    for (const auto& former : what_.upgraded) {
      tracker_.upgraded(former);
    }
    for (const auto& event : what_.events) {
      take(event);
    }
    take(what_.outcome);
    if (!what_.reached_limit.empty()) {
      series_.limit_rejected.Add({{"limit", std::string(what_.reached_limit)}}).Increment();
    }
    series_.answers_dropped.Increment(static_cast<double>(what_.answers_dropped));
  }

 private:
  /// The switch has no default: the compiler reports an event that is not counted.
  void take(const core::Event& event) {
    switch (event.type) {
      case core::EventType::queued: tracker_.queued(event); break;
      case core::EventType::granted: granted(event); break;
      case core::EventType::released: ended(event, ReleaseReason::released); break;
      case core::EventType::forced: ended(event, ReleaseReason::forced); break;
      case core::EventType::expired: end_lease(event, AcquireResult::expired); break;
      case core::EventType::revoked: end_lease(event, AcquireResult::revoked); break;
      case core::EventType::abandoned: gave_up(event, AcquireResult::abandoned); break;
      case core::EventType::deadlock: gave_up(event, AcquireResult::deadlock); break;
      case core::EventType::downgraded: break;
    }
  }

  void take(const core::Outcome& outcome) {
    if (const auto* renewed = std::get_if<core::Renewed>(&outcome)) {
      const auto lost =
          std::ranges::count_if(renewed->answers, [](const auto& answer) { return !answer.ttl; });
      series_.renewed.Increment(
          static_cast<double>(std::ssize(renewed->answers) - static_cast<std::ptrdiff_t>(lost)));
      series_.renewed_lost.Increment(static_cast<double>(lost));
    } else if (std::holds_alternative<core::LeaseGranted>(outcome)) {
      series_.lease_granted.Increment();
    } else if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
      // run() counts refusals by a limit. Other errors are mistakes of the client.
      if (refused->error.code == Errc::would_block) {
        series_.would_block->Increment();
      }
    }
  }

  void count(const core::Event& event, AcquireResult result) {
    series_.acquired[core::kind_of(event.item.claim)][static_cast<std::size_t>(result)]
        ->Increment();
  }

  /// Counts each item, but observes the wait time once per acquire request.
  void granted(const core::Event& event) {
    count(event, AcquireResult::granted);
    if (const auto waited = tracker_.granted(event)) {
      series_.acquire_seconds.Observe(in_seconds(*waited));
    }
  }

  /// The n-th end event corresponds to the n-th entry of `ended`.
  void ended(const core::Event& event, ReleaseReason reason) {
    series_.released[static_cast<std::size_t>(reason)]->Increment();
    const auto since = tracker_.held_since(what_.ended[ended_++]);
    series_.hold_seconds.Observe(in_seconds(event.time - since));
  }

  /// A request for several items has an event for each; deadlocks are counted per request.
  void gave_up(const core::Event& event, AcquireResult result) {
    count(event, result);
    tracker_.left_queue(event);
    if (result == AcquireResult::deadlock && is_new_request(event)) {
      series_.deadlocks.Increment();
    }
  }

  /// An event without a token concerns a wait of the lease, one with a token a hold.
  void end_lease(const core::Event& event, AcquireResult result) {
    if (event.token == core::FencingToken{}) {
      gave_up(event, result);
    } else {
      ended(event,
            result == AcquireResult::expired ? ReleaseReason::expired : ReleaseReason::revoked);
    }
  }

  /// Events of one request are consecutive, so the last one is enough to compare.
  bool is_new_request(const core::Event& event) {
    const RequestKey request{.lease = event.lease, .request = event.request};
    return std::exchange(last_victim_, request) != request;
  }

  Series& series_;
  Tracker& tracker_;
  const core::Applied& what_;
  std::size_t ended_ = 0;  ///< Number of end events so far.
  RequestKey last_victim_{};
};

Metrics::Metrics(std::string_view version)
    : series_(std::make_unique<Series>(version)), tracker_(std::make_unique<Tracker>()) {}

Metrics::~Metrics() = default;

void Metrics::applied(const core::Applied& what, const core::State& state) {
  Tally(*series_, *tracker_, what).run();
  if (!is_in_step_) {
    // First observed command, or commands were applied unobserved: rebuild from the state.
    tracker_->rebuild(state);
    is_in_step_ = true;
  } else if (const auto expired = tracker_->leases_expired(what, state); expired > 0) {
    series_->lease_expired.Increment(static_cast<double>(expired));
  }
}

void Metrics::synced(std::chrono::nanoseconds took, std::size_t entries) {
  series_->fsync_seconds.Observe(in_seconds(took));
  series_->fsync_entries.Observe(static_cast<double>(entries));
}

void Metrics::committed(std::chrono::nanoseconds took, std::size_t commands) {
  series_->commit_seconds.Observe(in_seconds(took));
  series_->batch_commands.Observe(static_cast<double>(commands));
}

void Metrics::snapshot_taken(std::chrono::nanoseconds took) {
  series_->snapshot_seconds.Observe(in_seconds(took));
}

// The commands in the snapshot were not observed, so the tracker no longer matches the state.
void Metrics::restored(const core::State& /*state*/) {
  is_in_step_ = false;
}

void Metrics::role_changed(const LogPosition& log) {
  if (log.is_leader) {
    series_->leader_changes.Increment();
    // A follower may have installed a snapshot since.
    is_in_step_ = false;
  }
}

void Metrics::observe(const View& view) {
  if (!is_in_step_) {
    tracker_->rebuild(view.state);
    is_in_step_ = true;
  }
  for (std::size_t mode = 0; mode < claim_modes; ++mode) {
    series_->held[mode]->Set(static_cast<double>(view.state.locks.held()[mode]));
  }
  series_->waiters.Set(static_cast<double>(view.state.locks.waits().size()));
  series_->leases.Set(static_cast<double>(view.state.leases.all().size()));
  series_->state_bytes.Set(static_cast<double>(view.state.leases.usage().total().records));
  series_->state_bytes_limit.Set(static_cast<double>(view.state.limits.state_bytes_max));
  series_->revision.Set(static_cast<double>(view.state.revision.get()));
  series_->cluster_version.Set(static_cast<double>(view.state.version.get()));
  series_->is_leader.Set(view.log.is_leader ? 1 : 0);
  series_->term.Set(static_cast<double>(view.log.term));
  series_->commit_index.Set(static_cast<double>(view.log.commit_index));
  series_->applied_index.Set(static_cast<double>(view.log.applied_index));
  series_->log_bytes.Set(static_cast<double>(view.log.log_bytes));
  series_->snapshot_bytes.Set(static_cast<double>(view.log.snapshot_bytes));
  series_->has_space.Set(view.log.has_space ? 1 : 0);
  // Empty for a single node, which has no peers.
  if (ask_peers_) {
    for (const auto& traffic : ask_peers_()) {
      observe_peer(traffic);
    }
  }
}

void Metrics::observe_peer(const PeerTraffic& traffic) {
  const auto peer = std::to_string(traffic.peer);
  // Prometheus counters only grow; a member that left and returned restarts at 0.
  const auto raise = [](prometheus::Counter& counter, std::uint64_t value) {
    counter.Increment(std::max(0.0, static_cast<double>(value) - counter.Value()));
  };
  const auto both = [&](prometheus::Family<prometheus::Counter>& family, std::uint64_t sent,
                        std::uint64_t received) {
    raise(family.Add({{"peer", peer}, {"direction", "sent"}}), sent);
    raise(family.Add({{"peer", peer}, {"direction", "received"}}), received);
  };
  series_->peer_connected.Add({{"peer", peer}}).Set(traffic.is_connected ? 1 : 0);
  raise(series_->peer_connections.Add({{"peer", peer}}), traffic.connections);
  raise(series_->peer_dropped.Add({{"peer", peer}}), traffic.messages_dropped);
  both(series_->peer_bytes, traffic.bytes_sent, traffic.bytes_received);
  both(series_->peer_messages, traffic.messages_sent, traffic.messages_received);
  both(series_->peer_snapshot_chunks, traffic.snapshot_chunks_sent,
       traffic.snapshot_chunks_received);
}

std::string Metrics::text() {
  series_->clock_steering.Set(in_seconds(sys::clock_offset() - series_->clock_offset_at_start));
  series_->resident_bytes.Set(resident_bytes());
  series_->open_files.Set(open_files());
  // Prometheus counters only grow.
  series_->cpu_seconds.Increment(std::max(0.0, cpu_seconds() - series_->cpu_seconds.Value()));
  // The series are read one after the other, so those of one scrape may differ by the updates
  // during it.
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

Totals Metrics::totals() const {
  const auto buckets_of = [](const prometheus::Histogram& histogram) {
    Totals::Buckets buckets;
    for (const auto& bucket : histogram.Collect().histogram.bucket) {
      buckets.push_back({.bound = bucket.upper_bound, .count = bucket.cumulative_count});
    }
    return buckets;
  };
  const auto released = [this](ReleaseReason reason) {
    return series_->released[static_cast<std::size_t>(reason)]->Value();
  };
  Totals totals{.released = released(ReleaseReason::released),
                .expired = released(ReleaseReason::expired),
                .forced = released(ReleaseReason::forced),
                .deadlocks = series_->deadlocks.Value(),
                .renewed = series_->renewed.Value(),
                .commands = series_->batch_commands.Collect().histogram.sample_sum,
                .acquire_seconds = buckets_of(series_->acquire_seconds),
                .hold_seconds = buckets_of(series_->hold_seconds),
                .commit_seconds = buckets_of(series_->commit_seconds),
                .fsync_seconds = buckets_of(series_->fsync_seconds)};
  for (const auto& of_mode : series_->acquired) {
    totals.granted += of_mode[static_cast<std::size_t>(AcquireResult::granted)]->Value();
  }
  return totals;
}

void Metrics::watch_began() {
  series_->watchers.Increment();
}
void Metrics::watch_ended() {
  series_->watchers.Decrement();
}
void Metrics::watch_cut() {
  series_->watches_cut.Increment();
}
void Metrics::fencing_rejected() {
  series_->fencing_rejected.Increment();
}
void Metrics::limit_rejected(std::string_view limit) {
  series_->limit_rejected.Add({{"limit", std::string(limit)}}).Increment();
}

void Metrics::snapshot_failed() {
  series_->snapshot_failed.Increment();
}

void Metrics::member_lost_entries() {
  series_->member_lost_entries.Increment();
}

void Metrics::reload_failed(std::string_view what) {
  series_->reload_failed.Add({{"what", std::string(what)}}).Increment();
}

void Metrics::certificate_expires(std::string_view kind, std::chrono::sys_seconds when) {
  series_->certificate_expiry.Add({{"kind", std::string(kind)}})
      .Set(static_cast<double>(when.time_since_epoch().count()));
}

void Metrics::denied(std::string_view verb) {
  series_->denied.Add({{"verb", std::string(verb)}}).Increment();
}

Metrics::Method Metrics::method(std::string_view name) {
  Method method;
  for (std::size_t code = 0; code < Method::codes; ++code) {
    method.counters_[code] =
        &series_->requests.Add({{"method", std::string(name)},
                                {"code", grpc::name_of(static_cast<grpc::StatusCode>(code))}});
  }
  return method;
}

void Metrics::Method::done(int code) const {
  // Unknown codes are counted as UNKNOWN.
  const auto index = code >= 0 && static_cast<std::size_t>(code) < codes ? code : 2;
  counters_[static_cast<std::size_t>(index)]->Increment();
}

}  // namespace tenure::server
