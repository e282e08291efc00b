#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/key_range.hpp>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/limits.hpp"
#include "core/shared_string.hpp"
#include "core/version.hpp"

namespace tenure::core {

/// What to do when the lock cannot be had at once.
enum class Queue : std::uint8_t { wait, skip };

/// What to do when it is the lease's own hold or wait that stands in the way.
enum class SelfConflict : std::uint8_t {
  refuse,   ///< Answer deadlock: one who waits for itself waits for ever.
  wait,     ///< Wait: several threads share the lease, and another of them will unlock.
  reenter,  ///< Share the hold: its token and a count; a stronger mode upgrades it.
};

/// Asks for all items or none, as one step.
struct Acquire {
  LeaseId lease{};
  RequestId request{};  ///< Not 0. The same id again gets the same answer.
  std::vector<Item> items{};
  Queue queue = Queue::wait;
  SelfConflict self_conflict =
      SelfConflict::refuse;  ///< `reenter` takes one item, which is not a semaphore.
  SharedString owner{};      ///< Who, for people.
  SharedString metadata{};   ///< Anything the user wants to find in the record.

  friend bool operator==(const Acquire&, const Acquire&) = default;
};

/// A lock by name, or an exact range of a space.
struct Target {
  std::string name{};
  std::optional<BytesRange> range{};  ///< Given: the keys of the space `name`.

  friend bool operator==(const Target&, const Target&) = default;
};

/// Gives back one acquisition: by its token all its items, or one item by target (the one
/// acquired last, if the lease has several).
struct Release {
  LeaseId lease{};
  RequestId request{};  ///< 0: not remembered. A retry with an id never counts down twice.
  std::variant<FencingToken, Target> what{};

  friend bool operator==(const Release&, const Release&) = default;
};

/// Leaves the queue. If the request was granted already, the answer is that grant. An id that is
/// not known yet is called off before it arrives.
struct Abandon {
  LeaseId lease{};
  RequestId request{};

  friend bool operator==(const Abandon&, const Abandon&) = default;
};

struct GrantLease {
  LeaseId id{};         ///< 0: the store chooses.
  RequestId request{};  ///< With a chosen id: tells a retry from somebody else's lease.
  ClusterTime ttl{};
  std::string client{};
  std::string address{};
  std::string user{};  ///< Authenticated user; empty without users. Since version 2.

  friend bool operator==(const GrantLease&, const GrantLease&) = default;
};

/// Sets the deadlines of all that live to now + ttl. Answers for each.
struct RenewLeases {
  std::vector<LeaseId> leases{};

  friend bool operator==(const RenewLeases&, const RenewLeases&) = default;
};

struct RevokeLease {
  LeaseId lease{};

  friend bool operator==(const RevokeLease&, const RevokeLease&) = default;
};

/// Lets time pass.
struct Tick {
  friend bool operator==(const Tick&, const Tick&) = default;
};

/// Takes a place from its holders, or from the one with this token. For operators.
struct ForceRelease {
  Resource resource{};
  std::optional<FencingToken> token{};
  SharedString operator_name{};  ///< User or address that asked for it. Since version 2.
  SharedString reason{};         ///< Free text of the operator. Since version 2.

  friend bool operator==(const ForceRelease&, const ForceRelease&) = default;
};

/// Forgets events up to this revision.
struct Compact {
  Revision revision{};

  friend bool operator==(const Compact&, const Compact&) = default;
};

/// From now on these limits count. What is there already stays, even if it is more than that;
/// only events and answers beyond the new limits are forgotten. The leader proposes it when its
/// configuration says something else than the state.
struct SetLimits {
  Limits limits{};

  friend bool operator==(const SetLimits&, const SetLimits&) = default;
};

/// Weakens a hold of one lock or range to a mode that the held one covers, and lets in whoever may
/// go then. Nobody else holds it in between; token and count stay.
struct Downgrade {
  LeaseId lease{};
  RequestId request{};  ///< 0: not remembered. The same id again gets the same answer.
  FencingToken token{};
  LockMode mode = LockMode::shared;

  friend bool operator==(const Downgrade&, const Downgrade&) = default;
};

/// Renews a lease, and from now on counts this ttl for it. What it was is forgotten.
struct SetTtl {
  LeaseId lease{};
  /// 0: not remembered. With one, a copy that arrives late changes nothing: it must not shorten
  /// what was lengthened since.
  RequestId request{};
  ClusterTime ttl{};

  friend bool operator==(const SetTtl&, const SetTtl&) = default;
};

/// Converts the state to this version (core/version.hpp). Exists since version 2.
struct SetClusterVersion {
  ClusterVersion version{};

  friend bool operator==(const SetClusterVersion&, const SetClusterVersion&) = default;
};

/// The client of this lease has exactly these holds, each named as often as it must be released.
/// Confirms a lease that was restored from a backup (Restoration): its other holds end. If the
/// state does not have one of these holds, the lease ends, because its client must not go on.
/// Renews the lease, and does only that if it needs no confirmation. Answered like RenewLeases of
/// one. Exists since version 2.
struct ConfirmHolds {
  LeaseId lease{};
  std::vector<FencingToken> tokens{};

  friend bool operator==(const ConfirmHolds&, const ConfirmHolds&) = default;
};

/// The order is that of the log: new commands are added at the end.
using Command = std::variant<Acquire, Release, Abandon, GrantLease, RenewLeases, RevokeLease, Tick,
                             ForceRelease, Compact, SetLimits, Downgrade, SetTtl, SetClusterVersion,
                             ConfirmHolds>;

}  // namespace tenure::core
