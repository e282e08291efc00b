#pragma once

#include <optional>
#include <span>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "core/limits.hpp"
#include "core/lock_table.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// What no state could make right: `invalid_argument`, or nothing.
[[nodiscard]] std::optional<Error> check(const Acquire& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const GrantLease& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const RenewLeases& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const SetTtl& command, const Limits& limits);
[[nodiscard]] std::optional<Error> check(const ForceRelease& command, const Limits& limits);

/// Items in the order of comes_before(). REQUIRES: check() had no complaint.
[[nodiscard]] Items in_order(std::span<const Item> items);

/// A semaphore is asked for as a semaphore of the same capacity, a lock as a lock.
[[nodiscard]] std::optional<Error> check_kinds(std::span<const Item> items, const LockTable& table);

/// Room for the items under the lease; with `wait`, also for one more in every queue and among the
/// waits of the lease and its client. REQUIRES: the lease lives.
enum class LimitsFor : std::uint8_t { hold, wait };
[[nodiscard]] std::optional<Error> check_limits(const Wait& wanted, LimitsFor room,
                                                const State& state);
/// Room for one more lease of this client.
[[nodiscard]] std::optional<Error> check_limits(const GrantLease& command, const State& state);

}  // namespace tenure::core
