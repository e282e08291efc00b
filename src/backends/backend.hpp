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

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>
#include <tenure/client/options.hpp>
#include <tenure/client/watch.hpp>

#include "sys/parker.hpp"

/// The one seam between the client library and whatever keeps the locks.
namespace tenure::backends {

using tenure::RequestId;
using WatchId = Strong<std::uint64_t, struct WatchIdTag>;

// What is asked for
// ---------------------------------------------------------------------------------

/// Some of the permits of a semaphore. Its capacity is what the first holder said.
struct Permits {
  std::uint32_t capacity = 1;
  std::uint32_t wanted = 1;
};

/// An interval of keys of the space with the item's name.
struct Keys {
  BytesRange range = BytesRange::all();
  LockMode mode = LockMode::exclusive;
};

/// One thing that a request asks for: all of a name in a mode, permits, or keys.
struct Item {
  std::string name{};
  std::variant<LockMode, Permits, Keys> claim = LockMode::exclusive;
};

/// What to do when the lease's own hold or wait stands in the way.
enum class SelfConflict : std::uint8_t {
  refuse,   ///< Answer `deadlock`.
  reenter,  ///< Share the hold: its token and a count; a stronger mode upgrades it.
};

/// What to do when the lock cannot be had at once.
enum class Queue : std::uint8_t { wait, skip };

/// As what it was asked for. Only matters where programs with other libraries use the same lock.
enum class LockKind : std::uint8_t { mutex, rw_lock };

/// What a lock object asks for each time it is locked. Immutable, so that a backend may keep it for
/// as long as it needs.
struct AcquireSpec {
  std::vector<Item> items{};  ///< All or none. REQUIRES: 1 to Limits::items_max.
  SelfConflict self_conflict = SelfConflict::refuse;
  Fairness fairness = Fairness::queued;
  LockKind kind = LockKind::mutex;
  std::string owner{};             ///< Who, for people.
  std::string metadata{};          ///< Anything the user wants to find in the record.
  std::uint32_t min_replicas = 0;  ///< As LockOptions says. REQUIRES: 0, or Capability::replicas.
};

struct AcquireRequest {
  LeaseId lease{};
  RequestId request{};  ///< Not 0; fresh for every acquisition.
  std::shared_ptr<const AcquireSpec> spec{};
  Queue queue = Queue::wait;
};

/// One acquisition to give back: all its items, once.
struct ReleaseRequest {
  LeaseId lease{};
  RequestId request{};   ///< A fresh one, so that a retry never counts down twice.
  RequestId acquired{};  ///< The one that began the hold.
  FencingToken token{};
  std::shared_ptr<const AcquireSpec> spec{};
};

struct TtlRequest {
  LeaseId lease{};
  RequestId request{};
  std::chrono::milliseconds ttl{};
};

/// A hold of one name or range to be weakened.
struct DowngradeRequest {
  LeaseId lease{};
  RequestId request{};   ///< A fresh one.
  RequestId acquired{};  ///< The one that began the hold.
  FencingToken token{};
  LockMode mode = LockMode::shared;           ///< One that the held mode covers.
  std::shared_ptr<const AcquireSpec> spec{};  ///< What is held.
};

struct LeaseRequest {
  LeaseId id{};  ///< Chosen by the client, at random; so the first acquire need not wait for it.
  std::chrono::milliseconds ttl{};
  std::string client{};  ///< Whose, for people.
};

struct WatchRequest {
  std::string name{};  ///< Or how the names begin.
  WatchScope scope = WatchScope::one_name;
  Revision start{};  ///< The first one to tell; 0: only what comes from now on.
};

// What is answered
// ----------------------------------------------------------------------------------

struct Granted {
  FencingToken token{};
  std::uint32_t count = 1;         ///< How many releases it takes.
  std::size_t queue_position = 0;  ///< On entry; 0: did not have to wait.
};

/// For each lease that was asked for, in that order: does it live on?
using Renewed = std::vector<bool>;

// What is promised
// ----------------------------------------------------------------------------------

/// What a backend may or may not be able to do. What it does not promise is Errc::unsupported.
enum class Capability : std::uint8_t {
  fencing,           ///< Tokens grow from grant to grant of a name, whatever fails.
  fifo,              ///< Nobody is overtaken by one who came later and is in his way.
  shared,            ///< Readers beside each other.
  modes,             ///< All of LockMode.
  ranges,            ///< Keys of a space.
  semaphore,         ///< Permits.
  several_names,     ///< All or none.
  upgrade,           ///< From shared to exclusive, without letting go.
  downgrade,         ///< From exclusive to shared, likewise.
  new_ttl,           ///< The ttl of a lease can change while it lives.
  reentry,           ///< SelfConflict::reenter.
  barging,           ///< Fairness::barging.
  replicas,          ///< LockOptions::min_replicas.
  one_lease,         ///< Several locks live and die with one lease.
  deadlocks,         ///< A cycle of waits between leases is found.
  watches,           ///< Tells what happens.
  outlives_process,  ///< Other processes meet here, and a dead one's locks come free.
  failover,          ///< Goes on, and forgets nothing, when a server dies.
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

/// How much a backend takes. Checked by the client, so that what can never succeed is told before
/// anything is sent.
struct Limits {
  std::size_t name_bytes_max = 1024;
  std::size_t owner_bytes_max = 256;
  std::size_t metadata_bytes_max = 4096;
  std::size_t items_max = 64;
  std::size_t renewals_max = 10'000;  ///< Leases in one renew_leases().
  std::chrono::milliseconds ttl_min{100};
  std::chrono::milliseconds ttl_max = std::chrono::hours(24);
};

// The seam
// ------------------------------------------------------------------------------------------

/// Hears what nobody asked for. Calls come on any thread, without any lock of the backend held;
/// they are quick and do not end the backend.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The lease ended without our asking, and all that hung on it. Waits under it are answered
  /// `lease_lost` besides.
  virtual void lease_lost(LeaseId lease) = 0;
  /// A hold was taken away by an operator; its lease lives on.
  virtual void hold_force_released(LeaseId lease, RequestId acquired) = 0;
  /// The way to the servers is cut, or there again. Leases live on until their time is over.
  virtual void connection_changed(bool is_connected, std::string_view detail) = 0;
};

/// A lock service, as the client library sees it. Everything is asynchronous: no call waits for the
/// network. Every `done` is called exactly once, on any thread, perhaps before the call returns,
/// and never with a lock of the backend held; when the backend ends, with `unavailable` at the
/// latest. The caller holds no lock either. Thread safe; operations of one thread arrive in their
/// order.
///
/// Errors are those of Errc. `unavailable`: nobody knows what became of it. A backend sends again
/// by itself what it can (by request id) before it says so.
class Backend {
 public:
  template <class T>
  using Done = std::move_only_function<void(Result<T>)>;

  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  /// Ends the leases of this client, if it can without waiting. ENSURES: every `done` has been
  /// called and nothing is called any more. May be called by any thread that is not inside a
  /// callback of this backend; callbacks that it makes ask for nothing new.
  virtual ~Backend() = default;

  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;
  [[nodiscard]] virtual Limits limits() const noexcept = 0;

