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

/// A promise to keep holds and waits alive until `deadline`. What hangs on it stands in
/// LockTable::owned().
struct Lease {
  LeaseId id{};
  ClusterTime ttl{};           ///< As granted, or set since; every renewal counts it anew.
  ClusterTime deadline{};      ///< Lives while cluster time is less than this.
  ClusterTime granted{};       ///< When.
  Revision create_revision{};  ///< Likewise.
  RequestId request{};         ///< Of the GrantLease, to know a retry.
  SharedString client{};       ///< Whose. One client may have several leases.
  SharedString address{};      ///< Where the client was last known to be.
  ClusterTime last_seen{};     ///< The last command in its name.
  SharedString user{};         ///< Authenticated user that it belongs to. Since version 2.
  History history{};
  Bytes bytes{};  ///< With all that depends on it. Derived; set by LeaseTable.
};

/// The question that made a lease.
struct LeaseOrigin {
  LeaseId id{};
  RequestId request{};
  ClusterTime ended{};  ///< When the lease ended. Since version 2; 0 before.

  friend bool operator==(const LeaseOrigin&, const LeaseOrigin&) = default;
};

/// All leases that live, by id, by deadline and by client.
class LeaseTable {
 public:
  using Leases = CowMap<LeaseId, CowPtr<Lease>>;
  /// Limit of remembered leases that ended, in version 1 and since version 2.
  static constexpr std::size_t ended_max_1 = 1024;
  static constexpr std::size_t ended_max_2 = 65'536;
  [[nodiscard]] static constexpr std::size_t ended_max(ClusterVersion version) noexcept {
    return version < version_2 ? ended_max_1 : ended_max_2;
  }

  /// Null if it does not live.
  [[nodiscard]] const Lease* find(LeaseId id) const;
  /// The same, to be changed. Not its deadline and its client, which are in an index.
  [[nodiscard]] Lease* edit(LeaseId id);
  [[nodiscard]] const Leases& all() const noexcept { return leases_; }

  /// The leases of each client, by the client's id. Those without a client are not among them.
  [[nodiscard]] const std::map<std::string, std::set<LeaseId>>& clients() const noexcept {
    return clients_;
  }
  [[nodiscard]] const std::set<LeaseId>& of_client(const std::string& client) const;
  /// Requests in queues under all leases of a client.
  [[nodiscard]] std::size_t waits_of_client(std::string_view client) const;
  /// How many clients have such requests.
  [[nodiscard]] std::size_t waiting_clients() const noexcept { return client_waits_.size(); }
  /// A request under this lease joins or leaves queues.
  void count_wait(LeaseId id);
  void uncount_wait(LeaseId id);

  /// REQUIRES: no lease has this id.
  const Lease& add(Lease lease);
  /// `ended` is remembered with its origin.
  void remove(LeaseId id, ClusterTime ended);
  void set_deadline(Lease& lease, ClusterTime deadline);
  /// Whether what came of this question is over. A copy of it that comes late must not make the
  /// lease anew: a copy of an Acquire behind it would be granted once more.
  [[nodiscard]] bool has_ended(LeaseId id, RequestId request) const;
  /// The remembered ones, the oldest first.
  [[nodiscard]] const std::deque<LeaseOrigin>& ended() const noexcept { return ended_; }
  void remember_ended(const LeaseOrigin& origin);
  void set_ended_times(ClusterTime ended);
  /// Forgets the oldest beyond `ended_max`, and a few that ended at `outdated` or before. Returns
  /// how many were forgotten that were not outdated.
  struct Forget {
    std::size_t ended_max = 0;
    ClusterTime outdated{};
  };
  std::size_t forget_ended(const Forget& what);
  /// The oldest finished answers of each lease go, until no more than these are left. Returns the
  /// leases that had more.
  std::vector<LeaseId> forget_answers_beyond(std::size_t finished_max);

  /// Bytes of all leases with what depends on them, as far as set_bytes() was told.
  [[nodiscard]] const Usage& usage() const noexcept { return usage_; }
  void set_bytes(Lease& lease, const Bytes& bytes);
  /// Before all leases are counted again.
  void clear_usage();

  /// Those whose deadline is not after `now`, by id.
  [[nodiscard]] std::vector<LeaseId> expired(ClusterTime now) const;
  [[nodiscard]] std::optional<ClusterTime> next_deadline() const;

  /// An id that no lease has, greater than all it returned before.
  [[nodiscard]] LeaseId fresh_id();
  /// The last one it returned; the snapshot keeps it, so that ids do not come back.
  [[nodiscard]] LeaseId last_id() const noexcept { return last_id_; }
  void set_last_id(LeaseId id) noexcept { last_id_ = id; }

  [[nodiscard]] bool has_sound_index() const;

 private:
  Leases leases_;
  absl::btree_set<std::pair<ClusterTime, LeaseId>> deadlines_;  ///< Of all leases_.
  std::map<std::string, std::set<LeaseId>> clients_;  ///< Of leases_, those with a client.
  /// Derived from LockTable::waits(), never 0. Counted, because a client may have many leases.
  std::map<std::string, std::size_t, std::less<>> client_waits_;
  LeaseId last_id_{};
  std::deque<LeaseOrigin> ended_;
  absl::btree_multiset<RequestKey> ended_index_;  ///< Of ended_.
  Usage usage_;                                   ///< Of leases_.
};

}  // namespace tenure::core
