#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_set.h>

#include "core/cow_map.hpp"
#include "core/cow_ptr.hpp"
#include "core/history.hpp"
#include "core/ids.hpp"
#include "core/shared_string.hpp"
#include "core/usage.hpp"
#include "core/version.hpp"

namespace tenure::core {

/// Lease: keeps holds and waits alive until `deadline`. LockTable::owned() lists what is attached
/// to it.
struct Lease {
  LeaseId id{};
  ClusterTime ttl{};       ///< Time to live as granted, or as set since; every renewal restarts it.
  ClusterTime deadline{};  ///< Expiry: the lease lives while cluster time is less.
  ClusterTime granted{};   ///< Time of the grant.
  Revision create_revision{};  ///< Revision of the grant.
  RequestId request{};         ///< Request id of the GrantLease, to recognise a retry.
  SharedString client{};       ///< Client id; one client may have several leases.
  SharedString address{};      ///< Last known network address of the client.
  ClusterTime last_seen{};     ///< Time of the last command under this lease.
  SharedString user{};         ///< Authenticated user that owns the lease. Since version 2.
  History history{};
  Bytes bytes{};  ///< Bytes of the lease, its holds, waits and answers. Derived; set by LeaseTable.
};

/// Request that created a lease, remembered after the lease has ended.
struct LeaseOrigin {
  LeaseId id{};
  RequestId request{};
  ClusterTime ended{};  ///< Time at which the lease ended. Since version 2; 0 before.

  friend bool operator==(const LeaseOrigin&, const LeaseOrigin&) = default;
};

/// Live leases, indexed by id, deadline and client, and the origins of ended ones. The leases are
/// copy-on-write, so that an image for a snapshot is cheap. Not thread safe.
class LeaseTable {
 public:
  using Leases = CowMap<LeaseId, CowPtr<Lease>>;
  /// Maximum number of remembered ended leases, in version 1 and since version 2.
  static constexpr std::size_t ended_max_1 = 1024;
  static constexpr std::size_t ended_max_2 = 65'536;
  [[nodiscard]] static constexpr std::size_t ended_max(ClusterVersion version) noexcept {
    return version < version_2 ? ended_max_1 : ended_max_2;
  }

  /// Null if there is no live lease with this id.
  [[nodiscard]] const Lease* find(LeaseId id) const;
  /// The same, mutable. REQUIRES: the caller changes neither deadline nor client, which are
  /// indexed.
  [[nodiscard]] Lease* edit(LeaseId id);
  [[nodiscard]] const Leases& all() const noexcept { return leases_; }

  /// Leases by client id, without the leases that have no client.
  [[nodiscard]] const std::map<std::string, std::set<LeaseId>>& clients() const noexcept {
    return clients_;
  }
  [[nodiscard]] const std::set<LeaseId>& of_client(const std::string& client) const;
  /// Number of waits under all leases of a client.
  [[nodiscard]] std::size_t waits_of_client(std::string_view client) const;
  /// Number of clients that have a wait.
  [[nodiscard]] std::size_t waiting_clients() const noexcept { return client_waits_.size(); }
  /// Adds or removes one wait of the client of this lease.
  void count_wait(LeaseId id);
  void uncount_wait(LeaseId id);

  /// REQUIRES: no lease has this id.
  const Lease& add(Lease lease);
  /// Removes a lease, and remembers its origin with the time `ended`.
  void remove(LeaseId id, ClusterTime ended);
  /// Changes the deadline and its index.
  void set_deadline(Lease& lease, ClusterTime deadline);
  /// Whether the lease that this request created has ended. A late copy of the request must not
  /// recreate the lease: a late copy of an Acquire behind it would be granted a second time.
  [[nodiscard]] bool has_ended(LeaseId id, RequestId request) const;
  /// Origins of remembered ended leases, oldest first.
  [[nodiscard]] const std::deque<LeaseOrigin>& ended() const noexcept { return ended_; }
  /// Adds the origin of an ended lease, for duplicate detection of its grant request.
  void remember_ended(const LeaseOrigin& origin);
  /// Sets the end time of all remembered origins, for a change of the cluster version.
  void set_ended_times(ClusterTime ended);
  /// Forgets the oldest ended leases beyond `ended_max`, and a few that ended at `outdated` or
  /// before. Returns the number of forgotten ones that were not outdated.
  struct Forget {
    std::size_t ended_max = 0;
    ClusterTime outdated{};
  };
  std::size_t forget_ended(const Forget& what);
  /// Forgets the oldest finished answers of each lease beyond `finished_max`. Returns the leases
  /// that had more.
  std::vector<LeaseId> forget_answers_beyond(std::size_t finished_max);

  /// Sum of the bytes that set_bytes() has set.
  [[nodiscard]] const Usage& usage() const noexcept { return usage_; }
  /// Sets the bytes of a lease and updates the sums.
  void set_bytes(Lease& lease, const Bytes& bytes);
  /// Resets the sum, before a recount of all leases.
  void clear_usage();

  /// Leases whose deadline is not after `now`, by id.
  [[nodiscard]] std::vector<LeaseId> expired(ClusterTime now) const;
  /// Earliest deadline of all leases.
  [[nodiscard]] std::optional<ClusterTime> next_deadline() const;

  /// Returns an id that no live lease has, greater than all ids returned before.
  [[nodiscard]] LeaseId fresh_id();
  /// Last id that fresh_id() returned. Part of the snapshot, so that ids are never reused.
  [[nodiscard]] LeaseId last_id() const noexcept { return last_id_; }
  void set_last_id(LeaseId id) noexcept { last_id_ = id; }

  /// Whether every index equals one that is rebuilt. For invariants.
  [[nodiscard]] bool has_sound_index() const;

 private:
  Leases leases_;
  absl::btree_set<std::pair<ClusterTime, LeaseId>> deadlines_;  ///< Index of leases_ by deadline.
  std::map<std::string, std::set<LeaseId>> clients_;            ///< Index of leases_ by client.
  /// Number of waits by client; no entry is 0. Derived from LockTable::waits(), and kept as a
  /// counter because a client may have many leases.
  std::map<std::string, std::size_t, std::less<>> client_waits_;
  LeaseId last_id_{};
  std::deque<LeaseOrigin> ended_;
  absl::btree_multiset<RequestKey> ended_index_;  ///< Index of ended_.
  Usage usage_;                                   ///< Bytes of leases_.
};

}  // namespace tenure::core
