#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <tenure/error.hpp>

#include "core/state_machine.hpp"
#include "server/raft/cluster_clock.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/proposal_batcher.hpp"
#include "server/raft/time.hpp"
#include "server/store/store.hpp"

namespace tenure::server::raft {

/// The replicated state machine of a member, with the cluster clock that stamps what its leader
/// proposes. Applies committed entries, calls the decisions of those proposed here, and notifies
/// the listener. Deterministic. Not thread safe.
class ReplicatedState {
 public:
  /// REQUIRES: the listener outlives this.
  ReplicatedState(core::StateMachine machine, Listener& listener)
      : machine_(std::move(machine)), listener_(listener) {}

  [[nodiscard]] const core::State& get() const noexcept { return machine_.state(); }
  [[nodiscard]] core::ClusterVersion version() const { return machine_.state().version; }

  /// Applies an entry that was proposed here.
  void apply(ProposedEntry entry, Time now);
  /// Applies an entry that another leader proposed. An error: it cannot be decoded.
  [[nodiscard]] Result<void> apply(const Entry& entry);
  /// Replaces the state. `restore` is called with the former one and returns the new one.
  void replace(const std::function<core::StateMachine(core::StateMachine)>& restore);

  /// Cluster time continues from the state. Called when this member begins to lead.
  void begin_clock(Time now) { clock_.begin(machine_.state().now, now); }
  /// Cluster time at `now`. REQUIRES: begin_clock() was called.
  [[nodiscard]] core::ClusterTime time_at(Time now) { return clock_.at(now); }
  /// Moment at which the next lease expires; empty: no lease does. REQUIRES: as time_at().
  [[nodiscard]] std::optional<Time> next_expiry() const;
  /// Whether a lease has expired in cluster time. REQUIRES: as time_at().
  [[nodiscard]] bool is_expiry_due(Time now);

 private:
  core::StateMachine machine_;
  ClusterClock clock_;
  Listener& listener_;
};

}  // namespace tenure::server::raft
