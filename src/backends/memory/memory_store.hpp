#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "backends/backend.hpp"
#include "backends/memory/thin_holds.hpp"
#include "core/command.hpp"
#include "core/outcome.hpp"
#include "core/state_machine.hpp"
#include "sys/boot_clock.hpp"
#include "sys/mutex.hpp"

namespace tenure::backends {

/// Whether a lock that nobody else asks for may stay outside the state machine.
enum class ThinHolds : std::uint8_t { on, off };

/// A lock service in this process: the state machine of core/ behind a mutex, and a thread that
/// lets leases expire. Several backends may share one.
///
/// The state machine takes about two microseconds for a cycle of a lock that nobody else wants: it
/// has answers to remember and events to tell that no one here asks for. So such a hold stays
/// beside it, as one entry of a hash table, until somebody else comes to its name, its lease ends
/// or a watch begins; then it is entered there as if it had been all along. Which is which cannot
/// be told from the answers; tests/contract runs both ways.
///
/// Thread safe. Callbacks come without the mutex, in the order of what they tell, one at a time.
class MemoryStore {
 public:
  explicit MemoryStore(sys::Clock& clock = sys::real_clock(), ThinHolds thin = ThinHolds::on);
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;
  ~MemoryStore();

  /// The one with this name; it lives as long as somebody uses it. The empty name: a fresh one.
  [[nodiscard]] static std::shared_ptr<MemoryStore> named(const std::string& name);

  using MemberId = Strong<std::uint64_t, struct MemberIdTag>;
  MemberId join(Listener& listener);
  /// Ends its leases, answers its waits, and waits until nobody speaks to it any more.
  void leave(MemberId member);

  void grant_lease(MemberId member, const LeaseRequest& request, Backend::Done<void> done);
  void renew_leases(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke_lease(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  WatchId watch(MemberId member, WatchRequest request, Backend::Sink sink);
  void unwatch(WatchId watch);
  [[nodiscard]] std::vector<Holder> holders(const std::string& name);

  /// As an operator would. False if nobody held it.
  bool force_release(const std::string& name);

 private:
  struct Waiting {
    Backend::Done<Granted> done;
    std::size_t position = 0;
    MemberId member{};
  };
  struct Watcher {
    WatchRequest request;
    std::shared_ptr<Backend::Sink> sink;
    MemberId member{};
  };
  /// Something to say when the mutex is gone, and to whom.
  struct Saying {
    MemberId to{};
    std::move_only_function<void()> say;
  };
  using WaitKey = std::pair<LeaseId, RequestId>;

  [[nodiscard]] core::Applied apply(const core::Command& command) TENURE_REQUIRES(mutex_);
  core::Applied apply_at(const core::Command& command, core::ClusterTime now)
      TENURE_REQUIRES(mutex_);
  void let_expire(core::ClusterTime now) TENURE_REQUIRES(mutex_);
  void end_lease(LeaseId lease) TENURE_REQUIRES(mutex_);
  [[nodiscard]] std::optional<Granted> grant_thin(const AcquireRequest& request)
      TENURE_REQUIRES(mutex_);
  void thicken(std::string_view name) TENURE_REQUIRES(mutex_);
  void thicken_all_of(const std::set<LeaseId>& leases) TENURE_REQUIRES(mutex_);
  void thicken_all() TENURE_REQUIRES(mutex_);
  void enter(ThinHold hold) TENURE_REQUIRES(mutex_);
  [[nodiscard]] std::optional<Result<Granted>> acquire_in_core(const AcquireRequest& request,
                                                               Backend::Done<Granted>& done)
      TENURE_REQUIRES(mutex_);
  [[nodiscard]] Result<void> release_in_core(const ReleaseRequest& request) TENURE_REQUIRES(mutex_);
  /// Of a command that was carried out, or not.
  [[nodiscard]] Result<void> apply_for(LeaseId lease, const core::Command& command)
      TENURE_REQUIRES(mutex_);

  void tell(const core::Applied& applied) TENURE_REQUIRES(mutex_);
  void tell_watchers(const core::Event& event) TENURE_REQUIRES(mutex_);
  void end_wait(const core::Notice& notice) TENURE_REQUIRES(mutex_);
  void say(MemberId to, std::move_only_function<void()> what) TENURE_REQUIRES(mutex_);
  /// Says what there is to say, unless another thread is at it. REQUIRES: the mutex is not held.
  void speak();

  [[nodiscard]] core::ClusterTime cluster_time() const noexcept;
  void start_ticking() TENURE_REQUIRES(mutex_);
  void tick(std::stop_token stop);

  sys::Clock& clock_;
  const sys::BootTime began_;
  const ThinHolds thin_mode_;

  sys::Mutex mutex_;
  core::StateMachine machine_ TENURE_GUARDED_BY(mutex_);
  /// INVARIANT: not less than that of machine_, and all tokens ever given. It numbers thin grants
  /// too.
  std::uint64_t revision_ TENURE_GUARDED_BY(mutex_) = 0;
  ThinTable thin_ TENURE_GUARDED_BY(mutex_);
  absl::flat_hash_map<LeaseId, MemberId> leases_ TENURE_GUARDED_BY(mutex_);
  absl::flat_hash_map<WaitKey, Waiting> waiting_ TENURE_GUARDED_BY(mutex_);
  std::map<WatchId, Watcher> watchers_ TENURE_GUARDED_BY(mutex_);
  std::map<MemberId, Listener*> members_ TENURE_GUARDED_BY(mutex_);
  std::uint64_t last_member_ TENURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_watch_ TENURE_GUARDED_BY(mutex_) = 0;

  std::deque<Saying> sayings_ TENURE_GUARDED_BY(mutex_);
  bool is_speaking_ TENURE_GUARDED_BY(mutex_) = false;
  std::optional<MemberId> spoken_to_ TENURE_GUARDED_BY(mutex_);
  sys::Signal spoken_;

  const std::unique_ptr<sys::Alarm> alarm_;
  std::optional<core::ClusterTime> alarm_set_ TENURE_GUARDED_BY(mutex_);
  std::jthread ticker_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::backends
