#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/command.hpp"
#include "core/history.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"

namespace tenure::core::model {

[[nodiscard]] inline bool has(std::span<const Item> items, const Resource& resource) {
  return std::ranges::any_of(items, [&](const Item& item) { return item.is_at(resource); });
}

[[nodiscard]] inline Refused refused(Errc code) {
  return Refused{.error = {.code = code}};
}

/// Bytes that the quota counts for a record.
[[nodiscard]] std::size_t bytes_of_lease(std::string_view client, std::string_view address,
                                         std::string_view user);
[[nodiscard]] std::size_t bytes_of_wait(const Wait& wait);
/// Of the hold that a grant of the wait makes.
[[nodiscard]] std::size_t bytes_of_hold(const Wait& wait);

/// Reference model of the lock service: lists with linear scans and no index. Enforces no limit but
/// the quota of bytes, keeps no events, and remembers all answers.
class Reference {
 public:
  explicit Reference(ClusterVersion version) : version_(version) {}

  struct Expected {
    Outcome outcome;
    std::vector<Notice> notices;
    std::vector<Loss> losses;
  };

  /// Expected answer to a command. `actual` decides only the victim of a deadlock among existing
  /// waits; this function checks that the choice was lawful.
  Expected step(const Command& command, const Stamp& stamp, const Applied& actual);

  /// Applies begin_restoration().
  void restore(ClusterTime longest_ttl);

  /// Empty if everything that can be asked about the state is as here; else what is not.
  [[nodiscard]] std::string differs_from(const State& state) const;
  /// Deadlocked leases: still blocked after all others released all they hold.
  [[nodiscard]] std::set<LeaseId> deadlocked() const;
  /// Empty if these steps are a cycle of waits of such; else why not.
  [[nodiscard]] std::string is_no_cycle(const std::vector<CycleStep>& cycle) const;

 private:
  struct RefLease {
    ClusterTime ttl{};
    ClusterTime deadline{};
    RequestId request{};
    std::string client;
    std::string address;
    std::string user;
    /// As History has them, but plain.
    std::map<RequestId, std::variant<Waiting, Granted, Released, Refused, Downgraded, TtlSet>>
        answers;
  };

  Outcome apply(const Acquire& command);
  Outcome apply(const Release& command);
  Outcome apply(const Abandon& command);
  Outcome apply(const GrantLease& command);
  Outcome apply(const RenewLeases& command);
  Outcome apply(const RevokeLease& command);
  Outcome apply(const ForceRelease& command);
  Outcome apply(const Downgrade& command);
  Outcome apply(const SetTtl& command);
  Outcome apply(const Tick&) { return Done{}; }
  Outcome apply(const Compact&) { return Done{}; }
  Outcome apply(const SetLimits& command);
  Outcome apply(const SetClusterVersion& command);
  Outcome apply(const ConfirmHolds& command);

  Outcome enter(const Acquire& command, Wait wanted);
  Outcome join_queue(const Wait& wanted);
  /// Upgrade or another count of a hold of the lease; nothing if there is none to enter again.
  std::optional<Outcome> reenter(const Acquire& command, Wait& wanted);
  Outcome release(const Release& command);
  Outcome downgrade(const Downgrade& command);
  enum class Kind : std::uint8_t { acquire, release, downgrade, set_ttl };
  [[nodiscard]] std::optional<Outcome> answer_before(LeaseId lease, RequestId request,
                                                     Kind kind) const;
  [[nodiscard]] Queued position_of(const Wait& wait) const;

  [[nodiscard]] bool is_blocked(const Wait& wait) const;
  [[nodiscard]] bool is_blocked(const Wait& wait, const Item& item) const;
  /// Who of these has holds and earlier waits that keep this item of the wait from being granted.
  [[nodiscard]] std::set<LeaseId> blockers(const Wait& wait, const Item& item,
                                           const std::set<LeaseId>& among) const;
  [[nodiscard]] bool is_own_obstacle(const Wait& wanted) const;
  [[nodiscard]] std::vector<Wait> in_turn(const Resource& resource) const;
  [[nodiscard]] Hold* hold_of(FencingToken token);
  [[nodiscard]] std::uint64_t permits_of(LeaseId lease, const Resource& resource) const;

  /// Bytes of all leases, or of one user's, with their holds and waits.
  [[nodiscard]] std::size_t bytes_of(const std::optional<std::string>& user) const;
  /// May the leases of this user have as many bytes more?
  [[nodiscard]] bool has_room(const std::string& user, std::size_t bytes) const;
  [[nodiscard]] bool is_restoring() const { return restored_until_.has_value(); }
  [[nodiscard]] bool is_unconfirmed(LeaseId lease) const { return unconfirmed_.contains(lease); }
  /// Does the lease have these holds, and is none of them entered again though it cannot be?
  [[nodiscard]] bool has_holds(const ConfirmHolds& command) const;
  /// Leases that end at this time, and the restoration if its time is over.
  void let_time_pass();

  Granted grant(const Wait& wanted);
  void settle();
  void give_way(LeaseId lease);
  void end(const std::set<LeaseId>& leases, EventType why);
  void drop_wait(Revision ticket);
  void drop_hold(FencingToken token);
  void touch(std::span<const Item> items);

  ClusterVersion version_;
  std::size_t bytes_max_ = Limits{}.state_bytes_max;
  std::size_t bytes_per_user_max_ = Limits{}.state_bytes_per_user_max;
  std::uint64_t revision_ = 0;
  ClusterTime now_{};
  std::optional<ClusterTime> restored_until_;  ///< Nothing is granted before.
  std::set<LeaseId> unconfirmed_;
  std::uint64_t last_lease_ = 0;
  std::map<LeaseId, RefLease> leases_;
  std::vector<std::pair<LeaseId, RequestId>> ended_;  ///< Leases and who asked for them.
  std::vector<Hold> holds_;                           ///< By token.
  std::vector<Wait> waits_;                           ///< By ticket.
  std::set<Resource> touched_;
  std::set<LeaseId> suspects_;
  std::vector<Notice> notices_;
  std::vector<Loss> losses_;
  std::vector<CycleStep> reported_cycle_;   ///< By the other one, to the caller of this step.
  std::vector<Notice> reported_deadlocks_;  ///< By the other one, in this step.
};

}  // namespace tenure::core::model
