#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/admissible_waits.hpp"
#include "core/command.hpp"
#include "core/deadlock.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"
#include "core/validate.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Execution of one command: a visitor over Command, used for one command and then dropped. Only
/// StateMachine creates it. The members are grouped by the file that implements them. Not thread
/// safe.
class Step {
 public:
  /// `visits_left`: remaining visits of the deadlock searches of the batch, from which those of
  /// this command are subtracted. Ignored in version 1.
  Step(State& state, std::uint64_t& visits_left);

  /// Advances time, expires leases, takes the revision of the command.
  void begin(const Stamp& stamp);
  Applied finish(Outcome outcome);

  Outcome operator()(const Acquire& command);
  Outcome operator()(const Release& command);
  Outcome operator()(const Abandon& command);
  Outcome operator()(const GrantLease& command);
  Outcome operator()(const RenewLeases& command);
  Outcome operator()(const RevokeLease& command);
  Outcome operator()(const Tick& command);
  Outcome operator()(const ForceRelease& command);
  Outcome operator()(const Compact& command);
  Outcome operator()(const SetLimits& command);
  Outcome operator()(const Downgrade& command);
  Outcome operator()(const SetTtl& command);
  Outcome operator()(const SetClusterVersion& command);
  Outcome operator()(const ConfirmHolds& command);

 private:
  // Acquiring: step_acquire.cpp
  /// Grants, queues or refuses a request that does not reenter a hold.
  Outcome acquire_new(Lease& lease, const Wait& wanted, const Acquire& command);
  /// Reenters or upgrades a hold of the lease.
  Outcome acquire_held(Lease& lease, const Hold& hold, Wait wanted, const Acquire& command);
  /// Queues the request, unless it closes a cycle.
  Outcome wait_for(Lease& lease, const Wait& wanted);
  /// Kind of a request. An id cannot be reused for another kind.
  enum class Kind : std::uint8_t { acquire, release, downgrade, set_ttl };
  /// Remembered answer to a retry; nothing for a new request.
  [[nodiscard]] std::optional<Outcome> find_answer(const Lease& lease, RequestId request,
                                                   Kind kind) const;
  /// Present queue position of a wait.
  [[nodiscard]] Queued queued(const Wait& wait) const;
  /// Whether the request waits for a hold or wait of its own lease, and so for ever.
  [[nodiscard]] bool is_self_blocking(const Wait& wanted);
  /// Creates the hold, with the present revision as token.
  Granted grant(Lease& lease, const Wait& wanted);

  // Releasing: step_release.cpp
  /// Releases, and remembers the answer.
  Outcome release(Lease& lease, const Release& command);
  Outcome release_token(Lease& lease, FencingToken token);
  Outcome release_item(Lease& lease, const Target& target);
  /// Ends one item of a hold; the hold ends with its last item.
  void remove_item(FencingToken token, std::size_t index, EventType why);
  /// Ends the waits and then the holds of these leases, and then the leases.
  void end_leases(std::span<const LeaseId> leases, EventType why);
  void end_waits_of(std::span<const LeaseId> leases, EventType why);
  void end_holds_of(std::span<const LeaseId> leases, EventType why);
  /// Ends a wait with a refusal, as the victim of a deadlock.
  void end_wait(Revision ticket, Refused refused, EventType why);
  std::vector<Hold> end_holds(std::span<const FencingToken> tokens, EventType why);

  // Restored from a backup: step_restore.cpp
  [[nodiscard]] bool is_restoring() const noexcept { return state_.restoration.is_active(); }
  [[nodiscard]] bool is_unconfirmed(LeaseId lease) const {
    return state_.restoration.unconfirmed.contains(lease);
  }
  /// Ends the grace period if its time has come. Returns the leases that no client confirmed.
  [[nodiscard]] std::vector<LeaseId> end_restoration();
  /// Returns false if the client has a hold that the state lacks.
  [[nodiscard]] bool confirm(const ConfirmHolds& command);

  // Leases: step_leases.cpp
  /// Records that the client has sent a command under this lease.
  void refresh(Lease& lease);

  // Downgrading: step_downgrade.cpp
  /// Reason why a downgrade is impossible; nothing if it is possible.
  [[nodiscard]] std::optional<Refused> refusal_of(const Downgrade& command) const;

