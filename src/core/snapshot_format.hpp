#pragma once

#include <cstddef>
#include <string_view>

#include "core/limits.hpp"

namespace tenure::core {

/// What the writer and the reader of snapshots must agree on.
inline constexpr std::string_view snapshot_magic = "TENURESN";
/// Magic, version and length before the body; the checksum behind it.
inline constexpr std::size_t snapshot_head_bytes = 8 + 4 + 8;
inline constexpr std::size_t snapshot_tail_bytes = 4;

/// Every limit, in the order of the snapshot.
void for_each_limit(auto& limits, const auto& visit) {
  visit(limits.name_bytes_max);
  visit(limits.key_bytes_max);
  visit(limits.owner_bytes_max);
  visit(limits.metadata_bytes_max);
  visit(limits.items_max);
  visit(limits.renewals_max);
  visit(limits.capacity_max);
  visit(limits.ttl_min);
  visit(limits.ttl_max);
  visit(limits.leases_max);
  visit(limits.items_per_lease_max);
  visit(limits.waits_per_lease_max);
  visit(limits.waiters_per_lock_max);
  visit(limits.reentries_max);
  visit(limits.answers_per_lease_max);
  visit(limits.events_max);
}

}  // namespace tenure::core
