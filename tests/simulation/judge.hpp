#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/ids.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/replica.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Sees all members at once, and so what none of them can see: that they agree, that nobody leads
/// beside another, that nothing acknowledged is lost, that no lease ends while its client believes
/// in it.
class Judge {
 public:
  explicit Judge(World& world) : world_(world) {}

  /// After everything that happened to a member. `checked` is how far it was looked at, in its
  /// present life.
  void poll(server::raft::MemberId member, const server::raft::Replica& replica,
            const core::State& state, server::raft::Index& checked);
  /// A member has made or got this snapshot.
  void see_snapshot(const server::raft::Snapshot& snapshot);
  /// A command was applied somewhere.
  void see_applied(const core::Applied& applied, const core::State& state);
  /// A server told a client that this revision is durable.
  void see_acknowledged(core::Revision revision);
  /// A linearizable read showed this state. `known` was acknowledged() when it was asked for.
  void see_read(core::Revision known, core::Revision shown);

  /// Whose belief is asked for when the lease expires.
  void know_lease(core::LeaseId lease, std::function<bool()> is_lease_valid) {
    leases_[lease] = std::move(is_lease_valid);
  }
  void forget_lease(core::LeaseId lease) { leases_.erase(lease); }

  /// The last entry that anybody applied.
  [[nodiscard]] server::raft::Index last_agreed() const {
    return agreed_.empty() ? server::raft::Index{} : agreed_.rbegin()->first;
  }
  [[nodiscard]] core::Revision acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] std::size_t applied_total() const noexcept { return applied_total_; }
  [[nodiscard]] std::size_t reads() const noexcept { return reads_; }
  [[nodiscard]] std::size_t terms() const noexcept { return leaders_.size(); }

 private:
  struct Agreed {
    server::raft::Term term{};
    std::size_t payload = 0;  ///< A hash.
    /// Not before the term in which it was committed: an entry may be much older than that, and
    /// leaders of the terms between need not have it.
    server::raft::Term committed{};
  };

  void look_at_leader(server::raft::MemberId member, const server::raft::Replica& replica);

  World& world_;
  std::map<server::raft::Index, Agreed> agreed_;
  std::map<server::raft::Index, core::Revision> revisions_;  ///< After that entry.
  std::map<server::raft::Index, std::size_t> snapshots_;     ///< Hashes of their bytes.
  std::map<server::raft::Term, server::raft::MemberId> leaders_;
  std::map<core::LeaseId, std::function<bool()>> leases_;
  core::Revision newest_{};
  core::Revision acknowledged_{};
  std::size_t applied_total_ = 0;
  std::size_t reads_ = 0;
};

}  // namespace tenure::simulation
