#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "core/version.hpp"

namespace tenure::core {

/// Limits of one store. Part of the replicated state: replicas that disagreed on a limit would
/// diverge. A request that exceeds a size limit is refused with `invalid_argument`, one that
/// exceeds a count with `resource_exhausted`; it changes nothing.
struct Limits {
  // Size of one request. A retry cannot succeed.
  std::size_t name_bytes_max = 1024;  ///< Length of the name of a lock or space; at least 1.
  std::size_t key_bytes_max =
      1025;  ///< Length of an end of a range: 1024, and a zero byte for a successor.
  std::size_t owner_bytes_max = 256;  ///< Length of owner, of client and of address.
  std::size_t metadata_bytes_max =
      4096;                    ///< Length of metadata, which every hold, wait and event contains.
  std::size_t items_max = 64;  ///< Names and ranges in one request.
  std::size_t renewals_max = 10'000;       ///< Leases in one RenewLeases.
  std::uint32_t capacity_max = 1'000'000;  ///< Capacity of a semaphore.
  ClusterTime ttl_min = std::chrono::milliseconds(100);
  ClusterTime ttl_max = std::chrono::hours(24);

  // Number of records. The same request may succeed after another one has released some.
  std::size_t leases_max = 1'000'000;
  std::size_t leases_per_client_max =
      1'000;  ///< Leases of one client id; leases without one do not count.
  std::size_t items_per_lease_max = 100'000;  ///< Held and awaited items together.
  std::size_t waits_per_lease_max = 10'000;   ///< Queued requests of one lease.
  std::size_t waits_per_client_max = 10'000;  ///< Queued requests of all leases of a client.
  std::size_t waiters_per_lock_max =
      10'000;  ///< Queue length. Costs memory, and time when many are granted in one step.
  std::uint32_t reentries_max = 65'535;  ///< Reentry count of one hold.

  // Memory of the past. The oldest entry is forgotten first.
  std::size_t answers_per_lease_max =
      4096;  ///< Answers of finished requests; live requests are always remembered.
  std::size_t events_max = 4096;  ///< Events from which a watch can resume.

  // Since version 2.
  /// Bytes of leases, holds and waits (core/usage.hpp); remembered answers may take another
  /// quarter. Bounds the memory of every member and the size of snapshots.
  std::size_t state_bytes_max = std::size_t{1} << 30;
  /// The same for the leases of one authenticated user.
  std::size_t state_bytes_per_user_max = std::size_t{256} << 20;
  /// Time for which the answer to a finished request is remembered, to recognise a retry.
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

/// `limits` with default values for the limits that the version lacks.
[[nodiscard]] Limits at_version(Limits limits, ClusterVersion version);

/// Validates the limits: each is at least 1 and at most an upper bound, and ttl_min <= ttl_max. The
/// error names the limit and its valid range.
[[nodiscard]] std::optional<Error> check(const Limits& limits);

}  // namespace tenure::core
