#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/client/options.hpp>
#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

#include "sys/parker.hpp"

/// Interface between the client library and a lock service; every backend implements it.
namespace tenure::backends {

using tenure::RequestId;
using WatchId = Strong<std::uint64_t, struct WatchIdTag>;

// Requests
// ---------------------------------------------------------------------------------

/// Permits of a semaphore. The first holder of the semaphore determines its capacity.
struct Permits {
  std::uint32_t capacity = 1;
  std::uint32_t wanted = 1;
};

/// Range of keys in the space that has the item's name.
struct Keys {
  BytesRange range = BytesRange::all();
  LockMode mode = LockMode::exclusive;
};

/// One element of a request: a whole name in a mode, permits, or a key range.
struct Item {
  std::string name{};
  std::variant<LockMode, Permits, Keys> claim = LockMode::exclusive;
};

/// What happens when a hold or wait of the same lease conflicts with the request.
enum class SelfConflict : std::uint8_t {
  refuse,   ///< Fail with `deadlock`.
  reenter,  ///< Join the hold: same token, count plus one. A stronger mode upgrades it.
};

/// Whether a request that conflicts with other leases waits or fails.
enum class Queue : std::uint8_t { wait, skip };

/// Kind of lock object that makes the request. It matters only on services where programs with
/// other libraries use the same lock, because their recipes differ per kind.
enum class LockKind : std::uint8_t { mutex, rw_lock };

/// Specification of an acquire request. Every lock object builds one and reuses it. Immutable, so a
/// backend may keep a reference as long as it needs.
struct AcquireSpec {
  std::vector<Item> items{};  ///< Items to acquire, all or none. REQUIRES: 1 to Limits::items_max.
  SelfConflict self_conflict = SelfConflict::refuse;
  Fairness fairness = Fairness::queued;
  LockKind kind = LockKind::mutex;
  std::string owner{};     ///< Display name of the owner.
  std::string metadata{};  ///< User-defined text, stored in the lock's record.
  /// Replicas that must confirm a grant. REQUIRES: 0, or Capability::replicas.
  std::uint32_t min_replicas = 0;
};

struct AcquireRequest {
  LeaseId lease{};
  RequestId request{};  ///< Unique id of this acquisition, not 0.
  std::shared_ptr<const AcquireSpec> spec{};
  Queue queue = Queue::wait;
};

/// Releases one acquisition: all of its items, once.
struct ReleaseRequest {
  LeaseId lease{};
  RequestId request{};   ///< Unique id, so that a retry never decrements the count twice.
  RequestId acquired{};  ///< Request id of the acquisition.
  FencingToken token{};
  std::shared_ptr<const AcquireSpec> spec{};
};

/// Whether the client still looks after a lease.
enum class LeaseTracking : std::uint8_t {
  kept,
  ended,  ///< No longer: after this request its TTL ends it, and the destructor does not.
};

/// Renews a lease and changes its TTL.
struct TtlRequest {
  LeaseId lease{};
  RequestId request{};
  std::chrono::milliseconds ttl{};
  LeaseTracking tracking = LeaseTracking::kept;
};

/// Changes a hold of one name or range to a weaker mode.
struct DowngradeRequest {
  LeaseId lease{};
  RequestId request{};   ///< Unique id of this request.
  RequestId acquired{};  ///< The one that began the hold.
  FencingToken token{};
  LockMode mode = LockMode::shared;           ///< Target mode; the held mode must cover it.
  std::shared_ptr<const AcquireSpec> spec{};  ///< Specification of the held lock.
};

/// Creates a lease.
struct LeaseRequest {
  /// Random id chosen by the client, so the first acquire need not wait for the reply.
  LeaseId id{};
  std::chrono::milliseconds ttl{};
  std::string client{};  ///< Display name of the client.
};

struct WatchRequest {
  std::string name{};  ///< Name, or prefix of the names to watch.
  WatchScope scope = WatchScope::one_name;
  Revision start{};  ///< First revision to report; 0 starts with the next event.
};

// Replies
// ----------------------------------------------------------------------------------

struct Granted {
  FencingToken token{};
  std::uint32_t count = 1;         ///< Number of releases that free the lock (reentry count).
  std::size_t queue_position = 0;  ///< Position on entry to the wait queue; 0 if granted at once.
};

/// For each requested lease, in request order: whether it is still alive.
using Renewed = std::vector<bool>;

// Capabilities
// ----------------------------------------------------------------------------------

/// Optional feature of a backend. A request that needs a missing one fails with Errc::unsupported.
enum class Capability : std::uint8_t {
  fencing,           ///< Fencing tokens of a name increase with each grant, under all faults.
  fifo,              ///< Conflicting requests are granted in arrival order.
  shared,            ///< Shared holds.
  modes,             ///< All lock modes, including intention and update modes.
  ranges,            ///< Locks on key ranges.
  semaphore,         ///< Semaphores.
  several_names,     ///< Requests for several names, granted all or none.
  upgrade,           ///< Shared to exclusive without releasing the hold.
  downgrade,         ///< Exclusive to shared without releasing the hold.
  new_ttl,           ///< Changing the TTL of a live lease.
  reentry,           ///< SelfConflict::reenter.
  barging,           ///< Fairness::barging.
  replicas,          ///< LockOptions::min_replicas.
  one_lease,         ///< Several locks attached to one lease.
  deadlocks,         ///< Deadlock detection across leases.
  watches,           ///< Event streams of locks.
  outlives_process,  ///< Locks shared between processes; the locks of a dead process expire.
  failover,          ///< Keeps all holds when one server fails.
};
inline constexpr Capability last_capability = Capability::failover;

[[nodiscard]] std::string_view to_string(Capability capability) noexcept;

class Capabilities {
 public:
  constexpr Capabilities(std::initializer_list<Capability> list) {
    for (const auto capability : list) {
      bits_ |= bit(capability);
    }
  }
  [[nodiscard]] constexpr bool has(Capability capability) const noexcept {
    return (bits_ & bit(capability)) != 0;
  }

