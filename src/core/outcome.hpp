#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/shared_string.hpp"

namespace tenure::core {

/// One edge of a cycle of waits: this request of this lease waits at `place` for the next member.
struct CycleStep {
  LeaseId lease{};
  RequestId request{};
  std::string owner{};
  Resource resource{};

  friend bool operator==(const CycleStep&, const CycleStep&) = default;
};

struct Granted {
  FencingToken token{};
  std::uint32_t count = 1;  ///< How many releases it takes.

  friend bool operator==(const Granted&, const Granted&) = default;
};

struct Queued {
  Revision ticket{};                      ///< When it joined; names the wait.
  std::size_t position = 0;               ///< 1 is next; the largest over its places.
  std::optional<Revision> predecessor{};  ///< Who stands right before it at that place.

  friend bool operator==(const Queued&, const Queued&) = default;
};

struct Released {
  std::uint32_t count_left = 0;  ///< 0: no longer held.

  friend bool operator==(const Released&, const Released&) = default;
};

struct LeaseGranted {
  LeaseId id{};
  ClusterTime ttl{};
  ClusterTime deadline{};

  friend bool operator==(const LeaseGranted&, const LeaseGranted&) = default;
};

/// One answer per lease that was asked for, in that order.
struct Renewed {
  struct Answer {
    LeaseId id{};
    std::optional<ClusterTime> ttl;  ///< Nothing: the lease is lost,
    bool is_unconfirmed = false;     ///< unless its client sends ConfirmHolds. See Restoration.

    friend bool operator==(const Answer&, const Answer&) = default;
  };
  std::vector<Answer> answers{};

  friend bool operator==(const Renewed&, const Renewed&) = default;
};

/// Revoked, ticked, compacted: it was done.
struct Done {
  friend bool operator==(const Done&, const Done&) = default;
};

struct Forced {
  std::size_t holds = 0;  ///< How many were taken away.

  friend bool operator==(const Forced&, const Forced&) = default;
};

/// The lease is not known: never granted, expired or revoked. All under it is gone.
struct LeaseLost {
  LeaseId id{};

  friend bool operator==(const LeaseLost&, const LeaseLost&) = default;
};

/// Nothing was changed, or the wait has ended without a grant.
struct Refused {
  Error error{.code = Errc::invalid_argument};
  std::vector<CycleStep> cycle{};  ///< With `deadlock`: who waited for whom. The first gave way.

  friend bool operator==(const Refused&, const Refused&) = default;
};

/// Held in this mode from then on.
struct Downgraded {
  LockMode mode = LockMode::shared;

  friend bool operator==(const Downgraded&, const Downgraded&) = default;
};

using Outcome = std::variant<Done, Granted, Queued, Released, LeaseGranted, Renewed, Forced,
                             LeaseLost, Refused, Downgraded>;

enum class EventType : std::uint8_t {
  queued,      ///< Joined the queue.
  granted,     ///< Holds it, or holds it in a stronger mode.
  released,    ///< Given back by its holder.
  expired,     ///< Its lease ran out: a hold if it has a token, else a wait.
  revoked,     ///< Its lease was revoked: likewise.
  forced,      ///< Taken away by an operator.
  abandoned,   ///< Left the queue.
  deadlock,    ///< Was refused or left the queue because it closed a cycle.
  downgraded,  ///< Holds it on, in a weaker mode.
};
inline constexpr EventType last_event_type = EventType::downgraded;

/// What happened at one place.
struct Event {
  Revision revision{};
  ClusterTime time{};
  EventType type = EventType::queued;
  Item item{};
  LeaseId lease{};
  RequestId request{};
  FencingToken token{};  ///< 0 for a wait.
  SharedString owner{};
  SharedString metadata{};
  SharedString user{};  ///< Authenticated user of the lease. Since version 2, as what follows.
  SharedString operator_name{};  ///< With `forced`: user or address that forced the release.
  SharedString reason{};         ///< With `forced`: the operator's reason.

  friend bool operator==(const Event&, const Event&) = default;
};

/// The end of a wait: to be told to whoever asked.
struct Notice {
  LeaseId lease{};
  RequestId request{};
  std::variant<Granted, Refused, LeaseLost> end{};

  friend bool operator==(const Notice&, const Notice&) = default;
};

/// A hold, or items of it, that ended without its holder's asking: to be told to the lease's owner.
struct Loss {
  LeaseId lease{};
  RequestId request{};  ///< The one that began the hold.
  FencingToken token{};
  EventType why = EventType::expired;  ///< Or revoked, or forced.
  std::size_t items_left = 0;          ///< 0: the hold has ended. More only when forced.

  friend bool operator==(const Loss&, const Loss&) = default;
};

/// What a hold was before it ended, or was strengthened.
struct PreviousHold {
  Revision create_revision{};  ///< Of its first grant.
  ClusterTime acquired{};      ///< When it got the token that it had.

  friend bool operator==(const PreviousHold&, const PreviousHold&) = default;
};

/// What one command did.
struct Applied {
  Revision revision{};  ///< Of the store, afterwards.
  ClusterTime time{};
  Outcome outcome{};
  std::vector<Event> events{};
  std::vector<Notice> notices{};
  std::vector<Loss> losses{};         ///< One per hold.
  std::vector<PreviousHold> ended{};  ///< One for each event of an end with a token, in that order.
  std::vector<PreviousHold> upgraded{};  ///< Holds that were upgraded.
  std::uint64_t visits = 0;              ///< What it cost (core/visits.hpp).
  std::uint64_t search_visits = 0;       ///< Part of `visits`, of the searches for deadlocks.
  /// Answers to finished requests that were forgotten earlier than Limits::answer_retention.
  std::size_t answers_dropped = 0;

  friend bool operator==(const Applied&, const Applied&) = default;
};

}  // namespace tenure::core
