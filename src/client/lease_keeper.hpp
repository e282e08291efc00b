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

/// The thread of a client that keeps its leases: it renews all that are due in one request, warns
/// when one is at risk, and declares lost what ran out by our own clock, however silent the network
/// is. It also ends waits in time that no thread sleeps for. It never calls users.
///
/// An answer that does not come is asked for again after half an interval. Thread safe.
class LeaseKeeper {
 public:
  using Record = std::shared_ptr<LeaseRecord>;

  /// What the keeper tells its client, on its own thread or one of the backend's.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void lost(const Record& lease) = 0;
    virtual void at_risk(const Record& lease) = 0;
    /// Nobody used it since the last renewal: may it go? True: it is the keeper's to revoke.
    [[nodiscard]] virtual bool give_up(const Record& lease) = 0;
  };

  LeaseKeeper(backends::Backend& backend, sys::Clock& clock, Owner& owner);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  ~LeaseKeeper() { stop(); }

  /// Keeps it until it ends. False: no thread can be started for that.
  [[nodiscard]] bool keep(const Record& lease);
  /// Renews at once, besides the schedule.
  void renew(const Record& lease, backends::Backend::Done<void> done);
  /// The same, for this ttl, which is that of the lease from then on.
  void set_ttl(const Record& lease, backends::RequestId request, std::chrono::milliseconds ttl,
               backends::Backend::Done<void> done);
  /// Calls `wake` at this time, unless it is gone by then. REQUIRES: quick, and calls no user.
  void call_at(sys::BootTime when, std::weak_ptr<Dependent> owner, std::function<void()> wake);
  /// Ends the thread. What is kept is kept no more.
  void stop();

  /// How many leases are kept.
  [[nodiscard]] std::size_t size();

 private:
  struct Call {
    std::weak_ptr<Dependent> owner;
    std::function<void()> wake;
  };
  struct Due {
    std::vector<Record> leases;
    std::vector<Call> calls;
  };

  void run(std::stop_token stop);
  [[nodiscard]] Due take_due(sys::BootTime now) TENURE_REQUIRES(mutex_);
  /// True: it is to be renewed now. Schedules its next look, if there is one.
  [[nodiscard]] bool look_at(const Record& lease, sys::BootTime now);
  void renew_all(std::vector<Record> leases, sys::BootTime now);
  void answered(const std::vector<Record>& leases, sys::BootTime sent,
                const Result<backends::Renewed>& answer);
  [[nodiscard]] Result<void> ttl_answered(const Record& lease, Result<void> answer);
  /// HolderQueries at it when there is something to do next, and not before or after.
  /// False: no thread can be started for that.
  [[nodiscard]] bool schedule(const Record& lease, sys::BootTime now);
  [[nodiscard]] bool start_thread() TENURE_REQUIRES(mutex_);

  backends::Backend& backend_;
  sys::Clock& clock_;
  Owner& owner_;
  const std::unique_ptr<sys::Alarm> alarm_;

  sys::Mutex mutex_;
  /// An entry at another time than LeaseRecord::look_ is an old one, and says nothing.
  std::multimap<sys::BootTime, Record> leases_ TENURE_GUARDED_BY(mutex_);
  std::multimap<sys::BootTime, Call> calls_ TENURE_GUARDED_BY(mutex_);
  std::optional<sys::BootTime> alarm_set_ TENURE_GUARDED_BY(mutex_);
  bool is_stopped_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::detail
