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

/// Which incarnation of each other voter this member knows. A voter that lost its directory and
/// comes back under its old id may have voted and acknowledged before, and does not know it: its
/// word would count twice. It is recognised by the incarnation, which is drawn anew with every
/// directory.
///
/// Kept in a file of the directory, which is text:
///
///     tenure peers 1
///     member 2 incarnation 9f86d081884c7d65
///
/// A voter is entered when it is first met, before anything that it says is heard. One that is no
/// voter may begin anew as often as it likes. For the loop's thread.
class PeerRegistry {
 public:
  /// Remembers nothing beyond its life.
  PeerRegistry() = default;
  /// `invalid_argument`: the file is damaged.
  [[nodiscard]] static Result<PeerRegistry> open(std::filesystem::path file, raft::Report report);

  /// Who takes part from now on. A voter that was none before is entered as it was last met.
  void set_members(const std::vector<raft::Member>& members);
  /// What is wrong with one who says that it is this, for people; empty: nothing.
  [[nodiscard]] std::string incarnation_error(raft::MemberId member,
                                              raft::Incarnation incarnation) const;
  /// The same of one who has proved it, and who is entered if it is a voter and all is well.
  [[nodiscard]] std::string verify(raft::MemberId member, raft::Incarnation incarnation);
  /// The connection to it is lost: when it becomes a voter, it may be another.
  void forget(raft::MemberId member) { seen_.erase(member); }
  /// Somebody knows that this member itself has begun anew: it must neither speak nor hear any
  /// more, lest several of its kind take themselves for the cluster. True: this is new.
  bool quarantine() noexcept { return !std::exchange(is_disowned_, true); }
  [[nodiscard]] bool is_quarantined() const noexcept { return is_disowned_; }
  /// Tries again to write what could not be written.
  void sweep();

 private:
  void record(raft::MemberId member, raft::Incarnation incarnation);
  void save();

  std::filesystem::path file_;  ///< Empty: none.
  raft::Report report_ = raft::ignore_event;
  std::map<raft::MemberId, raft::Incarnation> recorded_;
  std::map<raft::MemberId, raft::Incarnation> seen_;  ///< Of members and of guests.
  std::set<raft::MemberId> members_;
  std::set<raft::MemberId> voters_;
  bool is_saved_ = true;
  bool is_disowned_ = false;
};

}  // namespace tenure::server::peers