  /// REQUIRES: once, before everything below. The listener outlives the backend.
  virtual void start(Listener& listener) = 0;

  virtual void grant_lease(LeaseRequest request, Done<void> done) = 0;
  /// REQUIRES: not more than Limits::renewals_max.
  virtual void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) = 0;
  /// Renews a lease, and counts this ttl for it from then on. `lease_lost` if it has ended,
  /// `invalid_argument` if this ttl is not taken, and then it is as it was; after any other error
  /// it may be either. What arrives twice, or late, is done once. REQUIRES: Capability::new_ttl.
  virtual void set_ttl(TtlRequest /*request*/, Done<void> done) {
    done(fail(Errc::unsupported, "this backend does not support new_ttl"));
  }
  /// Ends the lease and all that hangs on it.
  virtual void revoke_lease(LeaseId lease, Done<void> done) = 0;

  /// `done` comes when it is granted, refused, or abandoned. The lease need not be confirmed yet if
  /// grant_lease() was called before.
  virtual void acquire(AcquireRequest request, Done<Granted> done) = 0;
  /// Leaves the queue: the `done` of the acquire is called with `cancelled`, or with the grant if
  /// that was first.
  virtual void abandon(LeaseId lease, RequestId request) = 0;
  /// `not_held` if it was not held any more.
  virtual void release(ReleaseRequest request, Done<void> done) = 0;

  /// Weakens a hold; nobody else holds it in between, and the token stays. Whoever may go then is
  /// let in, in order. `not_held` if it was not held any more. REQUIRES: Capability::downgrade.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): those who promise it keep the request.
  virtual void downgrade(DowngradeRequest /*request*/, Done<void> done) {
    done(fail(Errc::unsupported, "this backend does not support downgrade"));
  }

  /// Tells events in order, without gap or duplicate, until unwatch(). An error is the last call.
  /// The one call that may wait for the network: until the service watches, so that nothing that
  /// happens after the call is missed.
  using Sink = std::move_only_function<void(Result<LockEvent>)>;
  virtual WatchId watch(WatchRequest request, Sink sink) = 0;
  /// A thread that is on its way already may still call the sink.
  virtual void unwatch(WatchId watch) = 0;

  /// Where threads that wait for a `done` block. A backend with an event loop lets them run it.
  [[nodiscard]] virtual sys::Parker& parker() noexcept { return sys::thread_parker(); }

  /// Who holds this name at the moment.
  virtual void holders(std::string name, Done<std::vector<Holder>> done) = 0;
};

/// Error of operations that are pending when the client is destroyed.
[[nodiscard]] Error client_closed();

}  // namespace tenure::backends
