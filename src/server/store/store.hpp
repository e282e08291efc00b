#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>

#include <boost/asio/io_context.hpp>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "core/ids.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"

namespace tenure::server {

/// Identity of this member; part of every response header.
struct Identity {
  std::uint64_t cluster{};
  std::uint64_t member{};
};

/// Position of the replicated log, as known to this member.
struct LogPosition {
  bool is_leader = false;
  std::uint64_t leader{};          ///< Member id of the leader; 0: unknown.
  std::string leader_address{};    ///< Client address of the leader; empty: unknown.
  std::uint64_t term{};            ///< Current term.
  std::uint64_t commit_index{};    ///< Index of the last entry known to be durable on a majority.
  std::uint64_t applied_index{};   ///< Index of the last entry that is in the state.
  std::uint64_t first_index{};     ///< Index of the oldest entry in the log.
  std::uint64_t last_index{};      ///< Index of the newest entry, durable or not.
  std::uint64_t snapshot_index{};  ///< Last index of the newest snapshot on disk; 0: none.
  std::uint64_t log_bytes{};       ///< Size of all segments on disk.
  std::uint64_t snapshot_bytes{};  ///< Size of the newest snapshot.
  bool has_space =
      true;  ///< False: the disk is full, and commands that grow the state are refused.
};

/// Status of a member of the group, as known to this member.
struct MemberStatus {
  std::uint64_t id{};
  bool is_voter = true;          ///< False: a learner, which receives the log and does not vote.
  std::string peer_address{};    ///< Advertised address for peers.
  std::string client_address{};  ///< Advertised address for clients.
  std::uint64_t match_index{};   ///< Last acknowledged index; known to the leader only.
  std::chrono::milliseconds silent{};  ///< Time since its last message; known to the leader only.
  /// Newest cluster version that its program supports; 0: not connected.
  std::uint64_t newest_version{};
};

/// Adds a member: a learner until it has caught up with the log, then a voter.
struct AddMember {
  std::uint64_t id{};
  std::string peer_address{};
  std::string client_address{};
};

/// Removes a member permanently. The last three voters cannot be removed.
struct RemoveMember {
  std::uint64_t id{};
};

using MemberChange = std::variant<AddMember, RemoveMember>;

/// Result of a durable command.
struct Decided {
  core::Outcome outcome;
  core::Revision revision{};  ///< Revision of the store after the command.
  std::uint64_t term{};
};

/// Read access to the store, valid during the callback only.
struct View {
  const core::State& state;
  const LogPosition& log;
  core::ClusterTime now;  ///< Present cluster time; the state may be slightly older.
  std::span<const MemberStatus> members{};
};

/// Observer of the store. All functions run on the store's thread, must not block, and may call
/// only propose(), read() and loop() of the store.
class Listener {
 public:
  virtual ~Listener() = default;
  /// A command was applied. Called after the callback of its proposer.
  virtual void applied(const core::Applied& /*what*/, const core::State& /*state*/) {}
  /// The last command of an entry was applied: the time to flush gathered output.
  virtual void settled() {}
  /// One write of the log became durable.
  virtual void synced(std::chrono::nanoseconds /*took*/, std::size_t /*entries*/) {}
  /// An entry of this leader was applied, `took` after its proposal.
  virtual void committed(std::chrono::nanoseconds /*took*/, std::size_t /*commands*/) {}
  /// A snapshot became durable, `took` after its start.
  virtual void snapshot_taken(std::chrono::nanoseconds /*took*/) {}
  /// A snapshot could not be written. The store tries again later.
  virtual void snapshot_failed() {}
  /// On the leader: a member has lost entries that it had acknowledged.
  virtual void member_lost_entries() {}
  /// This member gained or lost the leadership, or follows another leader.
  virtual void role_changed(const LogPosition& /*log*/) {}
  /// A snapshot of the leader replaced the state. The commands in between are not reported.
  virtual void restored(const core::State& /*state*/) {}
};

/// Interface of the replicated, durable store for gRPC and HTTP. Thread safe unless stated
/// otherwise. One thread, that of loop(), owns the state and runs all callbacks.
class Store {
 public:
  using Decision = std::move_only_function<void(Result<Decided>)>;
  using OnRead = std::move_only_function<void(Result<View>)>;

  virtual ~Store() = default;

  /// Makes the command durable, applies it, and then calls `decided`, once, on the store's thread.
  /// `unavailable`: the outcome is unknown (the leadership was lost, or the server stops); retry
  /// with the same request id. `resource_exhausted`: too many commands in flight, or the disk is
  /// full; nothing was changed.
  virtual void propose(core::Command command, Decision decided) = 0;

  /// Linearizable read on the store's thread: the state contains everything that was acknowledged
  /// before the call. `unavailable`: this member is not the leader.
  virtual void read(OnRead on_read) = 0;
  /// Serializable (possibly stale) read, on every member.
  virtual void peek(OnRead on_read) = 0;

  /// Takes a snapshot. Calls `done` on the store's thread when it is durable, with its last index.
  virtual void take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) = 0;

  /// Changes the members. Calls `done` on the store's thread when the change is committed: a new
  /// member votes, or a removed one no longer counts. `unavailable`: this member is not the leader,
  /// or lost the leadership; check the members before a retry. `invalid_argument`: the member
  /// exists (add) or does not exist (remove), or too few voters would remain. `would_block`:
  /// another change is in progress.
  virtual void change_members(MemberChange change,
                              std::move_only_function<void(Result<void>)> done) = 0;
  /// Transfers the leadership to this voter; 0: to the one with most of the log. Calls `done` when
  /// this member has ceased to lead, or with `timed_out` if it remains the leader.
  virtual void transfer_leadership(std::uint64_t to,
                                   std::move_only_function<void(Result<void>)> done) = 0;

  /// State as of peek(), without a callback. REQUIRES: on the store's thread; valid until the next
  /// handler runs.
  [[nodiscard]] virtual const core::State& state() const = 0;

  [[nodiscard]] virtual Identity identity() const = 0;
  /// Event loop of the store's thread, for timers and tasks.
  [[nodiscard]] virtual boost::asio::io_context& loop() = 0;

  /// REQUIRES: before start() of the store, and the listener outlives it.
  virtual void listen(Listener& listener) = 0;
};

}  // namespace tenure::server
