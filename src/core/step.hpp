#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/command.hpp"
#include "core/deadlock.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// One command being applied. Only StateMachine makes them.
class Step {
 public:
  /// `visits_left` is what the searches of the batch may still visit; those of this command are
  /// subtracted. Without a limit in version 1.
  Step(State& state, std::uint64_t& visits_left);

  /// Moves time on, lets leases expire, takes the revision of the command.
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
  Outcome acquire_new(Lease& lease, const Wait& wanted, const Acquire& command);
  Outcome acquire_held(Lease& lease, const Hold& hold, Wait wanted, const Acquire& command);
  Outcome wait_for(Lease& lease, const Wait& wanted);
  /// What a request was for: an id is not used for two kinds.
  enum class Kind : std::uint8_t { acquire, release, downgrade, set_ttl };
  [[nodiscard]] std::optional<Outcome> find_answer(const Lease& lease, RequestId request,
                                                   Kind kind) const;
  [[nodiscard]] Queued queued(const Wait& wait) const;
  [[nodiscard]] bool is_self_blocking(const Wait& wanted);
  /// Turns what was wanted into a hold, with the present revision as token.
  Granted grant(Lease& lease, const Wait& wanted);

  // Letting go: step_release.cpp
  Outcome release(Lease& lease, const Release& command);
  Outcome release_token(Lease& lease, FencingToken token);
  Outcome release_item(Lease& lease, const Target& target);
  void remove_item(FencingToken token, std::size_t index, EventType why);
  /// Ends the waits and then the holds of these leases, and then the leases.
  void end_leases(std::span<const LeaseId> leases, EventType why);
  void end_waits_of(std::span<const LeaseId> leases, EventType why);
  void end_holds_of(std::span<const LeaseId> leases, EventType why);
  void end_wait(Revision ticket, Refused refused, EventType why);
  std::vector<Hold> end_holds(std::span<const FencingToken> tokens, EventType why);

  // Restored from a backup: step_restore.cpp
  [[nodiscard]] bool is_restoring() const noexcept { return state_.restoration.is_active(); }
  [[nodiscard]] bool is_unconfirmed(LeaseId lease) const {
    return state_.restoration.unconfirmed.contains(lease);
  }
  /// If its time is over: returns the leases that no client confirmed.
  [[nodiscard]] std::vector<LeaseId> end_restoration();
  /// False: the client has a hold that the state does not have.
  [[nodiscard]] bool confirm(const ConfirmHolds& command);

  // Leases: step_leases.cpp
  /// Its client was heard of.
  void refresh(Lease& lease);

  // Holding less: step_downgrade.cpp
  [[nodiscard]] std::optional<Refused> refusal_of(const Downgrade& command) const;

  // Letting in: step.cpp
  void touch(std::span<const Item> items);
  /// Lets in whoever can go at the touched places, and ends the deadlocks this leads to.
  void process_touched();
  void grant_waiting(Revision ticket);
  /// Adds the wait to the table, removes it from there: the waits of its client are counted.
  void add_wait(const Wait& wait);
  Wait remove_wait(Revision ticket);
  /// Nothing if the search costs too much.
  [[nodiscard]] std::optional<std::vector<Edge>> search_cycle(LeaseId lease);
  void end_deadlocks(LeaseId lease);

  void take_revision();
  [[nodiscard]] bool is_at_least(ClusterVersion version) const { return state_.version >= version; }
  /// The present time, if the state is of this version or newer; else 0, as in older snapshots.
  [[nodiscard]] ClusterTime time_at(ClusterVersion version) const {
    return is_at_least(version) ? state_.now : ClusterTime{};
  }
  void remember(Lease& lease, RequestId request, History::Entry entry);
  void refuse(Lease& lease, RequestId request, const Refused& refused);
  /// Forgets a few answers of finished requests that are outdated or too many.
  void forget_answers(Lease& lease);
  [[nodiscard]] bool has_room_for_answers(const Lease& lease) const;
  void forget_ended();
  /// Present time less Limits::answer_retention, 0 in version 1.
  [[nodiscard]] ClusterTime outdated() const;
  /// Its bytes are counted again when the step ends.
  void account(LeaseId lease) { changed_.push_back(lease); }
  /// Empty if the lease has none or is gone.
  [[nodiscard]] SharedString user_of(LeaseId lease) const {
    const auto* known = state_.leases.find(lease);
    return known == nullptr ? SharedString() : known->user;
  }
  template <class Record>
  void emit(EventType type, const Item& item, const Record& record, FencingToken token);

  State& state_;
  Applied applied_;
  /// Where somebody may be able to go now; of a space, the ranges.
  std::map<Resource, std::vector<BytesRange>> touched_;
  /// Operator and reason of the forced release that this step carries out, for its events.
  struct ForcedBy {
    SharedString operator_name{};
    SharedString reason{};
  };
  ForcedBy forced_by_;
  std::vector<LeaseId> changed_;  ///< See account().
  /// Lease that was granted an upgrade past a queue while it waits elsewhere: waits of that queue
  /// may wait for it now. No other grant closes a cycle. A wait that is granted is compatible with
  /// all waits ahead of it, and those behind it that it conflicts with waited for it before.
  std::optional<LeaseId> suspect_;
  std::size_t deadlocks_ = 0;  ///< Ended by this step.
  Visits visits_;
  std::uint64_t search_visits_ = 0;  ///< Part of visits_, of all searches for deadlocks.
  std::uint64_t search_visits_max_;
  std::uint64_t& visits_left_;
};

/// One event at the present revision, about an item of a hold or a wait.
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
