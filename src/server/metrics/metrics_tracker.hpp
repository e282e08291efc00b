#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <absl/container/flat_hash_map.h>

#include "core/outcome.hpp"
#include "core/state.hpp"
#include "server/metrics/metrics_series.hpp"

namespace tenure::server {

/// Start times of waits and of strengthened holds, which events do not contain. As large as the
/// number of these in the store.
///
/// Must see every applied command; after a gap rebuild() takes the present state. Waits that were
/// granted during a gap are not observed. Store thread only.
class Metrics::Tracker {
 public:
  /// Forgets all and takes it from the state.
  void rebuild(const core::State& state);

  /// Remembers when the wait began.
  void queued(const core::Event& event);
  /// Wait time; nullopt for every item of a request except the first.
  std::optional<core::ClusterTime> granted(const core::Event& event);
  /// Forgets a wait that ended without a grant.
  void left_queue(const core::Event& event);
  /// Remembers the first grant of a hold that gets a new token.
  void upgraded(const core::PreviousHold& hold);
  /// Time of the first grant, also if the hold was strengthened since. REQUIRES: called once, when
  /// the hold ends.
  core::ClusterTime held_since(const core::PreviousHold& hold);
  /// Number of leases that expired in this command; a lease without locks has no events. A lease
  /// without locks that is revoked in the same command as other expiries is counted as expired.
  std::size_t leases_expired(const core::Applied& what, const core::State& state);

 private:
  absl::flat_hash_map<RequestKey, core::ClusterTime> waits_;
  /// First grants of strengthened holds, by token.
  absl::flat_hash_map<std::uint64_t, core::ClusterTime> strengthened_;
  /// Last granted request and its revision, to recognise its further items.
  RequestKey last_granted_{};
  core::Revision last_granted_at_{};
  std::size_t leases_ = 0;  ///< Number of leases after the last command.
  std::optional<core::ClusterTime>
      next_deadline_{};  ///< Earliest lease deadline after the last command.
};

}  // namespace tenure::server
