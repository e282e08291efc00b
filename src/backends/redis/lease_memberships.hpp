#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"

namespace tenure::backends::redis {

/// Key of a membership: a member of one lock.
struct MemberKey {
  /// Name of the lock.
  std::string name{};
  /// Member in the lock's record.
  std::string member{};

  friend bool operator==(const MemberKey&, const MemberKey&) = default;
  template <class Hash>
  // NOLINTNEXTLINE(readability-identifier-naming): as Abseil looks for it.
  friend Hash AbslHashValue(Hash hash, const MemberKey& member_key) {
    return Hash::combine(std::move(hash), member_key.name, member_key.member);
  }
};

/// Membership of a lease in one lock, as a holder or a waiter.
struct Membership {
  /// Specification of the acquire request that created it.
  std::shared_ptr<const AcquireSpec> spec{};
  /// Number of requests that share the membership.
  std::uint32_t uses = 0;
  /// The server has replied that the member exists.
  bool is_confirmed = false;
};

/// Leases of a client and their memberships in locks. Redis has no record of a lease: renewing a
/// lease means renewing each of its memberships, and a lease without memberships costs nothing
/// there. Runs on the loop's thread.
class LeaseMemberships {
 public:
  /// One lease.
  struct Lease {
    /// Current TTL.
    std::chrono::milliseconds ttl{};
    /// Memberships by lock and member. The map keeps its capacity when it becomes empty, because
    /// the next acquire needs it again.
    absl::flat_hash_map<MemberKey, Membership> memberships{};
    /// Requests without a reply, or in a queue.
    std::vector<RequestId> waits{};
    /// Ended as soon as the pending change of the TTL has its reply.
    LeaseTracking tracking = LeaseTracking::kept;
  };

  /// Adds a lease.
  void add(LeaseId id, std::chrono::milliseconds ttl) { leases_[id].ttl = ttl; }
  /// Null: the lease has ended.
  [[nodiscard]] Lease* find(LeaseId id);
  /// Removes and returns a lease; empty if it has ended.
  [[nodiscard]] Lease take(LeaseId id);
  /// Ids of all leases.
  [[nodiscard]] std::vector<LeaseId> all() const;

  /// Null: the lease has ended or is no member.
  [[nodiscard]] Membership* find(LeaseId id, const MemberKey& member_key);
  /// Null: the lease is no member.
  [[nodiscard]] static Membership* find(Lease& lease, const MemberKey& member_key);
  /// Counts one more request; adds the membership with the first one.
  static void add_use(Lease& lease, const MemberKey& member_key,
                      const std::shared_ptr<const AcquireSpec>& spec);
  /// Records that the server knows the member.
  void confirm(LeaseId id, const MemberKey& member_key);
  /// Counts one request less; removes the membership with the last one.
  static void remove_use(Lease& lease, const MemberKey& member_key);
  /// Removes a membership.
  void forget(LeaseId id, const MemberKey& member_key);

 private:
  /// Leases by id.
  absl::flat_hash_map<LeaseId, Lease> leases_;
};

}  // namespace tenure::backends::redis
