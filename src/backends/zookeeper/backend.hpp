#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/locks_backend.hpp"
#include "backends/zookeeper/locks.hpp"
#include "backends/zookeeper/strand.hpp"
#include "backends/zookeeper/timer_thread.hpp"
#include "backends/zookeeper/url.hpp"
#include "sys/mutex.hpp"

namespace tenure::backends::zookeeper {

/// Backend for zookeeper://, with the recipes of Curator. All work runs on a strand (one mutex) on
/// the thread that brings it: a reply wakes its waiting thread without a thread switch.
///
/// Thread safe, as Backend requires.
class ZookeeperBackend final : public LocksBackend<Locks, StrandBackend> {
 public:
  /// Connects. Returns when a server accepts the session; otherwise the reason why none did within
  /// `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<ZookeeperBackend>> open(
      Address address, std::chrono::milliseconds timeout);
  explicit ZookeeperBackend(Address address);
  ~ZookeeperBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  void start(Listener& listener) override;

  /// Identity and counters of a session; used by tests.
  struct Identity {
    std::int64_t session = 0;
    std::string password{};
    /// Requests sent so far.
    std::uint64_t requests = 0;
    /// Watch events received so far.
    std::uint64_t events = 0;
  };
  /// Identities of the connected sessions.
  [[nodiscard]] std::vector<Identity> identities();

 private:
  [[nodiscard]] Locks& locks() noexcept override { return *locks_; }
  void dispatch(Job job) override;
  /// Blocks until the main session is open, or has failed.
  [[nodiscard]] Result<void> wait_until_open(std::chrono::milliseconds timeout);
  void check_chroot();

  const Address address_;
  /// Mutex of the strand.
  sys::Mutex mutex_;
  /// Signalled when `opened_` is set.
  sys::Signal changed_;
  /// Result of the first connect; empty until then.
  std::optional<Result<void>> opened_ TENURE_GUARDED_BY(mutex_);
  /// User callbacks to run when the strand is unlocked.
  DeferredCallbacks deferred_ TENURE_GUARDED_BY(mutex_);
  /// Thread for timers, and for work that must not block the strand.
  TimerThread timers_;
  /// Used on the strand only. Declared last: its threads use every other member.
  std::unique_ptr<Locks> locks_;
};

}  // namespace tenure::backends::zookeeper
