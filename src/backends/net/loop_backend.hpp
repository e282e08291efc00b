#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/net/inbox.hpp"
#include "backends/net/pump.hpp"

namespace tenure::backends {

/// A backend that lives on the loop of a Pump: what is asked of it, on any thread, is done there,
/// all that is there in one go. Threads that wait read their answers themselves.
class LoopBackend : public Backend {
 public:
  WatchId watch(WatchRequest request, Sink sink) override;
  void unwatch(WatchId /*watch*/) override {}
  void sleep(Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline, SleepFor what) override {
    pump_.sleep(nap, calls_seen, deadline, what);
  }
  void wake(Nap& nap) override { pump_.wake(nap); }

 protected:
  /// Something that happens once, and that a thread waits for.
  struct Moment {
    Nap nap;
    std::atomic<bool> is_here = false;
  };

  /// `awake_for`: see Pump.
  explicit LoopBackend(std::chrono::microseconds awake_for = Pump::awake_at_most)
      : pump_(awake_for), look_(pump_.loop()) {}

  [[nodiscard]] boost::asio::io_context& loop() noexcept { return pump_.loop(); }
  /// Does `job` on the loop, soon, after what was posted before.
  template <class Job>
  void post(Job job) {
    if (inbox_.add(std::move(job)) == worth_a_look_.load()) {
      pump_.post([this] { do_posted(); });
    }
  }
  /// On the loop. What was posted, all of it in one go.
  void do_posted();
  /// What was posted has been done, on the loop: what it had to say leaves together.
  virtual void send_all() = 0;
  /// On the loop. How many have to be posted before the loop is told. More than one where what is
  /// posted would have to wait for answers that are due; whoever reads them calls do_posted().
  [[nodiscard]] virtual std::size_t worth_a_look() const { return 1; }

  void arrived(Moment& moment);
  void wait_for(Moment& moment, Nap::Deadline deadline = std::nullopt);
  /// Does `job` on the loop, after what was posted before, and waits for that.
  void do_now(std::move_only_function<void()> job);
  /// Nothing runs on the loop any more. For the destructor of whoever lives there.
  void stop() { pump_.stop(); }

 private:
  void look_again_soon();

  Inbox inbox_;
  std::atomic<std::int64_t> worth_a_look_ = 1;
  Pump pump_;
  boost::asio::steady_timer look_;  ///< If the answers do not come.
  bool is_look_set_ = false;
};

/// The same, where all that is asked goes to `Locks`, which has a function of the same name for it.
template <class Locks>
class LocksOnLoop : public LoopBackend {
 public:
  void grant_lease(LeaseRequest request, Done<void> done) override {
    post([this, request = std::move(request), done = std::move(done)]() mutable {
      locks().grant_lease(request);
      done({});
    });
  }
  void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) override {
    post([this, leases = std::move(leases), done = std::move(done)]() mutable {
      locks().renew(std::move(leases), std::move(done));
    });
  }
  void set_ttl(TtlRequest request, Done<void> done) override {
    post([this, request, done = std::move(done)]() mutable {
      locks().set_ttl(request, std::move(done));
    });
  }
  void revoke_lease(LeaseId lease, Done<void> done) override {
    post([this, lease, done = std::move(done)]() mutable {
      locks().revoke(lease, std::move(done));
    });
  }
  void acquire(AcquireRequest request, Done<Granted> done) override {
    post([this, request = std::move(request), done = std::move(done)]() mutable {
      locks().acquire(std::move(request), std::move(done));
    });
  }
  void abandon(LeaseId lease, RequestId request) override {
    post([this, lease, request] { locks().abandon(lease, request); });
  }
  void release(ReleaseRequest request, Done<void> done) override {
    post([this, request = std::move(request), done = std::move(done)]() mutable {
      locks().release(std::move(request), std::move(done));
    });
  }
  void holders(std::string name, Done<std::vector<Holder>> done) override {
    post([this, name = std::move(name), done = std::move(done)]() mutable {
      locks().holders(name, std::move(done));
    });
  }

 protected:
  using LoopBackend::LoopBackend;
  [[nodiscard]] virtual Locks& locks() noexcept = 0;
};

}  // namespace tenure::backends