  // Granting waiters: step.cpp
  /// Marks the resources of these items: waits at them may have become admissible.
  void touch(std::span<const Item> items);
  /// Grants the admissible waits at the touched resources, and resolves deadlocks that this closes.
  void process_touched();
  /// Grants a wait under a revision of its own, and notifies its client.
  void grant_waiting(Revision ticket);
  /// Adds a wait to the lock table, or removes it, and counts the waits of its client.
  void add_wait(const Wait& wait);
  Wait remove_wait(Revision ticket);
  /// Returns nothing if the search exceeds its visits.
  [[nodiscard]] std::optional<std::vector<Edge>> search_cycle(LeaseId lease);
  /// Resolves the deadlocks through this lease. The victim is the youngest wait of each cycle.
  void end_deadlocks(LeaseId lease);

  /// Takes the next revision.
  void take_revision();
  [[nodiscard]] bool is_at_least(ClusterVersion version) const { return state_.version >= version; }
  /// Present time, if the state is of this version or newer; else 0, as in older snapshots.
  [[nodiscard]] ClusterTime time_at(ClusterVersion version) const {
    return is_at_least(version) ? state_.now : ClusterTime{};
  }
  /// Records an answer for duplicate detection, and forgets old ones.
  void remember(Lease& lease, RequestId request, History::Entry entry);
  /// Refuses the command because of a limit. Not remembered: a retry may succeed later.
  [[nodiscard]] Refused refuse_by_limit(ReachedLimit reached);
  /// Remembers a refusal, so that a retry gets it again.
  void refuse(Lease& lease, RequestId request, const Refused& refused);
  /// Forgets a few finished answers that are outdated or beyond the limit.
  void forget_answers(Lease& lease);
  /// Whether the answers are within the quotas of the store and of the user.
  [[nodiscard]] bool has_room_for_answers(const Lease& lease) const;
  /// Forgets a few ended leases that are outdated or beyond the limit.
  void forget_ended();
  /// Time at or before which answers are outdated; 0 in version 1.
  [[nodiscard]] ClusterTime outdated() const;
  /// Recounts the bytes of this lease at the end of the step.
  void account(LeaseId lease) { changed_.push_back(lease); }
  /// User of a lease; empty if it has none or has ended.
  [[nodiscard]] SharedString user_of(LeaseId lease) const {
    const auto* known = state_.leases.find(lease);
    return known == nullptr ? SharedString() : known->user;
  }
  template <class Record>
  void emit(EventType type, const Item& item, const Record& record, FencingToken token);

  State& state_;
  Applied applied_;
  /// Resources at which waits may have become admissible.
  Freed touched_;
  /// Operator and reason of a forced release, for its events.
  struct ForcedBy {
    SharedString operator_name{};
    SharedString reason{};
  };
  ForcedBy forced_by_;
  std::vector<LeaseId> changed_;  ///< Leases to recount; see account().
  /// Lease that was granted an upgrade ahead of a queue while it waits elsewhere: waits of that
  /// queue may wait for it now, which may close a cycle. No other grant does: a granted wait is
  /// compatible with all waits ahead of it, and conflicting waits behind it waited for it before.
  std::optional<LeaseId> suspect_;
  std::size_t deadlocks_ = 0;  ///< Number of deadlocks that this step has resolved.
  Visits visits_;
  std::uint64_t search_visits_ = 0;  ///< Part of visits_ that deadlock searches made.
  std::uint64_t search_visits_max_;
  std::uint64_t& visits_left_;
};

/// Appends an event at the present revision about an item of a hold or a wait.
template <class Record>
void Step::emit(EventType type, const Item& item, const Record& record, FencingToken token) {
  applied_.events.push_back({.revision = state_.revision,
                             .time = state_.now,
                             .type = type,
                             .item = item,
                             .lease = record.lease,
                             .request = record.request,
                             .token = token,
                             .owner = record.owner,
                             .metadata = record.metadata,
                             .user = user_of(record.lease)});
  if (type == EventType::forced) {
    applied_.events.back().operator_name = forced_by_.operator_name;
    applied_.events.back().reason = forced_by_.reason;
  }
  state_.events.append(applied_.events.back());
  if constexpr (std::is_same_v<Record, Hold>) {
    if (type != EventType::granted && type != EventType::downgraded) {
      applied_.ended.push_back(
          {.create_revision = record.create_revision, .acquired = record.acquired});
    }
  }
}

}  // namespace tenure::core
