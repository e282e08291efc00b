#include "simulation/options.hpp"

#include <array>

#include "simulation/random.hpp"

namespace tenure::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::array mutant_names{
    "none",
    "ack_before_durable",
    "vote_not_durable",
    "vote_one_copy",
    "log_end_ignored",
    "storage_unfenced",
    "belief_too_long",
    "belief_after_loss",
    "new_request_id",
    "release_forgotten",
    "grant_doubled",
    "event_dropped",
    "event_doubled",
    "clock_too_fast",
    "snapshot_stale",
    "read_unconfirmed",
};

void draw_cluster(Options& options, Random& random) {
  options.members = random.one_in(4) ? 5 : 3;
  const bool is_quick = random.one_in(2);
  options.election_timeout = is_quick ? milliseconds(150) : milliseconds(300);
  options.heartbeat = is_quick ? milliseconds(30) : milliseconds(50);
  options.batch_commands_max = random.one_of<std::size_t>({1, 2, 3, 4096});
  options.entries_in_flight_max = random.one_of<std::size_t>({1, 2, 2, 8});
  // Frequent or rare snapshots. Half of the runs keep fewer trailing entries than are in flight,
  // against the recommendation, to test R5.
  options.snapshot_log_bytes = random.one_of<std::size_t>({60, 300, 2000, 1U << 20});
  options.peer_entries_max = random.one_of<std::uint32_t>({4, 64});
  options.trailing_entries = random.one_of<std::uint32_t>({0, 4, 128});
  options.segment_bytes = random.one_of<std::size_t>({2048, 1U << 14, 1U << 16});
}

void draw_users(Options& options, Random& random) {
  options.clients = 2 + random.index(5);
  options.watchers = random.index(3);
  options.names = 1 + random.index(3);
  options.ttl_min = milliseconds(100 + random.below(400));
  options.ttl_max = options.ttl_min + milliseconds(random.below(3000));
  options.think = milliseconds(random.one_of<std::int64_t>({100, 500, 1500}));
  options.renews_late = random.one_in(5);
}

void draw_faults(Options& options, Random& random) {
  options.network_delay = microseconds(random.one_of<std::int64_t>({300, 2000, 10'000}));
  options.drop_permille = random.one_of<std::uint64_t>({0, 0, 5, 50});
  options.duplicate_permille = random.one_of<std::uint64_t>({0, 0, 10, 50});
  options.is_reordering = random.one_in(3);
  options.disk_delay = microseconds(random.one_of<std::int64_t>({100, 1000, 10'000}));
  if (options.network_delay + options.disk_delay >= milliseconds(20)) {
    // With four entries in flight a joining member would never catch up with the load of the
    // clients.
    options.peer_entries_max = 64;
  }
  options.drift_ppm = random.one_of<std::int64_t>({0, 1000, 5000});
  options.has_clock_jumps = random.one_in(10);
  options.has_crashes = !random.one_in(5);
  options.has_pauses = !random.one_in(3);
  options.has_partitions = !random.one_in(4);
  options.has_changes = random.one_in(3);
  options.spares = 1 + random.index(options.has_changes ? 2 : 1);
  options.has_transfers = random.one_in(2);
  options.has_full_disks = random.one_in(8);
  options.fault_every = milliseconds(random.one_of<std::int64_t>({50, 200, 1000, 3000}));
}

}  // namespace

std::string_view to_string(Mutant mutant) {
  return mutant_names[static_cast<std::size_t>(mutant)];
}

std::optional<Mutant> mutant_of(std::string_view name) {
  for (std::size_t i = 0; i < mutant_names.size(); ++i) {
    if (mutant_names[i] == name) {
      return static_cast<Mutant>(i);
    }
  }
  return std::nullopt;
}

Options draw(std::uint64_t seed) {
  Options options{.seed = seed};
  Random random(seed * 2);
  draw_cluster(options, random);
  draw_users(options, random);
  draw_faults(options, random);
  return options;
}

std::string to_string(const Options& options) {
  std::string text;
  const auto say = [&](const char* name, auto value) {
    text += std::string(text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  };
  say("seed", options.seed);
  say("seconds", options.length.count());
  if (options.mutant != Mutant::none) {
    text += " mutant=" + std::string(to_string(options.mutant));
  }
  say("members", options.members);
  say("spares", options.spares);
  say("election_ms", options.election_timeout.count());
  say("heartbeat_ms", options.heartbeat.count());
  say("batch", options.batch_commands_max);
  say("in_flight", options.entries_in_flight_max);
  say("peer_entries", options.peer_entries_max);
  say("trailing", options.trailing_entries);
  say("snapshot_bytes", options.snapshot_log_bytes);
  say("segment_bytes", options.segment_bytes);
  say("clients", options.clients);
  say("watchers", options.watchers);
  say("names", options.names);
  say("ttl_min_ms", options.ttl_min.count());
  say("ttl_max_ms", options.ttl_max.count());
  say("think_ms", options.think.count());
  say("renews_late", options.renews_late);
  say("network_us", options.network_delay.count());
  say("drop_permille", options.drop_permille);
  say("duplicate_permille", options.duplicate_permille);
  say("reordering", options.is_reordering);
  say("disk_us", options.disk_delay.count());
  say("drift_ppm", options.drift_ppm);
  say("clock_jumps", options.has_clock_jumps);
  say("crashes", options.has_crashes);
  say("pauses", options.has_pauses);
  say("partitions", options.has_partitions);
  say("changes", options.has_changes);
  say("transfers", options.has_transfers);
  say("full_disks", options.has_full_disks);
  say("fault_every_ms", options.fault_every.count());
  return text;
}

}  // namespace tenure::simulation
