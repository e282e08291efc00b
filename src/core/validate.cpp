#include "core/validate.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tenure::core {
namespace {

Error invalid(std::string detail) {
  return {.code = Errc::invalid_argument, .detail = std::move(detail)};
}

std::string at_most(std::string_view what, std::size_t limit) {
  return std::string(what) + ": at most " + std::to_string(limit);
}

std::string one_to(std::string_view what, std::size_t limit) {
  return std::string(what) + ": at least 1, at most " + std::to_string(limit);
}

/// Rejects control characters in names and owners, because terminals and logs show them. Other
/// bytes are allowed.
std::optional<Error> check_printable(std::string_view what, std::string_view text) {
  const auto is_control = [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
  };
  const auto it = std::ranges::find_if(text, is_control);
  if (it == text.end()) {
    return std::nullopt;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(*it);
  return invalid(std::string(what) + " has a control character: byte 0x" + digits[byte >> 4] +
                 digits[byte & 0xF] + " at " + std::to_string(it - text.begin()));
}

std::optional<Error> check_permits(const Permits& permits, const Limits& limits) {
  if (permits.capacity == 0 || permits.capacity > limits.capacity_max) {
    return invalid(one_to("capacity of a semaphore", limits.capacity_max));
  }
  if (permits.wanted == 0 || permits.wanted > permits.capacity) {
    return invalid("permits wanted: at least one, at most the capacity");
  }
  return std::nullopt;
}

std::optional<Error> check_item(const Item& item, const Limits& limits) {
  if (item.name.empty() || item.name.size() > limits.name_bytes_max) {
    return invalid(one_to("bytes of a name", limits.name_bytes_max));
  }
  if (auto error = check_printable("a name", item.name.view())) {
    return error;
  }
  if (const auto* permits = std::get_if<Permits>(&item.claim)) {
    return check_permits(*permits, limits);
  }
  if (const auto* keys = std::get_if<Keys>(&item.claim)) {
    const auto end = keys->range.end() ? keys->range.end()->size() : 0;
    if (std::max(keys->range.start().size(), end) > limits.key_bytes_max) {
      return invalid(at_most("bytes of a key", limits.key_bytes_max));
    }
  }
  return std::nullopt;
}

std::optional<Error> check_ttl(ClusterTime ttl, const Limits& limits) {
  if (ttl < limits.ttl_min || ttl > limits.ttl_max) {
    return invalid("ttl in microseconds: at least " + std::to_string(limits.ttl_min.count()) +
                   ", at most " + std::to_string(limits.ttl_max.count()));
  }
  return std::nullopt;
}

/// Whether two items claim the same lock, or overlapping ranges.
bool overlap(const Item& left, const Item& right) {
  if (left.name != right.name || left.kind() != right.kind()) {
    return false;
  }
  const auto* a = std::get_if<Keys>(&left.claim);
  const auto* b = std::get_if<Keys>(&right.claim);
  return a == nullptr || b == nullptr || a->range.overlaps(b->range);
}

}  // namespace

std::optional<Error> check(const Acquire& command, const Limits& limits) {
  // Without an id, a retry after a lost reply would acquire the lock a second time.
  if (command.request == RequestId{}) {
    return invalid("a request needs an id other than 0");
  }
  if (command.items.empty() || command.items.size() > limits.items_max) {
    return invalid(one_to("items of a request", limits.items_max));
  }
  if (command.owner.size() > limits.owner_bytes_max) {
    return invalid(at_most("bytes of the owner", limits.owner_bytes_max));
  }
  if (auto error = check_printable("the owner", command.owner.view())) {
    return error;
  }
  if (command.metadata.size() > limits.metadata_bytes_max) {
    return invalid(at_most("bytes of metadata", limits.metadata_bytes_max));
  }
  for (const auto& item : command.items) {
    if (auto error = check_item(item, limits)) {
      return error;
    }
  }
  const auto& first = command.items.front();
  // A hold counts its reentries once, so it can be reentered only if it has one item.
  if (command.self_conflict == SelfConflict::reenter &&
      (command.items.size() > 1 || std::holds_alternative<Permits>(first.claim))) {
    return invalid("reentry requires a request for a single lock or range");
  }
  // A request that acquires one resource twice would conflict with itself and never be granted.
  if (have_overlap(command.items)) {
    return invalid("two items of the request overlap");
  }
  return std::nullopt;
}

std::optional<Error> check(const GrantLease& command, const Limits& limits) {
  if (auto error = check_ttl(command.ttl, limits)) {
    return error;
  }
  if (std::max(command.client.size(), command.address.size()) > limits.owner_bytes_max) {
    return invalid(at_most("bytes of client and address", limits.owner_bytes_max));
  }
  if (command.user.size() > limits.owner_bytes_max) {
    return invalid(at_most("bytes of the user", limits.owner_bytes_max));
  }
  return check_printable("the client", command.client);
}

std::optional<Error> check(const RenewLeases& command, const Limits& limits) {
  if (command.leases.size() > limits.renewals_max) {
    return invalid(at_most("leases in one renewal", limits.renewals_max));
  }
  return std::nullopt;
}

std::optional<Error> check(const SetTtl& command, const Limits& limits) {
  return check_ttl(command.ttl, limits);
}

std::optional<Error> check(const ForceRelease& command, const Limits& limits) {
  if (command.operator_name.size() > limits.owner_bytes_max) {
    return invalid(at_most("bytes of the operator's name", limits.owner_bytes_max));
  }
  if (command.reason.size() > limits.metadata_bytes_max) {
    return invalid(at_most("bytes of the reason", limits.metadata_bytes_max));
  }
  return check_printable("the reason", command.reason.view());
}

bool have_overlap(std::span<const Item> items) {
  if (items.size() < 2) {
    return false;  // The usual case allocates nothing.
  }
  const auto sorted = in_order(items);
  return std::ranges::adjacent_find(sorted, overlap) != sorted.end();
}

Items in_order(std::span<const Item> items) {
  Items sorted(items.begin(), items.end());
  std::ranges::sort(sorted, comes_before);
  return sorted;
}

std::optional<Error> check_kinds(std::span<const Item> items, const LockTable& table) {
  for (const auto& item : items) {
    const auto* lock = table.find(item.resource_view());
    const auto* permits = std::get_if<Permits>(&item.claim);
    if (lock != nullptr && lock->capacity() != (permits != nullptr ? permits->capacity : 0)) {
      return invalid(lock->capacity() == 0
                         ? "it is in use as a lock, not as a semaphore"
                         : "it is in use as a semaphore of " + std::to_string(lock->capacity()));
    }
  }
  return std::nullopt;
}

namespace {

ReachedLimit reached(std::string_view limit, std::string_view what, std::size_t value) {
  return {.limit = limit, .detail = at_most(what, value)};
}

std::optional<ReachedLimit> check_bytes(std::string_view user, std::size_t added,
                                        const State& state) {
  if (state.version < version_2) {
    return std::nullopt;
  }
  const auto& limits = state.limits;
  const auto& usage = state.leases.usage();
  if (usage.total().records + added > Quota{limits.state_bytes_max}.records_max()) {
    return ReachedLimit{.limit = "state_bytes_max",
                        .detail = "the state is full (limits.state_bytes_max); release something"};
  }
  if (!user.empty() &&
      usage.of_user(user).records + added > Quota{limits.state_bytes_per_user_max}.records_max()) {
    return ReachedLimit{
        .limit = "state_bytes_per_user_max",
        .detail =
            "the user's share of the state is full (limits.state_bytes_per_user_max); "
            "release something"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ReachedLimit> check_limits(const Wait& wanted, LimitsFor room, const State& state) {
  const auto& table = state.locks;
  const auto& limits = state.limits;
  const auto& owned = table.owned(wanted.lease);
  if (owned.items + wanted.items.size() > limits.items_per_lease_max) {
    return reached("items_per_lease_max", "locks held and waited for by one lease",
                   limits.items_per_lease_max);
  }
  const auto& lease = *state.leases.find(wanted.lease);
  // A request that is granted at once never becomes a record of a wait.
  const auto bytes =
      bytes_of(wanted) - (room == LimitsFor::hold ? bytes_per_wait - bytes_per_hold : 0);
  if (auto full = check_bytes(lease.user.view(), bytes, state)) {
    return full;
  }
  // The checks above apply to waits, too, because a wait becomes a hold.
  if (room == LimitsFor::hold) {
    return std::nullopt;
  }
  if (owned.waits.size() >= limits.waits_per_lease_max) {
    return reached("waits_per_lease_max", "waiting requests of one lease",
                   limits.waits_per_lease_max);
  }
  const auto& client = state.leases.find(wanted.lease)->client;
  if (!client.empty() &&
      state.leases.waits_of_client(client.view()) >= limits.waits_per_client_max) {
    return reached("waits_per_client_max", "waiting requests of one client",
                   limits.waits_per_client_max);
  }
  const bool is_full = std::ranges::any_of(wanted.items, [&](const Item& item) {
    const auto* lock = table.find(item.resource_view());
    return lock != nullptr && lock->queue().size() >= limits.waiters_per_lock_max;
  });
  if (is_full) {
    return reached("waiters_per_lock_max", "waiters of one lock", limits.waiters_per_lock_max);
  }
  return std::nullopt;
}

std::optional<ReachedLimit> check_limits(const GrantLease& command, const State& state) {
  const auto& limits = state.limits;
  if (state.leases.all().size() >= limits.leases_max) {
    return reached("leases_max", "leases", limits.leases_max);
  }
  if (state.leases.of_client(command.client).size() >= limits.leases_per_client_max) {
    return reached("leases_per_client_max", "leases of one client", limits.leases_per_client_max);
  }
  const auto bytes =
      bytes_per_lease + command.client.size() + command.address.size() + command.user.size();
  return check_bytes(command.user, bytes, state);
}

}  // namespace tenure::core
