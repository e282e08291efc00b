#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/client/lease.hpp>
#include <tenure/ids.hpp>

namespace tenure {

/// How to reach a lock service. Set what differs from the default:
///   connect(url, {.key_prefix = "prod/", .request_timeout = 2s})
struct ConnectOptions {
  /// Display name of this client, shown as the owner of its locks. Default: host name, process id
  /// and a random number.
  std::string owner = {};

  /// Prefix of every lock name, so that several environments can share one service.
  std::string key_prefix = {};

  /// Timeout of one request to the service. Does not limit the wait for a lock. The default
  /// survives a leader election; a shorter one reports Errc::unavailable sooner.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(5);

  /// How long a thread that waits for a reply polls the connection before it blocks; zero blocks at
  /// once. Polling saves the wake-up of a blocked thread, tens of microseconds per reply, and costs
  /// a CPU core while a thread waits. Set it to a little more than a round trip, where cores are
  /// idle. At most busy_poll_max. Errc::unsupported on memory:// and zookeeper://, which have no
  /// event loop to poll.
  std::chrono::microseconds busy_poll = {};
  static constexpr std::chrono::microseconds busy_poll_max = std::chrono::milliseconds(10);

  /// Authentication token for a tenured with users, as printed by `tenured token`. Sent to the
  /// server only; never part of an error or a log. tenure:// only: the other schemes take
  /// user:password@ in the URL.
  std::string auth_token = {};

  /// File that contains the authentication token, read by connect(). `auth_token` takes precedence.
  std::string auth_token_file = {};

  /// Called by connect() for each problem that is not an error, for example a Redis that may evict
  /// locks when its memory is full.
  std::function<void(std::string_view)> on_warning = {};
};

/// Warning that a renewal of a hold is overdue.
struct AtRisk {
  std::string name;                ///< Full name of the lock.
  FencingToken token;              ///< Fencing token of the hold.
  std::chrono::milliseconds left;  ///< Time until the hold counts as lost.
};

/// Whether a lease may acquire a lock that it holds already.
enum class Reentry : std::uint8_t {
  refused,  ///< No: Errc::deadlock.
  counted,  ///< Yes: same token, and one more unlock(). REQUIRES: LockOptions::lease.
};

/// Order in which waiters get a lock.
enum class Fairness : std::uint8_t {
  queued,   ///< Arrival order.
  barging,  ///< No order: clients poll, and the first to find the lock free gets it. redis:// only:
            ///< the lock is the plain key of its name (SET name value NX PX ttl), as other Redis
            ///< clients use it, so that they and this library exclude each other.
};

/// Whether a lock needs fencing tokens that increase with every grant.
enum class Fencing : std::uint8_t {
  offered,   ///< No: tokens as good as the backend has them; see docs/reference/backends.md.
  demanded,  ///< Yes: Errc::unsupported where tokens may fail to increase.
};

/// How one named lock behaves.
struct LockOptions {
  /// Time to live: how long the lock outlives a holder that stops renewing. A shorter TTL frees the
  /// lock of a crashed holder sooner; a longer one survives longer pauses and outages. REQUIRES:
  /// within the limits of the service.
  std::chrono::milliseconds ttl = std::chrono::seconds(30);

  /// Number of renewals per TTL, while a guard exists: at the default, two renewals may fail before
  /// the hold is at risk. 0: never renewed. REQUIRES: not negative.
  int renewals_per_ttl = 3;

  /// Timeout of lock() and lock_async(): Errc::timed_out. Default: wait forever.
  std::optional<std::chrono::milliseconds> max_wait = std::nullopt;

  /// Minimum time that the lock stays held after the grant, even if it is released earlier or the
  /// process dies. For jobs that must not start twice when the clocks of their machines differ. An
  /// earlier unlock() succeeds and leaves the lock to end at that time; later if the service cannot
  /// be reached then. A lock of a dead process ends at most `hold_at_least` or `ttl` after its last
  /// renewal, whichever is longer. Costs one more round trip per acquire. REQUIRES: not negative,
  /// at most 98 % of the longest TTL of the service, no `lease`. Errc::unsupported where a TTL
  /// cannot be changed (etcd://, zookeeper://).
  std::chrono::milliseconds hold_at_least = {};

  /// Lease that holds are attached to. It replaces `ttl` and `renewals_per_ttl`. Default: each hold
  /// has its own.
  std::optional<Lease> lease = std::nullopt;

  /// Whether the lease may acquire a lock that it holds already.
  Reentry reentry = Reentry::refused;

  /// Order in which waiters get the lock. Barging is for locks that are shared with programs that
  /// do not use this library.
  Fairness fairness = Fairness::queued;

  /// Demand fencing where storage relies on token(): no lock is better than one that does not
  /// fence.
  Fencing fencing = Fencing::offered;

  /// Redis only: number of replicas that must acknowledge a grant and each renewal (WAIT), so that
  /// a failover to one of them does not forget it. Errc::unavailable if they do not within half of
  /// request_timeout and at most a second; the grant is then released. Costs a round trip to the
  /// replicas. At most 100. Default: none, so a failover may forget a recent grant.
  std::uint32_t min_replicas = 0;

  /// Free text shown beside the holder, such as "nightly report". At most 4,096 bytes.
  std::string metadata = {};

  /// Called on the client's callback thread when a hold becomes at risk; once until a renewal is
  /// confirmed. Must not block on the client.
  std::function<void(const AtRisk&)> on_at_risk = {};
};

/// Retry policy of try_lock(Attempts). A lock() with a timeout is fairer and faster, because it
/// waits in the queue.
struct Attempts {
  int count = 3;  ///< Maximum number of attempts. REQUIRES: positive.
  /// Delay between two attempts. Up to half as much again is added at random, so that clients do
  /// not retry in step. REQUIRES: not negative.
  std::chrono::milliseconds delay = std::chrono::milliseconds(50);
};

}  // namespace tenure
