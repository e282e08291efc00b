#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "core/outcome.hpp"
#include "core/state.hpp"
#include "server/metrics_series.hpp"

namespace tenure::server {

/// Remembers since when each request waits and each hold lasts, which events do not say, and how
/// many locks are held in each mode. As large as the store has waits and holds.
class Metrics::Tracker {
 public:
  /// Forgets all and takes it from the state.
  void rebuild(const core::State& state);

  void queued(const core::Event& event);
  /// How long it waited; nothing for all items of a request but the first.
  std::optional<core::ClusterTime> granted(const core::Event& event, const core::State& state);
  /// How long it was held; nothing if that is not known.
  std::optional<core::ClusterTime> ended(const core::Event& event);
  void left_queue(const core::Event& event);
  void downgraded(const core::Event& event);
  /// How many leases ran out in this command; a lease without locks has no events. One that was
  /// revoked without locks in the moment when others expired counts with them.
  std::size_t leases_expired(const core::Applied& what, const core::State& state);

  [[nodiscard]] const std::array<std::uint64_t, claim_modes>& held() const { return held_; }

 private:
  struct Held {
    core::ClusterTime since{};
    std::uint64_t token = 0;  ///< The present one; an upgrade brings a new one.
    std::uint32_t items = 0;
    std::uint8_t mode = 0;  ///< Of the last item; only those of one item change it.
  };
  using Holds = absl::btree_map<std::uint64_t, Held>;

  /// By its present token.
  [[nodiscard]] Holds::iterator find(core::FencingToken token);
  void set_mode(Held& held, const core::Claim& claim);
  void strengthen(Held& held, std::uint64_t first, const core::Event& event);

  using Request = std::pair<std::uint64_t, std::uint64_t>;  ///< Lease and request.
  absl::flat_hash_map<Request, core::ClusterTime> waits_;
  Holds holds_;                                                ///< By the first token.
  absl::flat_hash_map<std::uint64_t, std::uint64_t> renamed_;  ///< Later tokens to the first one.
  std::array<std::uint64_t, claim_modes> held_{};
  Request last_granted_{};
  core::Revision last_granted_at_{};
  std::size_t leases_ = 0;                            ///< After the last command.
  std::optional<core::ClusterTime> next_deadline_{};  ///< Likewise.
};

}  // namespace tenure::server
