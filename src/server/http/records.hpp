#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/lease_table.hpp"
#include "server/auth/access.hpp"
#include "server/auth/leases.hpp"
#include "server/requests/token_check.hpp"
#include "server/store/store.hpp"

/// Copies of parts of the state, made on the store's thread in bounded time and serialised on the
/// HTTP thread.
namespace tenure::server::http {

/// Hold of one item of a lock. Like all records a value without references to the state, so it can
/// cross threads.
struct HoldRecord {
  core::Claim claim{};
  core::FencingToken token{};
  core::Revision create_revision{};
  core::LeaseId lease{};
  core::RequestId request{};
  std::string owner{};
  std::string user{};  ///< Authenticated; empty without users.
  std::string metadata{};
  core::ClusterTime held_for{};
  std::uint32_t count = 1;
};

/// Wait of an acquire request for one item of a lock.
struct WaitRecord {
  core::Claim claim{};
  /// Identifies the wait: revision of the command that queued it.
  core::Revision ticket{};
  /// Ticket of the next wait ahead in the queue; nullopt: none.
  std::optional<core::Revision> predecessor{};
  std::size_t position = 0;  ///< Position in the queue; 1 is next.
  core::LeaseId lease{};
  core::RequestId request{};
  std::string owner{};
  std::string user{};  ///< Authenticated; empty without users.
  std::string metadata{};
  core::ClusterTime waited{};
  bool is_upgrade = false;
};

/// Lock with its first holders and waiters.
struct LockRecord {
  core::Resource resource{};
  std::uint32_t capacity = 0;
  core::Revision create_revision{};
  core::Revision mod_revision{};
  std::uint64_t version = 0;
  std::vector<HoldRecord> holders{};  ///< First holders; see Depth.
  std::size_t holder_count = 0;       ///< Number of all holders.
  /// First waiters, in queue order.
  std::vector<WaitRecord> queue{};
  /// Number of all waiters.
  std::size_t waiter_count = 0;
};

/// Lease, with durations relative to the time of the copy.
struct LeaseRecord {
  core::LeaseId id{};
  core::ClusterTime ttl{};
  /// Time until the deadline; 0: the deadline has passed and the expiry is being decided.
  core::ClusterTime left{};
  core::ClusterTime lived{};
  core::ClusterTime seen_ago{};
  core::Revision create_revision{};
  std::string client{};
  std::string user{};  ///< Authenticated; empty without users.
  std::string address{};
  std::size_t hold_count = 0;
  std::size_t wait_count = 0;
  std::vector<LockRecord> locks{};  ///< Locks with only the holds and waits of this lease.
};

/// Maximum number of holders and waiters copied per lock.
struct Depth {
  std::size_t holders = 0;
  std::size_t waiters = 0;
};

/// Part of a listing. Pages are read at different revisions: a listing of several pages is no
/// snapshot.
template <class Record, class Position>
struct Page {
  std::vector<Record> records{};
  std::optional<Position> next{};  ///< Last position of this page; nullopt: the last page.
  core::Revision revision{};
};
using LockPage = Page<LockRecord, core::Resource>;
using LeasePage = Page<LeaseRecord, core::LeaseId>;

/// Selection of locks: readable names with a prefix, in name order.
struct LockQuery {
  std::string prefix{};
  /// Position of the previous page; nullopt: the first page.
  std::optional<core::Resource> after{};
  std::size_t limit = 100;
  auth::Access access = auth::Access::unrestricted();
};
/// May return fewer records than the limit although more exist: a byte budget also ends a page.
[[nodiscard]] LockPage copy_locks(const View& view, const LockQuery& query);
/// nullopt: no holder and no waiter. The caller checks the read permission.
[[nodiscard]] std::optional<LockRecord> copy_lock(const View& view, const core::Resource& resource,
                                                  Depth depth);

[[nodiscard]] LeasePage copy_leases(const View& view, const auth::LeaseRange& range,
                                    const auth::Access& access);
/// Lease with the readable part of its holds and waits.
/// nullopt: no such lease, or not visible to this user.
[[nodiscard]] std::optional<LeaseRecord> copy_lease(const View& view, core::LeaseId id,
                                                    const auth::Access& access);

/// Wait-for graph: locks with waiters, longest wait first. Contains only readable locks.
struct GraphRecord {
  core::Revision revision{};
  std::size_t waits = 0;  ///< Number of waits: all, or the visited ones if not all are readable.
  std::vector<LockRecord> locks{};
  bool is_complete = true;  ///< Every lock with waiters is included.
};
[[nodiscard]] GraphRecord copy_graph(const View& view, const auth::Access& access);

/// Result of a fencing token check.
struct TokenRecord {
  core::Revision revision{};
  TokenVerdict verdict{};
  core::FencingToken newest{};  ///< Largest token of the current holders; 0: not held.
  std::string owner{};          ///< Owner of the hold with this token.
};
[[nodiscard]] TokenRecord copy_token_check(const View& view, const core::Resource& resource,
                                           core::FencingToken token);

/// State of this member.
struct StatusRecord {
  LogPosition log{};
  core::Limits limits{};
  core::Revision revision{};
  core::Revision compact_revision{};
  core::ClusterTime now{};
  std::size_t locks = 0;
  std::size_t holds = 0;
  std::size_t waits = 0;
  std::size_t leases = 0;
  std::size_t events = 0;
};
[[nodiscard]] StatusRecord copy_status(const View& view);

/// Members as this member knows them.
struct ClusterRecord {
  LogPosition log{};
  core::ClusterVersion version{};
  std::vector<MemberStatus> members{};  ///< Sorted by id.
};
[[nodiscard]] ClusterRecord copy_cluster(const View& view);

}  // namespace tenure::server::http
