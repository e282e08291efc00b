#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenure::simulation {

/// Defects of the environment, to test the checkers. Defects of the production code are planted by
/// tests/mutants/run.py.
enum class Mutant : std::uint8_t {
  none,
  ack_before_durable,  ///< The disk reports completion at the start of a write.
  vote_not_durable,    ///< A crash loses the vote.
  vote_one_copy,       ///< The vote is stored once, but reported as mirrored.
  log_end_ignored,     ///< The durable end of the log is ignored.
  storage_unfenced,    ///< Storage accepts every token.
  belief_too_long,     ///< Clients count the TTL from the reply, without a margin.
  belief_after_loss,   ///< Clients ignore the notification of a lost lease.
  new_request_id,      ///< Clients retry with another request id.
  release_forgotten,   ///< The server acknowledges some releases without proposing them.
  grant_doubled,       ///< The server reports the grant of one waiter to another.
  event_dropped,       ///< Watchers miss one of many events.
  event_doubled,       ///< Watchers receive one of many events twice.
  clock_too_fast,      ///< Clocks of members exceed the promised drift.
  snapshot_stale,      ///< A snapshot lacks its last entry.
  read_unconfirmed,    ///< Members answer reads without a confirmed quorum.
};
[[nodiscard]] std::string_view to_string(Mutant mutant);
[[nodiscard]] std::optional<Mutant> mutant_of(std::string_view name);

/// Parameters of a run, derived from the seed.
struct Options {
  std::uint64_t seed = 1;
  std::chrono::seconds length{60};  ///< Duration of the run, the time after the heal included.
  Mutant mutant = Mutant::none;

  // The cluster.
  std::size_t members = 3;
  std::size_t spares = 0;  ///< Hosts that are not initial members.
  std::chrono::milliseconds election_timeout{300};
  std::chrono::milliseconds heartbeat{50};
  std::size_t batch_commands_max = 4096;
  std::size_t entries_in_flight_max = 2;
  std::uint32_t peer_entries_max = 64;
  std::uint32_t trailing_entries = 128;
  std::size_t snapshot_log_bytes = 4096;
  std::size_t segment_bytes = 1U << 16;

  // Clients.
  std::size_t clients = 4;
  std::size_t watchers = 1;
  std::size_t names = 3;  ///< Number of names for each kind of lock.
  std::chrono::milliseconds ttl_min{300};
  std::chrono::milliseconds ttl_max{3000};
  std::chrono::milliseconds think{400};  ///< Maximum pause between two locks.
  bool renews_late = false;              ///< Whether renewals race with the expiry.

  // Faults.
  std::chrono::microseconds network_delay{2000};
  std::uint64_t drop_permille = 0;
  std::uint64_t duplicate_permille = 0;
  bool is_reordering = false;
  std::chrono::microseconds disk_delay{1000};
  std::int64_t drift_ppm = 0;  ///< Maximum drift of each clock.
  bool has_clock_jumps = false;
  bool has_crashes = true;
  bool has_pauses = true;
  bool has_partitions = true;
  bool has_changes = false;
  bool has_transfers = false;
  bool has_full_disks = false;
  std::chrono::milliseconds fault_every{300};

  /// Whether clocks keep the drift on which mutual exclusion depends.
  [[nodiscard]] bool has_honest_clocks() const noexcept { return !has_clock_jumps; }
};

[[nodiscard]] Options draw(std::uint64_t seed);
[[nodiscard]] std::string to_string(const Options& options);

}  // namespace tenure::simulation
