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

/// Checker with a global view of all members. Checks that they agree, that each term has one
/// leader, that no acknowledged command is lost, and that no lease expires while its client counts
/// it as valid.
class Checker {
 public:
  explicit Checker(World& world) : world_(world) {}

  /// Checks a member after each of its events. `checked` is the last checked index in its present
  /// life.
  void poll(server::raft::MemberId member, const server::raft::Replica& replica,
            const core::State& state, server::raft::Index& checked);
  /// A member has written or received this snapshot.
  void on_snapshot(const server::raft::Snapshot& snapshot);
  /// A member applied a command.
  void on_applied(const core::Applied& applied, const core::State& state);
  /// A server acknowledged this revision to a client.
  void on_acknowledged(core::Revision revision);
  /// A linearizable read returned this state. `known` was acknowledged() when the read started.
  void check_read(core::Revision known, core::Revision shown);

  /// Registers the client whose view of the lease is checked at its expiry.
  void add_lease(core::LeaseId lease, std::function<bool()> is_lease_valid) {
    leases_[lease] = std::move(is_lease_valid);
  }
  void forget_lease(core::LeaseId lease) { leases_.erase(lease); }

  /// Last applied entry of all members.
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
    std::size_t payload = 0;  ///< Hash of the payload.
    /// Lower bound of the term of the commit. The entry may be much older, and leaders of the terms
    /// in between need not have it.
    server::raft::Term committed{};
  };

  void check_leader(server::raft::MemberId member, const server::raft::Replica& replica);

  World& world_;
  std::map<server::raft::Index, Agreed> agreed_;
  std::map<server::raft::Index, core::Revision> revisions_;  ///< Revision after the entry.
  std::map<server::raft::Index, std::size_t>
      snapshots_;  ///< Hashes of the snapshots by last index.
  std::map<server::raft::Term, server::raft::MemberId> leaders_;
  std::map<core::LeaseId, std::function<bool()>> leases_;
  core::Revision newest_{};
  core::Revision acknowledged_{};
  std::size_t applied_total_ = 0;
  std::size_t reads_ = 0;
};

}  // namespace tenure::simulation
