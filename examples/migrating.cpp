// Programs that used other locks, rewritten for Tenure. docs/how_to/migrate.md shows each part
// beside the original.

#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>

#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

/// Number of finished reports: the work that the locks protect.
int& reports() {
  static int made = 0;
  return made;
}
void make_report() {
  ++reports();
}
void make_report(const std::stop_token& lost) {
  reports() += lost.stop_requested() ? 0 : 1;
}
void store_report(tenure::FencingToken token) {
  reports() += token.get() > 0 ? 1 : 0;
}

void from_redsync(const tenure::Client& client) {
  // redsync: NewMutex(name, WithExpiry(8s), WithTries(32), WithRetryDelay(100ms)), Lock(), Unlock()
  auto guard = client.mutex("reports/nightly", {.ttl = 8s}).try_lock_for(3s);
  if (!guard) {
    return;  // timed_out: another client holds it; unavailable: no reply from the service
  }
  make_report(guard->lost());
  if (const auto unlocked = guard->unlock(); !unlocked) {
    // lease_lost: another client may have run at the same time
  }
}

void from_redisson(const tenure::Client& client) {
  // Redisson: getFairLock(name).tryLock(100, TimeUnit.SECONDS), with its watchdog
  const auto lock = client.mutex("anyLock", {.ttl = 30s});  // renewed every 10 s while held
  if (auto guard = lock.try_lock_for(100s)) {
    make_report();
  }  // the destructor of the guard unlocks

  // Redisson: getReadWriteLock(name).readLock().lock()
  const auto share = client.rw_lock("anyRWLock").lock_shared();

  // Redisson: getFencedLock(name).lockAndGetToken()
  const auto fenced = client.mutex("orders", {.fencing = tenure::Fencing::demanded}).lock();
  if (fenced) {
    store_report(fenced->token());
  }
}

void from_etcd(const tenure::Client& client) {
  // Go: concurrency.NewSession(client, WithTTL(10)), NewMutex(session, "my-lock"), Lock(ctx)
  const auto session = client.lease({.ttl = 10s}).or_throw();
  auto guard = client.mutex("my-lock", {.lease = session}).lock();
  // Go: session.Done()
  const std::stop_token done = session.lost();
  if (guard && !done.stop_requested()) {
    store_report(guard->token());  // Go: mutex.Header().Revision
  }
}

void from_curator(const tenure::Client& client) {
  // Curator: new InterProcessMutex(curator, "/locks/orders").acquire(10, SECONDS): reentrant
  const auto lease = client.lease({.ttl = 20s}).or_throw();
  const auto orders =
      client.mutex("locks/orders", {.lease = lease, .reentry = tenure::Reentry::counted});
  const auto once = orders.try_lock_for(10s).or_throw();
  const auto again = orders.lock().or_throw();  // granted at once, with the same token

  // Curator: new LeaderSelector(...), takeLeadership()
  const auto leadership = client.election("locks/leader").campaign("10.0.0.1:80").or_throw();
  make_report(leadership.lost());

  // Curator: new InterProcessSemaphoreV2(curator, "/locks/printers", 3).acquire()
  const auto printer = client.semaphore("locks/printers", {.capacity = 3}).acquire().or_throw();
}

class Before {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  int count() {
    const std::shared_lock lock(mutex_);
    return count_;
  }

 private:
  std::shared_mutex mutex_;
  int count_ = 0;
};

class After {
 public:
  explicit After(const tenure::Client& client) : mutex_(client.rw_lock("counter")) {}

  tenure::Result<void> add() {
    auto guard = mutex_.lock();
    if (!guard) {
      return std::unexpected(guard.error());  // the network can fail
    }
    ++count_;
    return guard->unlock();  // lease_lost: another client may have changed the count
  }
  tenure::Result<int> count() {
    const auto share = mutex_.lock_shared();
    if (!share) {
      return std::unexpected(share.error());
    }
    return count_;
  }

 private:
  tenure::RwLock mutex_;
  int count_ = 0;
};

void from_std(const tenure::Client& client) {
  Before before;
  before.add();
  After after(client);
  check(after.add().has_value() && after.count().or_throw() == before.count(),
        "std::shared_mutex and RwLock count to the same number");

  std::mutex local;
  tenure::StdLockable remote(client.mutex("files/export"));
  const std::scoped_lock both(local, remote);  // as before; failure throws
  check(remote.guard().owns_lock(), "std::scoped_lock locks both");
}

}  // namespace

int main(int count, char** words) {
  const auto client = tenure::connect(count > 1 ? words[1] : "memory://").or_throw();
  from_redsync(client);
  check(reports() == 1, "redsync: one report is done");
  from_redisson(client);
  check(reports() == 3, "Redisson: one report is done, one is fenced");
  from_etcd(client);
  check(reports() == 4, "etcd: one report is done under a session");
  from_curator(client);
  check(reports() == 5, "Curator: a reentrant mutex, a leadership and a semaphore are granted");
  from_std(client);
}
