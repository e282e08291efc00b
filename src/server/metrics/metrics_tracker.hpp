#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <absl/container/flat_hash_map.h>

#include "core/outcome.hpp"
#include "core/state.hpp"
#include "server/metrics/metrics_series.hpp"

namespace tenure::server {

/// Remembers since when each request waits and each hold lasts that was strengthened, which events
/// do not say. As large as the store has of these.
class Metrics::Tracker {
 public:
  /// Forgets all and takes it from the state.
  void rebuild(const core::State& state);

  void queued(const core::Event& event);
  /// How long it waited; nothing for all items of a request but the first.
  std::optional<core::ClusterTime> granted(const core::Event& event);
  void left_queue(const core::Event& event);
  void upgraded(const core::PreviousHold& hold);
  /// From its first grant on, also if it was strengthened since. To be asked once, at its end.
  core::ClusterTime held_since(const core::PreviousHold& hold);
  /// How many leases ran out in this command; a lease without locks has no events. One that was
  /// revoked without locks in the moment when others expired counts with them.
  std::size_t leases_expired(const core::Applied& what, const core::State& state);

 private:
  absl::flat_hash_map<RequestKey, core::ClusterTime> waits_;
  /// By their first grant.
  absl::flat_hash_map<std::uint64_t, core::ClusterTime> strengthened_;
  RequestKey last_granted_{};
  core::Revision last_granted_at_{};
  std::size_t leases_ = 0;                            ///< After the last command.
  std::optional<core::ClusterTime> next_deadline_{};  ///< Likewise.
};

}  // namespace tenure::server
