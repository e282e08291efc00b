#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "backends/backend.hpp"
#include "client/lease_record.hpp"
#include "sys/boot_clock.hpp"
#include "sys/mutex.hpp"

namespace tenure::detail {

/// Renewal thread of a client. It renews all due leases in one request, reports leases at risk, and
/// reports leases as lost when they expire by the local clock, even if the network is silent. It
/// also runs the timers of waits that block no thread. It never calls user code.
///
/// A renewal without a reply is repeated after half an interval. Thread safe.
class LeaseRenewer {
 public:
  using Record = std::shared_ptr<LeaseRecord>;

  /// Receives events on the renewal thread or on a thread of the backend. No mutex of the renewer
  /// is held during a call.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// The lease expired by the local clock, or the service reported its end. May be repeated.
    virtual void lost(const Record& lease) = 0;
    /// A renewal is overdue or failed. Once per risk.
    virtual void at_risk(const Record& lease) = 0;
    /// Called when a renewal is due. Returns true if the lease has been idle in the pool since the
    /// last renewal and was removed; the renewer then revokes it.
    [[nodiscard]] virtual bool retire_if_idle(const Record& lease) = 0;
  };

  LeaseRenewer(backends::Backend& backend, sys::Clock& clock, Listener& listener);
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;
  ~LeaseRenewer() { stop(); }

  /// Renews the lease until it ends. False if the thread cannot be started.
  [[nodiscard]] bool add(const Record& lease);
  /// Renews at once, in addition to the schedule.
  void renew(const Record& lease, backends::Backend::Done<void> done);
  /// Changes the TTL, for this and all later renewals.
  void set_ttl(const Record& lease, backends::RequestId request, std::chrono::milliseconds ttl,
               backends::Backend::Done<void> done);
  /// Timer: calls `wake` at this time unless `owner` has been destroyed. REQUIRES: `wake` neither
  /// blocks nor calls user code.
  void call_at(sys::BootTime when, std::weak_ptr<Dependent> owner, std::function<void()> wake);
  /// Ends the thread. Leases are no longer renewed. Joins the thread, so it must not be called on
  /// it. Timers that are due later never run.
  void stop();

  /// Number of leases that are renewed.
  [[nodiscard]] std::size_t size();

 private:
  /// Timer of call_at(). The weak reference drops timers of requests that were settled in time.
  struct Call {
    std::weak_ptr<Dependent> owner;
    std::function<void()> wake;
  };
  /// Work that take_due() removed from the schedules.
  struct Due {
    std::vector<Record> leases;
    std::vector<Call> calls;
  };

  void run(const std::stop_token& stop);
  /// Removes what is due now, and the leases that become due within the batch window.
  [[nodiscard]] Due take_due(sys::BootTime now) TENURE_REQUIRES(mutex_);
  /// Handles what is due for the lease and schedules its next check. True if it has to be renewed.
  [[nodiscard]] bool check(const Record& lease, sys::BootTime now);
  /// Renews in requests of at most Limits::renewals_max leases. `now`: time before they are sent.
  void renew_all(std::vector<Record> leases, sys::BootTime now);
  /// Applies the reply to a renewal. Runs on a thread of the backend.
  void on_renewed(const std::vector<Record>& leases, sys::BootTime sent,
                  const Result<backends::Renewed>& answer);
  /// Applies the reply to a TTL change, and returns the result for the caller.
  [[nodiscard]] Result<void> on_ttl_reply(const Record& lease, Result<void> answer);
  /// Schedules the next check of the lease. False if the thread cannot be started.
  [[nodiscard]] bool schedule(const Record& lease, sys::BootTime now);
  /// Starts the thread with the first lease, so that a client that only watches has none. False if
  /// the system has no thread left.
  [[nodiscard]] bool start_thread() TENURE_REQUIRES(mutex_);

  backends::Backend& backend_;
  sys::Clock& clock_;
  Listener& listener_;
  const std::unique_ptr<sys::Alarm> alarm_;

  sys::Mutex mutex_;
  /// Schedule. An entry whose time differs from LeaseRecord::next_check_ is obsolete and ignored.
  std::multimap<sys::BootTime, Record> leases_ TENURE_GUARDED_BY(mutex_);
  /// Timers of waits that block no thread.
  std::multimap<sys::BootTime, Call> calls_ TENURE_GUARDED_BY(mutex_);
  /// Time until which the thread sleeps; empty before its first wait. Earlier entries notify it.
  std::optional<sys::BootTime> alarm_set_ TENURE_GUARDED_BY(mutex_);
  bool is_stopped_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::detail
