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

/// Policy for a request that cannot be granted at once: queue it, or refuse it (a try).
enum class Queue : std::uint8_t { wait, skip };

/// Policy for a request that conflicts with a hold or wait of its own lease.
enum class SelfConflict : std::uint8_t {
  refuse,   ///< Refuse with deadlock: the request would wait for itself.
  wait,     ///< Queue: several threads share the lease, and another of them will release.
  reenter,  ///< Reenter the hold: count it, keep its token; a stronger mode upgrades it.
};

/// Acquires all items atomically, or none.
struct Acquire {
  LeaseId lease{};
  RequestId request{};  ///< Not 0. A retry with the same id gets the same answer.
  std::vector<Item> items{};
  Queue queue = Queue::wait;
  SelfConflict self_conflict =
      SelfConflict::refuse;  ///< `reenter` takes one item, which is not a semaphore.
  SharedString owner{};      ///< Human-readable name of the owner.
  SharedString metadata{};   ///< Opaque bytes of the user, kept with the hold.

  friend bool operator==(const Acquire&, const Acquire&) = default;
};

/// Lock by name, or exact range of a space.
struct Target {
  std::string name{};
  std::optional<BytesRange> range{};  ///< Range of the space `name`; absent for a lock.

  friend bool operator==(const Target&, const Target&) = default;
};

/// Releases one acquisition: all its items by token, or one item by target (the one acquired last,
/// if the lease has several).
struct Release {
  LeaseId lease{};
  RequestId request{};  ///< 0: no duplicate detection. A retry with an id releases once.
  std::variant<FencingToken, Target> what{};

  friend bool operator==(const Release&, const Release&) = default;
};

/// Cancels a wait. If the request was granted already, the answer is that grant. An unknown id is
/// remembered, so that a late Acquire with it is refused.
struct Abandon {
  LeaseId lease{};
  RequestId request{};

  friend bool operator==(const Abandon&, const Abandon&) = default;
};

/// Grants a lease. Idempotent with a chosen id and a request id: a retry returns the same lease.
struct GrantLease {
  LeaseId id{};         ///< 0: the store chooses one.
  RequestId request{};  ///< Recognises a retry if `id` is chosen by the client.
  ClusterTime ttl{};
  std::string client{};
  std::string address{};
  std::string user{};  ///< Authenticated user; empty without users. Since version 2.

  friend bool operator==(const GrantLease&, const GrantLease&) = default;
};

/// Renews leases: the deadline of each live one becomes now + ttl. One answer per lease.
struct RenewLeases {
  std::vector<LeaseId> leases{};

  friend bool operator==(const RenewLeases&, const RenewLeases&) = default;
};

/// Ends a lease with all its holds and waits, as its expiry would.
struct RevokeLease {
  LeaseId lease{};

  friend bool operator==(const RevokeLease&, const RevokeLease&) = default;
};

/// Advances cluster time, so that leases expire while no other command arrives.
struct Tick {
  friend bool operator==(const Tick&, const Tick&) = default;
};

/// Operator command: releases a resource against the will of all its holders, or of the one with
/// this token.
struct ForceRelease {
  Resource resource{};
  std::optional<FencingToken> token{};
  SharedString operator_name{};  ///< User or address that asked for it. Since version 2.
  SharedString reason{};         ///< Free text of the operator. Since version 2.

  friend bool operator==(const ForceRelease&, const ForceRelease&) = default;
};

/// Compacts the event ring up to and with this revision.
struct Compact {
  Revision revision{};

  friend bool operator==(const Compact&, const Compact&) = default;
};

/// Replaces the limits. Existing records stay, even beyond the new limits; only events and answers
/// beyond them are forgotten. The leader proposes it when its configuration differs from the state.
struct SetLimits {
  Limits limits{};

  friend bool operator==(const SetLimits&, const SetLimits&) = default;
};

/// Downgrades a hold of one lock or range to a mode that the held one covers, and grants waiters
/// that it blocked. Atomic: no other exclusive holder comes in between. Token and count stay.
struct Downgrade {
  LeaseId lease{};
  RequestId
      request{};  ///< 0: no duplicate detection. A retry with the same id gets the same answer.
  FencingToken token{};
  LockMode mode = LockMode::shared;

  friend bool operator==(const Downgrade&, const Downgrade&) = default;
};

/// Renews a lease with a new ttl, which later renewals use too.
struct SetTtl {
  LeaseId lease{};
  /// 0: no duplicate detection. With an id, a late copy changes nothing: it must not shorten a ttl
  /// that was extended since.
  RequestId request{};
  ClusterTime ttl{};

  friend bool operator==(const SetTtl&, const SetTtl&) = default;
};

/// Converts the state to this version (core/version.hpp). Since version 2.
struct SetClusterVersion {
  ClusterVersion version{};

  friend bool operator==(const SetClusterVersion&, const SetClusterVersion&) = default;
};

/// The client of this lease has exactly these holds, each named as often as it must be released.
/// Confirms a lease that was restored from a backup (Restoration): its other holds end. If the
/// state lacks one of these holds, the lease ends, because its client relies on a lock that may be
/// granted to others. Also renews the lease; does only that if it needs no confirmation. Answered
/// like RenewLeases of one lease. Since version 2.
struct ConfirmHolds {
  LeaseId lease{};
  std::vector<FencingToken> tokens{};

  friend bool operator==(const ConfirmHolds&, const ConfirmHolds&) = default;
};

/// All commands. INVARIANT: the index of a command is its kind in the log, so new commands are
/// added at the end.
using Command = std::variant<Acquire, Release, Abandon, GrantLease, RenewLeases, RevokeLease, Tick,
                             ForceRelease, Compact, SetLimits, Downgrade, SetTtl, SetClusterVersion,
                             ConfirmHolds>;

}  // namespace tenure::core
