#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/ids.hpp>
#include <tenure/lease.hpp>

namespace tenure {

/// How to reach a lock service. Set what differs:
///   connect(url, {.key_prefix = "prod/", .request_timeout = 2s})
struct ConnectOptions {
  /// Who we are, for people: shown as the holder. Default: host name, process id, a random number.
  std::string owner = {};

  /// Put before every lock name, so that environments can share one service.
  std::string key_prefix = {};

  /// Longest wait for one answer of the service; not for a lock, which takes as long as it takes.
  /// The default rides out a change of the leader; shorter tells Errc::unavailable sooner.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(5);

  /// How long a thread that waits for a reply polls the connection before it blocks; zero blocks at
  /// once. Polling saves the wake-up of a blocked thread, tens of microseconds per reply, and costs
  /// a CPU core while a thread waits. Set it to a little more than a round trip, where cores are
  /// idle. At most busy_poll_max. Errc::unsupported on memory:// and zookeeper://, which have no
  /// event loop to poll.
  std::chrono::microseconds busy_poll = {};
  static constexpr std::chrono::microseconds busy_poll_max = std::chrono::milliseconds(10);

  /// Who we are, to a tenured that has users: what `tenured token` printed. It goes to the server
  /// and nowhere else, neither into messages nor into logs. On tenure:// only; the others have
  /// user:password@ in the URL.
  std::string auth_token = {};

  /// The same in a file, which is read inside connect(); `auth_token` wins.
  std::string auth_token_file = {};

  /// Called inside connect(), for what is no error but people should know: that a Redis may evict
  /// locks when its memory is full, for one.
  std::function<void(std::string_view)> on_warning = {};
};

/// A hold is in danger: its renewal is not confirmed, and time runs.
struct AtRisk {
  std::string name;                ///< Of the lock.
  FencingToken token;              ///< Of the hold.
  std::chrono::milliseconds left;  ///< Until it counts as lost.
};

/// May a lease that holds a lock take it once more?
enum class Reentry : std::uint8_t {
  refused,  ///< No: Errc::deadlock. Needs no lease of one's own.
  counted,  ///< Yes: the same token, and one more unlock(). REQUIRES: LockOptions::lease.
};

/// Who gets a lock that comes free.
enum class Fairness : std::uint8_t {
  queued,   ///< Whoever has waited longest.
  barging,  ///< Whoever comes first then, by asking again and again. On redis:// only: the lock is
            ///< the plain key of its name (SET name value NX PX ttl), as other clients of Redis use
            ///< it, so that they and we exclude each other.
};

/// Whether the tokens of a lock are needed by a Fence.
enum class Fencing : std::uint8_t {
  offered,   ///< They are what the backend has; docs/reference/backends.md says what that is worth.
  demanded,  ///< Errc::unsupported where they may fail to grow from grant to grant.
};

/// How one named lock behaves.
struct LockOptions {
  /// How long the lock outlives a holder that stops renewing. Shorter frees a crashed holder's lock
  /// sooner; longer rides out longer pauses. REQUIRES: not less than the service allows.
  std::chrono::milliseconds ttl = std::chrono::seconds(30);

  /// Renewed every ttl / renewals_per_ttl while a guard lives: at the default, two renewals may
  /// fail before the lock is in danger. 0: never renewed. REQUIRES: not negative.
  int renewals_per_ttl = 3;

  /// Longest wait of lock() and lock_async(): Errc::timed_out after it. Default: for ever.
  std::optional<std::chrono::milliseconds> max_wait = std::nullopt;

  /// The lease that holds hang on; `ttl` and `renewals_per_ttl` are then those of the lease.
  /// Default: each hold has one of its own.
  std::optional<Lease> lease = std::nullopt;

  /// Whether the lease may take the lock once more.
  Reentry reentry = Reentry::refused;

  /// Barging is for locks that are shared with programs which do not use this library.
  Fairness fairness = Fairness::queued;

  /// Demand it where storage relies on token(): better no lock than one that does not fence.
  Fencing fencing = Fencing::offered;
  /// On Redis: how many replicas must have a grant, and each renewal, before it counts (WAIT), so
  /// that a failover to one of them does not forget it. Errc::unavailable if they do not within
  /// half of request_timeout, and a second at most; what was granted is given back then. Costs a
  /// round trip to the replicas. At most 100. Default: none, so a failover may forget what is new.
  std::uint32_t min_replicas = 0;

  /// Free text that everybody sees beside the holder ("nightly report"). At most 4,096 bytes.
  std::string note = {};

  /// Called, on the client's notifier thread, when a hold is in danger; once until it is confirmed
  /// again. Must not wait for the client.
  std::function<void(const AtRisk&)> on_at_risk = {};
};

/// How often to try, and how long to wait in between. Who can, waits in the queue instead (lock()):
/// that is fair and quicker.
struct Attempts {
  int count = 3;  ///< REQUIRES: positive.
  /// Between two attempts; up to half as much again is added by chance, so that many do not come at
  /// once. REQUIRES: not negative.
  std::chrono::milliseconds delay = std::chrono::milliseconds(50);
};

}  // namespace tenure
