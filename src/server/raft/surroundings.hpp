#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/state_machine.hpp"
#include "server/raft/compaction.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/message.hpp"
#include "server/raft/report.hpp"
#include "server/raft/space.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::raft {

/// A moment on a clock that never goes back. The caller of a participant passes it in.
using Time = std::chrono::steady_clock::time_point;

/// What a participant wants to know about its disk.
struct DiskState {
  Space space{};
  std::size_t segment_bytes{};  ///< Of a whole segment.
  std::uint64_t log_bytes{};    ///< Of all segments.
};

/// All that a participant does to the world: the real one is a Node, a simulation has its own.
/// Calls come from inside the participant's functions; none of them may call it back. Nothing here
/// waits, but for save_vote().
class Surroundings {
 public:
  virtual ~Surroundings() = default;

  // The disk. append() and install() are operations: done one after the other in the order of these
  // calls, and when the oldest ones are durable, Participant::disk_done() is told how many.

  /// ENSURES: durable on return, before anything that follows leaves this member.
  virtual void save_vote(Term term, MemberId voted_for) = 0;
  /// Puts these in place of everything from `first` on.
  virtual void append(Index first, const std::vector<Entry>& entries) = 0;
  /// Puts a snapshot in place of the whole log. Done when it is durable and decoded: that takes
  /// long, and restore() must not.
  virtual void install(const Snapshot& snapshot) = 0;
  /// The state of a snapshot whose install() is done. `before` is the caller's former state, to be
  /// destroyed where that may take long.
  [[nodiscard]] virtual core::StateMachine restore(const Snapshot& snapshot,
                                                   core::StateMachine before) = 0;
  /// Entries up to `last` are not needed any more. Behind the operations before it; not counted.
  virtual void cut(Index last) = 0;
  /// Makes a snapshot and puts it on disk; Participant::compacted() is told when it is durable. One
  /// at a time. A snapshot on disk that is newer stays.
  virtual void compact(CompactionPlan plan) = 0;
  [[nodiscard]] virtual DiskState disk() const = 0;

  // The network.

  virtual void send(MemberId peer, Message message) = 0;
  /// Reads the newest snapshot on disk and sends it as InstallSnapshot of this term; if it cannot
  /// be read, Participant::snapshot_unreadable() is told. Nothing is read while one is on its way.
  virtual void send_snapshot(MemberId peer, Term term) = 0;
  /// What the peer announced on the connection that send() uses; empty: there is none, and what is
  /// sent gets lost.
  [[nodiscard]] virtual std::optional<Versions> versions_of(MemberId peer) const = 0;
  /// Who may be talked to from now on, and where they are.
  virtual void set_members(const std::vector<Member>& members) = 0;

  /// The time now, on the clock of the times that the participant is called with. For what other
  /// threads hand over while the participant is at work.
  [[nodiscard]] virtual Time local_time() = 0;
  /// Participant::drain() is to be called soon, not now.
  virtual void drain_soon() = 0;
  virtual void report(Severity severity, const std::string& what) = 0;
  /// This member cannot go on. The real one ends the process; a simulation takes a note.
  virtual void fatal(const std::string& why) = 0;
};

}  // namespace tenure::server::raft
