#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/report.hpp"

namespace tenure::server::peers {

/// Registry of the incarnations of the other voters, in a text file of the data directory:
///
///     tenure peers 1
///     member 2 incarnation 9f86d081884c7d65
///
/// The incarnation is a random number drawn with every new data directory. A voter that returns
/// under its old id with another incarnation has lost votes and acknowledgements: its new vote
/// would count twice in one term. Such a voter is rejected.
///
/// INVARIANT: a voter is recorded before any of its messages is processed. A member that is not a
/// voter may change its incarnation at any time. Not thread safe; belongs to the loop's thread.
class PeerRegistry {
 public:
  /// Registry in memory only.
  PeerRegistry() = default;
  /// `invalid_argument`: the file is damaged.
  [[nodiscard]] static Result<PeerRegistry> open(std::filesystem::path file, raft::Report report);

  /// Replaces the member list. A new voter is recorded with the incarnation that it announced last.
  void set_members(const std::vector<raft::Member>& members);
  /// Why this incarnation of the member is rejected; empty: it is accepted.
  [[nodiscard]] std::string incarnation_error(raft::MemberId member,
                                              raft::Incarnation incarnation) const;
  /// Like incarnation_error(), and records an accepted voter. REQUIRES: the peer has proved its id.
  [[nodiscard]] std::string verify(raft::MemberId member, raft::Incarnation incarnation);
  /// The connection is lost. The next process under this id may have another incarnation.
  void forget(raft::MemberId member) { seen_.erase(member); }
  /// A peer reported that the data directory of this member was replaced. Stops all peer traffic:
  /// otherwise several wiped members could form a quorum. False: it was quarantined already.
  bool quarantine() noexcept { return !std::exchange(is_quarantined_, true); }
  [[nodiscard]] bool is_quarantined() const noexcept { return is_quarantined_; }
  /// Repeats a failed write of the file.
  void sweep();

 private:
  /// Records an incarnation, and saves the registry if it is new.
  void record(raft::MemberId member, raft::Incarnation incarnation);
  /// Writes the file; a failure is reported once and repeated by sweep().
  void save();

  std::filesystem::path file_;  ///< Path of the file; empty: in memory only.
  raft::Report report_ = raft::ignore_event;
  /// Incarnations in the file.
  std::map<raft::MemberId, raft::Incarnation> recorded_;
  std::map<raft::MemberId, raft::Incarnation>
      seen_;  ///< Last announced incarnations, of members and non-members.
  /// Members of the present configuration.
  std::set<raft::MemberId> members_;
  /// Voters among them.
  std::set<raft::MemberId> voters_;
  /// False after a failed write of the file.
  bool is_saved_ = true;
  /// Whether this member is quarantined.
  bool is_quarantined_ = false;
};

}  // namespace tenure::server::peers
