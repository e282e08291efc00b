#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/command_encoder.hpp"

namespace tenure::backends::redis {

/// Which member of which lock.
struct MemberKey {
  std::string_view name{};  ///< Whoever keeps a member_key keeps it by the Ask that has it.
  MemberId member{};

  friend bool operator==(const MemberKey&, const MemberKey&) = default;
  template <class Hash>
  // NOLINTNEXTLINE(readability-identifier-naming): as Abseil looks for it.
  friend Hash AbslHashValue(Hash hash, const MemberKey& member_key) {
    return Hash::combine(std::move(hash),
                         absl::string_view(member_key.name.data(), member_key.name.size()),
                         member_key.member);
  }
};

/// Where a lease stands on the server: as a member of one lock, that holds or waits.
struct Membership {
  std::shared_ptr<const AcquireSpec> spec{};
  std::uint32_t uses = 0;     ///< Requests that count on it.
  bool is_confirmed = false;  ///< The server has said that it is there.
};

/// What our leases have on the server. A lease is nothing there by itself: it is renewed by
/// renewing its places, and one without any costs nothing.
class LeaseMemberships {
 public:
  struct Lease {
    std::chrono::milliseconds ttl{};
    /// Keeps its memory when the last of them goes: soon there is one again.
    absl::flat_hash_map<MemberKey, Membership> memberships{};
    std::vector<RequestId> waits{};  ///< Not answered, or in a queue.
  };

  void add(LeaseId id, std::chrono::milliseconds ttl) { leases_[id].ttl = ttl; }
  /// Null: it has ended.
  [[nodiscard]] Lease* find(LeaseId id);
  [[nodiscard]] Lease take(LeaseId id);
  [[nodiscard]] std::vector<LeaseId> all() const;

  /// Null if it is not there.
  [[nodiscard]] Membership* find(LeaseId id, const MemberKey& member_key);
  [[nodiscard]] static Membership* find(Lease& lease, const MemberKey& member_key);
  /// One more request for it.
  static void add_use(Lease& lease, const MemberId& member,
                      const std::shared_ptr<const AcquireSpec>& spec);
  void confirm(LeaseId id, const MemberKey& member_key);
  /// One request less; it is gone with the last.
  static void remove_use(Lease& lease, const MemberKey& member_key);
  /// All of it is gone. REQUIRES: `member_key` is not the place's own.
  void forget(LeaseId id, const MemberKey& member_key);

 private:
  absl::flat_hash_map<LeaseId, Lease> leases_;
};

}  // namespace tenure::backends::redis
