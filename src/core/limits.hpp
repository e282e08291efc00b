#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "core/version.hpp"

namespace tenure::core {

/// How much of everything one store takes. Part of the replicated state: replicas that disagreed
/// on a limit would diverge. Too long or too wide is `invalid_argument`; too many is
/// `resource_exhausted`. Either way the request changes nothing.
struct Limits {
  // One request. More than these can never succeed.
  std::size_t name_bytes_max = 1024;       ///< Of a lock or a space; at least 1.
  std::size_t key_bytes_max = 1025;        ///< Of an end of a range: a name and a zero byte.
  std::size_t owner_bytes_max = 256;       ///< Owner, client and address, each.
  std::size_t metadata_bytes_max = 4096;   ///< Kept with every hold and wait, and in events.
  std::size_t items_max = 64;              ///< Names and ranges in one request.
  std::size_t renewals_max = 10'000;       ///< Leases in one RenewLeases.
  std::uint32_t capacity_max = 1'000'000;  ///< Permits of a semaphore.
  ClusterTime ttl_min = std::chrono::milliseconds(100);
  ClusterTime ttl_max = std::chrono::hours(24);

  // The store. Later, when something was given back, the same request may succeed.
  std::size_t leases_max = 1'000'000;
  std::size_t leases_per_client_max = 1'000;  ///< Of one client id; a lease without one is free.
  std::size_t items_per_lease_max = 100'000;  ///< Held and waited for, together.
  std::size_t waits_per_lease_max = 10'000;   ///< Requests in queues.
  std::size_t waits_per_client_max = 10'000;  ///< The same over all leases of a client.
  std::size_t waiters_per_lock_max = 10'000;  ///< Costs memory, and time when many are admitted.
  std::uint32_t reentries_max = 65'535;       ///< Of one hold.

  // What is remembered. The oldest is forgotten first.
  std::size_t answers_per_lease_max = 4096;  ///< Of finished requests; live ones always are.
  std::size_t events_max = 4096;             ///< For watchers that come late.

  // Since version 2.
  /// Bytes of leases, holds and waits together (core/usage.hpp). Remembered answers may take a
  /// quarter of it besides. Bounds the memory of every member and the size of snapshots.
  std::size_t state_bytes_max = std::size_t{1} << 30;
  /// The same for the leases of one authenticated user.
  std::size_t state_bytes_per_user_max = std::size_t{256} << 20;
  /// How long the answer to a finished request is remembered, to recognise a retry.
  ClusterTime answer_retention = std::chrono::minutes(10);

  friend bool operator==(const Limits&, const Limits&) = default;
};

/// Calls visit(name, value) for every limit of this version, in the order of snapshots and of the
/// log.
void for_each_limit(auto& limits, ClusterVersion version, const auto& visit) {
  visit("name_bytes_max", limits.name_bytes_max);
  visit("key_bytes_max", limits.key_bytes_max);
  visit("owner_bytes_max", limits.owner_bytes_max);
  visit("metadata_bytes_max", limits.metadata_bytes_max);
  visit("items_max", limits.items_max);
  visit("renewals_max", limits.renewals_max);
  visit("capacity_max", limits.capacity_max);
  visit("ttl_min", limits.ttl_min);
  visit("ttl_max", limits.ttl_max);
  visit("leases_max", limits.leases_max);
  visit("leases_per_client_max", limits.leases_per_client_max);
  visit("items_per_lease_max", limits.items_per_lease_max);
  visit("waits_per_lease_max", limits.waits_per_lease_max);
  visit("waits_per_client_max", limits.waits_per_client_max);
  visit("waiters_per_lock_max", limits.waiters_per_lock_max);
  visit("reentries_max", limits.reentries_max);
  visit("answers_per_lease_max", limits.answers_per_lease_max);
  visit("events_max", limits.events_max);
  if (version >= version_2) {
    visit("state_bytes_max", limits.state_bytes_max);
    visit("state_bytes_per_user_max", limits.state_bytes_per_user_max);
    visit("answer_retention", limits.answer_retention);
  }
}
void for_each_limit(auto& limits, const auto& visit) {
  for_each_limit(limits, newest_version, visit);
}

/// These limits with the defaults for those that the version does not have.
[[nodiscard]] Limits at_version(Limits limits, ClusterVersion version);

/// Which limit makes no sense, and what would: each is at least 1 and not beyond all reason, and
/// ttl_min is not above ttl_max. Nothing: all is well.
[[nodiscard]] std::optional<Error> check(const Limits& limits);

}  // namespace tenure::core
