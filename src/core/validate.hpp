#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "core/limits.hpp"
#include "core/lock_table.hpp"
#include "core/state.hpp"

namespace tenure::core {

// Checks that do not depend on the state: `invalid_argument`, or nothing. A retry cannot succeed.
[[nodiscard]] std::optional<Error> check(const Acquire& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const GrantLease& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const RenewLeases& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const SetTtl& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const ForceRelease& command, const Limits& limits);

/// Whether two of the items claim the same lock, or overlapping ranges. Neither a request nor a
/// hold has such items.
[[nodiscard]] bool have_overlap(std::span<const Item> items);

/// Sorts items by comes_before().
[[nodiscard]] Items in_order(std::span<const Item> items);

/// Checks that each claim is of the kind of its resource: a semaphore of the same capacity, or a
/// lock.
[[nodiscard]] std::optional<Error> check_kinds(std::span<const Item> items, const LockTable& table);

/// Limit that refuses a request with `resource_exhausted`.
struct ReachedLimit {
  std::string_view limit{};  ///< Name in Limits. Points to a literal.
  std::string detail{};      ///< Text for the client.
};

/// Checks the counts and quotas of the lease for these items; for a wait also those of the queues
/// and the waits of the client. REQUIRES: the lease is live.
enum class LimitsFor : std::uint8_t { hold, wait };
[[nodiscard]] std::optional<ReachedLimit> check_limits(const Wait& wanted, LimitsFor room,
                                                       const State& state);
/// Checks the counts and quotas of the client for one more lease.
[[nodiscard]] std::optional<ReachedLimit> check_limits(const GrantLease& command,
                                                       const State& state);

}  // namespace tenure::core
