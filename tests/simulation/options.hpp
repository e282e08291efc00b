#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenure::simulation {

/// Defects of the surroundings, to see that the checkers find them. Those of the code itself are
/// planted by tests/mutants/run.py.
enum class Mutant : std::uint8_t {
  none,
  ack_before_durable,  ///< The disk says that it is done when it has begun.
  vote_not_durable,    ///< A crash takes the vote back.
  vote_one_copy,       ///< The vote is stored once, though it says twice.
  log_end_ignored,     ///< What was acknowledged at the end of the log is not known.
  storage_unfenced,    ///< Storage accepts every token.
  belief_too_long,     ///< Clients count from when the answer arrived, without a margin.
  belief_after_loss,   ///< Clients go on believing when they were told that the lease is lost.
  new_request_id,      ///< Clients ask again with another id.
  release_forgotten,   ///< The server confirms some releases and does not pass them on.
  grant_doubled,       ///< The server tells a waiter of a grant that is another's.
  event_dropped,       ///< Watchers miss one of many events.
  event_doubled,       ///< Watchers are told one of many events twice.
  clock_too_fast,      ///< Members count time faster than the drift that is promised.
  snapshot_stale,      ///< A snapshot lacks its last entry.
  read_unconfirmed,    ///< Reads are answered by whoever thinks that it leads, or by anybody.
};
[[nodiscard]] std::string_view to_string(Mutant mutant);
[[nodiscard]] std::optional<Mutant> mutant_of(std::string_view name);

/// All that a run depends on. The seed draws it and prints it.
struct Options {
  std::uint64_t seed = 1;
  std::chrono::seconds length{60};  ///< Chaos, then three quarters later the heal.
  Mutant mutant = Mutant::none;

  // The cluster.
  std::size_t members = 3;
  std::size_t spares = 0;  ///< Hosts that are no members at first.
  std::chrono::milliseconds election_timeout{300};
  std::chrono::milliseconds heartbeat{50};
  std::size_t batch_commands_max = 4096;
  std::size_t entries_in_flight_max = 2;
  std::uint32_t peer_entries_max = 64;
  std::uint32_t trailing_entries = 128;
  std::size_t snapshot_log_bytes = 4096;
  std::size_t segment_bytes = 1U << 16;

  // Those who use it.
  std::size_t clients = 4;
  std::size_t watchers = 1;
  std::size_t names = 3;  ///< Of each kind of lock.
  std::chrono::milliseconds ttl_min{300};
  std::chrono::milliseconds ttl_max{3000};
  std::chrono::milliseconds think{400};  ///< Between two locks, at most.
  bool renews_late = false;              ///< So that renewals meet the expiry.

  // What goes wrong.
  std::chrono::microseconds network_delay{2000};
  std::uint64_t drop_permille = 0;
  std::uint64_t duplicate_permille = 0;
  bool is_reordering = false;
  std::chrono::microseconds disk_delay{1000};
  std::int64_t drift_ppm = 0;  ///< Each clock is wrong by at most this.
  bool has_clock_jumps = false;
  bool has_crashes = true;
  bool has_pauses = true;
  bool has_partitions = true;
  bool has_changes = false;
  bool has_transfers = false;
  bool has_full_disks = false;
  std::chrono::milliseconds fault_every{300};

  /// Clocks keep the drift that exclusion rests on.
  [[nodiscard]] bool has_honest_clocks() const noexcept { return !has_clock_jumps; }
};

[[nodiscard]] Options draw(std::uint64_t seed);
[[nodiscard]] std::string to_string(const Options& options);

}  // namespace tenure::simulation
