#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/state_machine.hpp"
#include "server/raft/compaction.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/message.hpp"
#include "server/raft/report.hpp"
#include "server/raft/space.hpp"
#include "server/raft/time.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::raft {

/// Environment of the store: its disk, its network, its clock and its operator. Node is the
/// implementation that ships; simulations and tests have their own. The store calls it on the
/// thread of its events, and no function may call the store back. No function blocks, except
/// save_vote().
class Environment {
 public:
  virtual ~Environment() = default;

  // Disk. append() and install() are operations: the disk does them in the order of the calls, and
  // reports the number of finished ones with RaftStore::disk_done().

  /// ENSURES: durable on return, before any later effect leaves this member.
  virtual void save_vote(Term term, MemberId voted_for) = 0;
  /// Replaces the log from `first` on by these entries.
  virtual void append(Index first, const std::vector<Entry>& entries) = 0;
  /// Replaces the whole log by a snapshot. Done when it is durable and decoded: decoding takes
  /// long, and restore() must not.
  virtual void install(const Snapshot& snapshot) = 0;
  /// The state of a snapshot whose install() is done. `before` is the former state of the caller;
  /// its destruction may take long.
  [[nodiscard]] virtual core::StateMachine restore(const Snapshot& snapshot,
                                                   core::StateMachine before) = 0;
  /// Entries up to `last` are no longer needed. Takes effect after the operations before it; not
  /// counted as one.
  virtual void cut(Index last) = 0;
  /// Writes a snapshot to disk and reports its end with RaftStore::compacted(). One at a time. A
  /// newer snapshot on disk stays.
  virtual void compact(CompactionPlan plan) = 0;
  [[nodiscard]] virtual DiskState disk() const = 0;

  // Network.

  virtual void send(MemberId peer, Message message) = 0;
  /// Reads the newest snapshot on disk and sends it as InstallSnapshot of this term. Reports one
  /// that cannot be read with RaftStore::snapshot_unreadable(). Reads nothing while one is on its
  /// way to the peer.
  virtual void send_snapshot(MemberId peer, Term term) = 0;
  /// Versions that the peer announced on the connection that send() uses; empty: there is no
  /// connection, and sent messages are lost.
  [[nodiscard]] virtual std::optional<Versions> versions_of(MemberId peer) const = 0;
  /// Replaces the list of peers and their addresses.
  virtual void set_members(const std::vector<Member>& members) = 0;

  // Time and operator.

  /// Present time, on the clock of the times that events carry. For input that other threads hand
  /// over during an event.
  [[nodiscard]] virtual Time local_time() = 0;
  /// Schedules a call of RaftStore::drain(), soon but not now.
  virtual void drain_soon() = 0;
  /// Logs an event, see report.hpp.
  virtual void report(log::Level level, std::string_view event, log::Fields fields) = 0;
  /// This member cannot continue. Node ends the process; a simulation records a failure.
  virtual void fatal(const std::string& error) = 0;
};

}  // namespace tenure::server::raft
