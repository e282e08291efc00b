#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "core/state_machine.hpp"

namespace tenure::core {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Makes tests short: names for items, leases by number, and the invariants after every command.
class CoreTest : public ::testing::Test {
 protected:
  static constexpr LeaseId ann{1};
  static constexpr LeaseId bob{2};
  static constexpr LeaseId cid{3};

  static Item lock(std::string name, LockMode mode = LockMode::exclusive) {
    return {.name = std::move(name), .claim = Whole{.mode = mode}};
  }
  static Item permits(std::string name, std::uint32_t wanted, std::uint32_t capacity) {
    return {.name = std::move(name), .claim = Permits{.capacity = capacity, .wanted = wanted}};
  }
  static Item keys(std::string space, std::string_view start, std::string_view end,
                   LockMode mode = LockMode::exclusive) {
    return {.name = std::move(space),
            .claim = Keys{.range = BytesRange::half_open(start, end).value(), .mode = mode}};
  }
  static Resource resource(std::string name) { return {.name = std::move(name)}; }

  /// Applies at the time of the last step, or later by `after`.
  const Applied& apply(const Command& command, ClusterTime after = {}) {
    const auto before = machine.state();
    applied = machine.apply(command, {.time = before.now + after});
    EXPECT_EQ(invariants::check(machine.state()), std::vector<std::string>{});
    EXPECT_EQ(invariants::check_no_deadlock(machine.state()), std::vector<std::string>{});
    EXPECT_EQ(invariants::check_step(before, machine.state()), std::vector<std::string>{});
    return applied;
  }

  void grant_leases(std::initializer_list<LeaseId> ids, ClusterTime ttl = seconds(30)) {
    for (const auto id : ids) {
      apply(GrantLease{.id = id, .ttl = ttl, .client = "client " + std::to_string(id.get())});
    }
  }

  /// With a request id that was not used before.
  Outcome acquire(LeaseId lease, std::vector<Item> items,
                  SelfConflict self_conflict = SelfConflict::refuse) {
    return apply(Acquire{.lease = lease,
                         .request = fresh(),
                         .items = std::move(items),
                         .self_conflict = self_conflict,
                         .owner = "owner " + std::to_string(lease.get())})
        .outcome;
  }
  Outcome try_acquire(LeaseId lease, std::vector<Item> items) {
    return apply(Acquire{.lease = lease,
                         .request = fresh(),
                         .items = std::move(items),
                         .queue = Queue::skip})
        .outcome;
  }
  Outcome release(LeaseId lease, FencingToken token) {
    return apply(Release{.lease = lease, .request = fresh(), .what = token}).outcome;
  }
  Outcome release(LeaseId lease, std::string name) {
    return apply(Release{.lease = lease, .request = fresh(), .what = Target{std::move(name), {}}})
        .outcome;
  }
  RequestId fresh() { return last_request = RequestId{last_request.get() + 1}; }

  static FencingToken token_of(const Outcome& outcome) {
    const auto* granted = std::get_if<Granted>(&outcome);
    EXPECT_NE(granted, nullptr) << "not granted";
    return granted == nullptr ? FencingToken{} : granted->token;
  }
  static bool is_queued(const Outcome& outcome) { return std::holds_alternative<Queued>(outcome); }
  /// The code of a refusal, or nothing.
  static std::optional<Errc> code_of(const Outcome& outcome) {
    const auto* refused = std::get_if<Refused>(&outcome);
    return refused == nullptr ? std::nullopt : std::optional(refused->error.code);
  }
  std::vector<LeaseId> holders_of(const Resource& where) const {
    std::vector<LeaseId> leases;
    if (const auto* found = machine.state().locks.find(where)) {
      for (const auto token : found->holds()) {
        leases.push_back(machine.state().locks.find(token)->lease);
      }
    }
    return leases;
  }
  std::vector<LeaseId> holders_of(std::string name) const {
    return holders_of(resource(std::move(name)));
  }
  /// The leases that were granted something they waited for, in order.
  std::vector<LeaseId> granted_waiters() const {
    std::vector<LeaseId> leases;
    for (const auto& notice : applied.notices) {
      if (std::holds_alternative<Granted>(notice.end)) {
        leases.push_back(notice.lease);
      }
    }
    return leases;
  }
  std::vector<EventType> event_types() const {
    std::vector<EventType> types;
    for (const auto& event : applied.events) {
      types.push_back(event.type);
    }
    return types;
  }

  StateMachine machine;
  Applied applied;
  RequestId last_request{1000};  ///< Tests that choose their own take small ones.
};

using Leases = std::vector<LeaseId>;
using Types = std::vector<EventType>;

}  // namespace tenure::core
