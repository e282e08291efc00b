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

/// Which member of which cluster this is; in the header of every answer.
struct Identity {
  std::uint64_t cluster{};
  std::uint64_t member{};
};

/// Where the replicated log stands, as this member knows it.
struct LogPosition {
  bool is_leader = false;
  std::uint64_t leader{};          ///< Its member id; 0: nobody, or not known.
  std::string leader_address{};    ///< Where clients reach it; empty: not known.
  std::uint64_t term{};            ///< Of the present leadership.
  std::uint64_t commit{};          ///< Index of the last entry known to be durable on a majority.
  std::uint64_t applied{};         ///< Index of the last entry that is in the state.
  std::uint64_t first{};           ///< Index of the oldest entry still in the log.
  std::uint64_t last{};            ///< Index of the newest one, durable or not.
  std::uint64_t snapshot{};        ///< Index that the newest snapshot on disk stands for; 0: none.
  std::uint64_t log_bytes{};       ///< On disk, whole segments.
  std::uint64_t snapshot_bytes{};  ///< Of the newest snapshot.
  bool has_space = true;           ///< False: the disk is full and new commands are refused.
};

/// One member of the group, as this member knows it.
struct MemberStatus {
  std::uint64_t id{};
  bool is_voter = true;                ///< False: it gets the log and does not count yet.
  std::string peer_address{};          ///< Where the other members reach it.
  std::string client_address{};        ///< Where clients reach it.
  std::uint64_t match{};               ///< It is known to have the log up to here. By the leader.
  std::chrono::milliseconds silent{};  ///< Since it was last heard of. By the leader.
  /// Newest cluster version that its program reads; 0: it is not connected.
  std::uint64_t newest_version{};
};

/// A new member: gets the log first, and votes when it has caught up.
struct AddMember {
  std::uint64_t id{};
  std::string peer_address{};
  std::string client_address{};
};

/// A member that is not to come back; the last three voters stay.
struct RemoveMember {
  std::uint64_t id{};
};

using MemberChange = std::variant<AddMember, RemoveMember>;

/// What became of a command that is durable.
struct Decided {
  core::Outcome outcome;
  core::Revision revision{};  ///< Of the store, right after it.
  std::uint64_t term{};
};

/// A look at the store that lasts only as long as the call it is given to.
struct View {
  const core::State& state;
  const LogPosition& log;
  core::ClusterTime now;  ///< Cluster time at this moment; the state may be a little older.
  std::span<const MemberStatus> members{};
};

/// Hears of everything that happens. All calls come on the store's thread; they must be quick and
/// must not call the store back except by propose(), read() and loop().
class Listener {
 public:
  virtual ~Listener() = default;
  /// After each applied command, when its proposer has been told.
  virtual void applied(const core::Applied& /*what*/, const core::State& /*state*/) {}
  /// After the last command of an entry: the time to send what was gathered.
  virtual void settled() {}
  /// One write to the log is durable: how long it took, and how much it was.
  virtual void synced(std::chrono::nanoseconds /*took*/, std::size_t /*entries*/) {}
  /// One entry of our own is applied: how long after it was proposed, and with how many commands.
  virtual void committed(std::chrono::nanoseconds /*took*/, std::size_t /*commands*/) {}
  /// A snapshot is durable: how long it took to make and to write it.
  virtual void snapshot_taken(std::chrono::nanoseconds /*took*/) {}
  /// A snapshot could not be written. The store tries again later.
  virtual void snapshot_failed() {}
  /// As leader: a member does not have entries any more that it had acknowledged.
  virtual void member_lost_entries() {}
  /// This member began or ceased to lead, or follows somebody else.
  virtual void role_changed(const LogPosition& /*log*/) {}
  /// A snapshot of the leader took the place of the state; what was applied in between is not told.
  virtual void restored(const core::State& /*state*/) {}
};

/// The replicated, durable store, as the RPC and HTTP sides see it. Thread safe unless said
/// otherwise. One thread, that of loop(), owns the state and calls everybody back.
class Store {
 public:
  using Decision = std::move_only_function<void(Result<Decided>)>;
  using OnRead = std::move_only_function<void(Result<View>)>;

  virtual ~Store() = default;

  /// Makes the command durable, applies it, and then calls `decided`, once, on the store's thread.
  /// Errors: `unavailable`: the outcome is unknown (leadership was lost, the server stops): ask
  /// again with the same request id. `resource_exhausted`: too much is in flight or the disk is
  /// full; nothing was changed.
  virtual void propose(core::Command command, Decision decided) = 0;

  /// Shows the state on the store's thread: everything that was acknowledged before this call is
  /// in it. `unavailable` if this member does not lead.
  virtual void read(OnRead on_read) = 0;
  /// The same without a promise, on every member.
  virtual void peek(OnRead on_read) = 0;

  /// Takes a snapshot of the present state, durable when `done` is called on the store's thread
  /// with the index that it stands for.
  virtual void take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) = 0;

  /// Calls `done` on the store's thread when the group has been changed: a new member has caught up
  /// and votes, or a removed one does not count any more. `unavailable`: this member does not lead,
  /// or ceased to: look at the members before asking again. `invalid_argument`: there is (no) such
  /// member, or too few voters would be left. `would_block`: another change is under way.
  virtual void change_members(MemberChange change,
                              std::move_only_function<void(Result<void>)> done) = 0;
  /// Hands leadership to this voter, 0: to the one that has most of the log. `done` comes when this
  /// member has ceased to lead, or with `timed_out` if it goes on leading.
  virtual void transfer_leadership(std::uint64_t to,
                                   std::move_only_function<void(Result<void>)> done) = 0;

  /// What peek() shows, at once. REQUIRES: on the store's thread; it is good for that moment only.
  [[nodiscard]] virtual const core::State& state() const = 0;

  [[nodiscard]] virtual Identity identity() const = 0;
  /// For timers and tasks on the store's thread.
  [[nodiscard]] virtual boost::asio::io_context& loop() = 0;

  /// REQUIRES: before start() of the store, and the listener outlives it.
  virtual void listen(Listener& listener) = 0;
};

}  // namespace tenure::server
