#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "backends/backend.hpp"
#include "core/command.hpp"
#include "core/outcome.hpp"
#include "core/state_machine.hpp"
#include "sys/boot_clock.hpp"
#include "sys/mutex.hpp"

namespace tenure::backends {

/// Lock service in this process: the state machine of core/ behind a mutex, and a thread that
/// expires leases. Several backends may share one store.
///
/// Thread safe. Callbacks run without the mutex, one at a time, in the order of the steps that
/// caused them.
class MemoryStore {
 public:
  explicit MemoryStore(sys::Clock& clock = sys::real_clock());
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;
  ~MemoryStore();

  /// The store of this process with this name; it lives as long as a backend uses it. The empty
  /// name makes a store of its own. Thread safe.
  [[nodiscard]] static std::shared_ptr<MemoryStore> named(const std::string& name);

  using MemberId = Strong<std::uint64_t, struct MemberIdTag>;
  /// Adds a client. REQUIRES: the listener exists until leave() returns.
  MemberId join(Listener& listener);
  /// Ends the member's leases and waits. ENSURES: no callback of the member runs any more.
  /// REQUIRES: not called inside a callback of the member.
  void leave(MemberId member);

  // Operations of Backend. Each applies one command under the mutex, delivers the notifications
  // that the command has caused, and then calls `done` on the calling thread.
  void grant_lease(MemberId member, const LeaseRequest& request, Backend::Done<void> done);
  void renew_leases(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke_lease(LeaseId lease, Backend::Done<void> done);
  /// Acquires at once or waits in the queue. abandon() and the end of the lease end the wait.
  void acquire(const AcquireRequest& request, Backend::Done<Granted> done);
  /// No effect if the request has been answered.
  void abandon(LeaseId lease, RequestId request);
  /// Releases one acquisition. A lock that a lease has acquired again stays held until the last
  /// release.
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  WatchId watch(MemberId member, WatchRequest request, Backend::Sink sink);
  void unwatch(WatchId watch);
  [[nodiscard]] std::vector<Holder> holders(const std::string& name);

  /// Forced release by an operator. False if the lock was free. The clients of its holders are
  /// notified by Listener::hold_force_released().
  bool force_release(const std::string& name);

 private:
  /// Acquire request in the wait queue.
  struct Waiter {
    Backend::Done<Granted> done;
    std::size_t position = 0;  ///< Position in the queue on entry.
    MemberId member{};
  };
  /// Registered watch. The sink is shared with queued notifications, which may outlive the watch.
  struct Watcher {
    WatchRequest request;
    std::shared_ptr<Backend::Sink> sink;
    MemberId member{};
  };
  /// Callback that is deferred until the mutex is released.
  struct Notification {
    MemberId member{};
    std::move_only_function<void()> deliver;
  };

  /// Expires leases, then applies the command at the present time.
  core::Applied apply(const core::Command& command) TENURE_REQUIRES(mutex_);
  /// Applies the command at this time, queues its notifications, and wakes the expiry thread if the
  /// next deadline has become earlier.
  core::Applied apply_at(const core::Command& command, core::ClusterTime now)
      TENURE_REQUIRES(mutex_);
  /// Applies a command of a lease whose outcome is done or an error.
  [[nodiscard]] Result<void> apply_for(LeaseId lease, const core::Command& command)
      TENURE_REQUIRES(mutex_);
  /// Ends the leases whose TTL has passed. Before each command, so that the result of a command
  /// does not depend on how late the expiry thread runs.
  void expire_leases(core::ClusterTime now) TENURE_REQUIRES(mutex_);
  /// Ends a lease and releases its holds; no effect if it has ended.
  void revoke(LeaseId lease) TENURE_REQUIRES(mutex_);
  /// std::nullopt if the request waits; `done` is then called with its outcome.
  [[nodiscard]] std::optional<Result<Granted>> grant_or_enqueue(const AcquireRequest& request,
                                                                Backend::Done<Granted>& done)
      TENURE_REQUIRES(mutex_);

  // These functions queue notifications; drain_notifications() delivers them.
  /// Events since the start revision of the watch; false and an error if they are compacted.
  [[nodiscard]] bool replay(const Watcher& watcher) TENURE_REQUIRES(mutex_);
  void notify_all_of(const core::Applied& applied) TENURE_REQUIRES(mutex_);
  void notify_watchers(const core::Event& event) TENURE_REQUIRES(mutex_);
  /// Completes a waiting acquire: granted, refused, or lost with its lease.
  void notify_waiter(const core::Notice& notice) TENURE_REQUIRES(mutex_);
  /// Reports a forced release to the client of the hold.
  void notify_holder(const core::Loss& loss) TENURE_REQUIRES(mutex_);
  void notify(MemberId member, std::move_only_function<void()> deliver) TENURE_REQUIRES(mutex_);
  /// Listener of the member that granted the lease; null if the lease or the member is gone.
  [[nodiscard]] Listener* listener_of(LeaseId lease) TENURE_REQUIRES(mutex_);
  /// Delivers what is queued, unless another thread does. REQUIRES: the mutex is not held.
  void drain_notifications();

  /// Time since the creation of the store, which the state machine uses as its clock.
  [[nodiscard]] core::ClusterTime cluster_time() const noexcept;
  void start_expiry_thread() TENURE_REQUIRES(mutex_);
  /// Main function of the expiry thread: expires leases, then sleeps until the next deadline.
  void run_expiry(const std::stop_token& stop);

  sys::Clock& clock_;
  /// Origin of the cluster time.
  const sys::BootTime began_;

  sys::Mutex mutex_;
  core::StateMachine machine_ TENURE_GUARDED_BY(mutex_);
  /// Member that granted each live lease, unless it stopped tracking it; receives its loss.
  absl::flat_hash_map<LeaseId, MemberId> leases_ TENURE_GUARDED_BY(mutex_);
  /// Requests in the wait queues of the state machine.
  absl::flat_hash_map<RequestKey, Waiter> waiters_ TENURE_GUARDED_BY(mutex_);
  /// Watches in the order of their registration.
  std::map<WatchId, Watcher> watchers_ TENURE_GUARDED_BY(mutex_);
  std::map<MemberId, Listener*> members_ TENURE_GUARDED_BY(mutex_);
  /// Last id that was assigned; ids of members and watches are never reused.
  std::uint64_t last_member_ TENURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_watch_ TENURE_GUARDED_BY(mutex_) = 0;

  /// Callbacks that are not delivered yet, in the order of the commands.
  std::deque<Notification> notifications_ TENURE_GUARDED_BY(mutex_);
  /// Member whose callback runs at the moment; at most one does.
  std::optional<MemberId> notified_member_ TENURE_GUARDED_BY(mutex_);
  /// Signalled after each callback, for leave().
  sys::Signal delivered_;

  const std::unique_ptr<sys::Alarm> alarm_;
  /// Deadline until which the expiry thread sleeps; none: until it is notified.
  std::optional<core::ClusterTime> alarm_set_ TENURE_GUARDED_BY(mutex_);
  /// Thread that expires leases. Declared last, because it uses every other member.
  std::jthread expiry_thread_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::backends
