#pragma once

#include <map>
#include <vector>

#include <tenure/key_range.hpp>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Resources at which claims ended. For a space, the ranges that they claimed.
using Freed = std::map<Resource, std::vector<BytesRange>>;

/// Returns the waits at these resources that can be granted, in the order of their grants: by
/// resource, and in queue order at each. A wait at several of the resources is listed at the first.
///
/// The order of grants does not matter to the result: a grant admits no other wait
/// (core/lock_table.hpp), and excludes none that can be granted too, because waits that can be
/// granted do not conflict with each other.
///
/// One pass in the order of turns, so that each queue is read once: also one that the waits of many
/// freed resources have in common. A long queue of which no wait can be granted costs O(1).
[[nodiscard]] std::vector<Revision> admissible_waits(const LockTable& table, const Freed& freed,
                                                     Visits& visits);

}  // namespace tenure::core