 private:
  [[nodiscard]] static constexpr std::uint32_t bit(Capability capability) noexcept {
    return 1U << static_cast<unsigned>(capability);
  }
  std::uint32_t bits_ = 0;
};

/// Size limits of a backend. The client checks them, so that an impossible request fails before
/// anything is sent.
struct Limits {
  std::size_t name_bytes_max = 1024;
  std::size_t owner_bytes_max = 256;
  std::size_t metadata_bytes_max = 4096;
  std::size_t items_max = 64;
  std::size_t renewals_max = 10'000;  ///< Leases in one renew_leases() call.
  std::chrono::milliseconds ttl_min{100};
  std::chrono::milliseconds ttl_max = std::chrono::hours(24);
};

// Interface
// ------------------------------------------------------------------------------------------

/// Observer of unsolicited changes. Calls arrive on any thread and without any mutex of the backend
/// held. An implementation returns quickly and does not destroy the backend.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The lease expired or was revoked by another party, with every hold attached to it. Pending
  /// acquires under it fail with `lease_lost` separately.
  virtual void lease_lost(LeaseId lease) = 0;
  /// An operator force-released a hold; its lease stays alive.
  virtual void hold_force_released(LeaseId lease, RequestId acquired) = 0;
  /// The connection to the service was lost or restored. Leases stay valid until their TTL.
  virtual void connection_changed(bool is_connected, std::string_view detail) = 0;
};

/// Asynchronous client of a lock service.
///
/// Guarantees
///   - No call blocks on the network, except watch().
///   - Each `done` is called exactly once, on any thread, possibly before the call returns, and
///   never with a mutex of the backend held. When the backend is destroyed, pending ones complete
///   with `unavailable` at the latest.
///   - Requests of one thread reach the service in call order.
///   - After a connection loss a backend retries by request id what can be retried safely.
///   `unavailable` means that the outcome of the request is unknown.
///
/// Thread safe. REQUIRES: the caller holds no mutex that a callback may lock.
class Backend {
 public:
  template <class T>
  using Done = std::move_only_function<void(Result<T>)>;

  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  /// Revokes the leases of this client as far as that is possible without waiting. ENSURES: every
  /// `done` has been called, and no callback runs any more. REQUIRES: not called inside a callback
  /// of this backend; callbacks make no new request.
  virtual ~Backend() = default;

  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;
  [[nodiscard]] virtual Limits limits() const noexcept { return {}; }

  /// Connects the observer. REQUIRES: called once, before all calls below; the listener outlives
  /// the backend.
  virtual void start(Listener& listener) = 0;

  virtual void grant_lease(LeaseRequest request, Done<void> done) = 0;
  /// Renews leases. REQUIRES: at most Limits::renewals_max ids.
  virtual void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) = 0;
  /// Renews a lease and replaces its TTL. `lease_lost`: the lease has ended. `invalid_argument`:
  /// the service rejects the TTL and keeps the old one. After any other error either TTL may be in
  /// effect. A repeated or late request is applied once. REQUIRES: Capability::new_ttl.
  virtual void set_ttl(TtlRequest /*request*/, Done<void> done) {
    done(fail(Errc::unsupported, "this backend does not support new_ttl"));
  }
  /// Ends the lease and releases every hold attached to it.
  virtual void revoke_lease(LeaseId lease, Done<void> done) = 0;

  /// `done` runs when the request is granted, refused or abandoned. The lease need not be confirmed
  /// yet if grant_lease() was called before.
  virtual void acquire(AcquireRequest request, Done<Granted> done) = 0;
  /// Cancels a pending acquire. Its `done` gets `cancelled`, or the grant if that came first.
  virtual void abandon(LeaseId lease, RequestId request) = 0;
  /// Releases one acquisition. `not_held`: the service no longer had the hold.
  virtual void release(ReleaseRequest request, Done<void> done) = 0;

  /// Changes a hold to a weaker mode. The hold and its token persist throughout; waiters that
  /// become compatible are granted in order. `not_held`: the service no longer had the hold.
  /// REQUIRES: Capability::downgrade.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overriding functions keep the request.
  virtual void downgrade(DowngradeRequest /*request*/, Done<void> done) {
    done(fail(Errc::unsupported, "this backend does not support downgrade"));
  }

  /// Reports events to `sink` in order, without gap or duplicate, until unwatch(). An error is the
  /// last call. This call may block until the service has registered the watch, so that no event
  /// after the call is missed. REQUIRES: Capability::watches.
  using Sink = std::move_only_function<void(Result<LockEvent>)>;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overriding functions keep the request.
  virtual WatchId watch(WatchRequest /*request*/, Sink sink) {
    sink(fail(Errc::unsupported, "this backend does not support watches"));
    return {};
  }
  /// Stops a watch. A call of the sink that is already in progress may still finish.
  virtual void unwatch(WatchId /*watch*/) {}

  /// Parker of the threads that wait for a `done`. A backend with an event loop lets them run it.
  [[nodiscard]] virtual sys::Parker& parker() noexcept { return sys::thread_parker(); }

  /// Queries the current holders of a name.
  virtual void holders(std::string name, Done<std::vector<Holder>> done) = 0;
};

/// Error of operations that are pending when the client is destroyed.
[[nodiscard]] Error client_closed();

}  // namespace tenure::backends
