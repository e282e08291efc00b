#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/shared_string.hpp"

namespace tenure::core {

/// Edge of a deadlock cycle: this request of this lease waits at `resource` for the next member.
struct CycleStep {
  LeaseId lease{};
  RequestId request{};
  std::string owner{};
  Resource resource{};

  friend bool operator==(const CycleStep&, const CycleStep&) = default;
};

/// The request is granted. A retry of a reentry returns the count at that time.
struct Granted {
  FencingToken token{};
  std::uint32_t count = 1;  ///< Number of releases that end the hold.

  friend bool operator==(const Granted&, const Granted&) = default;
};

/// The request waits. A Notice reports the end of the wait.
struct Queued {
  Revision ticket{};         ///< Revision in which it was queued; identifies the wait.
  std::size_t position = 0;  ///< Position in the queue, from 1; the largest over its resources.
  std::optional<Revision> predecessor{};  ///< Ticket of the wait directly ahead at that resource.

  friend bool operator==(const Queued&, const Queued&) = default;
};

/// One acquisition is released.
struct Released {
  std::uint32_t count_left = 0;  ///< Remaining releases; 0: the hold has ended.

  friend bool operator==(const Released&, const Released&) = default;
};

/// The lease exists, newly granted or by a retry.
struct LeaseGranted {
  LeaseId id{};
  ClusterTime ttl{};
  ClusterTime deadline{};

  friend bool operator==(const LeaseGranted&, const LeaseGranted&) = default;
};

/// One answer per requested lease, in the same order.
struct Renewed {
  struct Answer {
    LeaseId id{};
    std::optional<ClusterTime> ttl;  ///< New time to live; nothing: the lease is not renewed.
    bool is_unconfirmed =
        false;  ///< The client can keep the lease by ConfirmHolds. See Restoration.

    friend bool operator==(const Answer&, const Answer&) = default;
  };
  std::vector<Answer> answers{};

  friend bool operator==(const Renewed&, const Renewed&) = default;
};

/// Success without further data: revoked, ticked, compacted.
struct Done {
  friend bool operator==(const Done&, const Done&) = default;
};

/// Operator release: holds were ended, each with a Loss for its holder.
struct Forced {
  std::size_t holds = 0;  ///< Number of holds that were released.

  friend bool operator==(const Forced&, const Forced&) = default;
};

/// The lease does not exist: it was never granted, has expired or was revoked, and with it all its
/// holds and waits.
struct LeaseLost {
  LeaseId id{};

  friend bool operator==(const LeaseLost&, const LeaseLost&) = default;
};

/// Refusal: the command changed nothing, or the wait ended without a grant.
struct Refused {
  Error error{.code = Errc::invalid_argument};
  std::vector<CycleStep> cycle{};  ///< Cycle of a `deadlock`; its first member is the victim.

  friend bool operator==(const Refused&, const Refused&) = default;
};

/// The hold has this mode now.
struct Downgraded {
  LockMode mode = LockMode::shared;

  friend bool operator==(const Downgraded&, const Downgraded&) = default;
};

using Outcome = std::variant<Done, Granted, Queued, Released, LeaseGranted, Renewed, Forced,
                             LeaseLost, Refused, Downgraded>;

/// Type of an event. INVARIANT: the value is part of the snapshot format, so new types are added at
/// the end.
enum class EventType : std::uint8_t {
  queued,      ///< The request was queued.
  granted,     ///< The request was granted, or a hold was upgraded.
  released,    ///< The holder released it.
  expired,     ///< The lease expired: ended a hold if the event has a token, else a wait.
  revoked,     ///< The lease was revoked: ended a hold or a wait.
  forced,      ///< An operator released it by force.
  abandoned,   ///< The wait was cancelled.
  deadlock,    ///< The request was refused, or its wait ended, because it closed a cycle.
  downgraded,  ///< The hold was downgraded.
};
inline constexpr EventType last_event_type = EventType::downgraded;

/// Event of one item.
struct Event {
  Revision revision{};
  ClusterTime time{};
  EventType type = EventType::queued;
  Item item{};
  LeaseId lease{};
  RequestId request{};
  FencingToken token{};  ///< Token of the hold; 0 for a wait.
  SharedString owner{};
  SharedString metadata{};
  SharedString
      user{};  ///< Authenticated user of the lease. This and the next fields: since version 2.
  SharedString operator_name{};  ///< User or address that forced the release; only with `forced`.
  SharedString reason{};         ///< Reason that the operator gave; only with `forced`.

  friend bool operator==(const Event&, const Event&) = default;
};

/// Notification of the waiting client: its wait has ended.
struct Notice {
  LeaseId lease{};
  RequestId request{};
  std::variant<Granted, Refused, LeaseLost> end{};

  friend bool operator==(const Notice&, const Notice&) = default;
};

/// Notification of the holder: its hold, or items of it, ended without a release of its own.
struct Loss {
  LeaseId lease{};
  RequestId request{};  ///< Request that created the hold.
  FencingToken token{};
  EventType why = EventType::expired;  ///< Cause: expired, revoked or forced.
  std::size_t items_left =
      0;  ///< Remaining items of the hold; 0: it has ended. Not 0 only after `forced`.

  friend bool operator==(const Loss&, const Loss&) = default;
};

/// Hold as it was before it ended or was upgraded.
struct PreviousHold {
  Revision create_revision{};  ///< Revision of its first grant.
  ClusterTime acquired{};      ///< Time at which it got its last token.

  friend bool operator==(const PreviousHold&, const PreviousHold&) = default;
};

/// Result of one command: outcome, events, and notifications.
struct Applied {
  Revision revision{};  ///< Revision of the store after the command.
  ClusterTime time{};
  Outcome outcome{};
  std::vector<Event> events{};
  std::vector<Notice> notices{};
  std::vector<Loss> losses{};  ///< One loss per hold.
  std::vector<PreviousHold>
      ended{};  ///< Ended holds: one per event that ends a hold, in the same order.
  std::vector<PreviousHold> upgraded{};  ///< Holds that were upgraded.
  std::uint64_t visits = 0;              ///< Cost of the step (core/visits.hpp).
  std::uint64_t search_visits = 0;       ///< Part of `visits` that deadlock searches made.
  /// Limit that refused the command, by its name in Limits or `deadlock_visits_max`; empty: none.
  std::string_view reached_limit{};
  /// Number of answers that were forgotten before Limits::answer_retention had passed.
  std::size_t answers_dropped = 0;

  friend bool operator==(const Applied&, const Applied&) = default;
};

}  // namespace tenure::core
