#include "cli/load.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "sys/mutex.hpp"

namespace tenure::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Delay after an error, so that clients do not flood an unavailable server.
constexpr std::chrono::milliseconds pause_after_error{100};

/// State shared by all clients.
struct SharedState {
  const Load& load;
  std::stop_source end{};
  std::atomic<std::uint64_t> begun = 0;
  /// Time of the last release of each name, as a clock count; 0: never. Written by the holder.
  std::vector<std::atomic<Clock::rep>> released_at;

  /// REQUIRES: `wanted` outlives this object.
  explicit SharedState(const Load& wanted) : load(wanted), released_at(wanted.names) {}

  /// Whether to start another operation.
  [[nodiscard]] bool begin_one() {
    // The counter may exceed the limit by one for each client, which does no harm.
    return !end.stop_requested() && (load.count == 0 || begun++ < load.count);
  }
};

/// One client. run() belongs to the thread of the client; add_to() may run on another thread at the
/// same time.
class Worker {
 public:
  Worker(const Client& client, SharedState& shared, std::size_t number)
      : client_(client), shared_(shared) {
    const auto& load = shared.load;
    // Each client has names of its own if there are enough, so that no lock is contended.
    for (auto name = number % load.names; name < load.names; name += load.clients) {
      names_.push_back(name);
    }
  }

  void run() {
    for (std::size_t turn = 0; shared_.begin_one(); ++turn) {
      const auto done = perform(names_[turn % names_.size()]);
      // Cancelled by the end of the run, which is not an error of the service.
      if (done || done.error() == Errc::cancelled) {
        continue;
      }
      note(done.error());
      if (is_final(done.error().code)) {
        shared_.end.request_stop();
      }
      pause();
    }
  }

  void add_to(LoadFigures& figures) {
    const sys::MutexGuard guard(mutex_);
    figures.first.add(first_);
    figures.second.add(second_);
    for (const auto& [name, count] : errors_) {
      figures.errors[name] += count;
    }
    if (!figures.first_error) {
      figures.first_error = first_error_;
    }
  }

 private:
  /// Whether a retry cannot succeed. Errors of the configuration: all clients would get the same
  /// one.
  static bool is_final(Errc error) {
    return error == Errc::unsupported || error == Errc::invalid_argument ||
           error == Errc::permission_denied;
  }

  /// Performs one operation and records its latencies, unless it failed.
  Result<void> perform(std::size_t name) {
    switch (shared_.load.workload) {
      case Workload::mutex: return take([&] { return mutex(name).lock(cancel()); });
      case Workload::shared: return take([&] { return rw_lock(name).lock_shared(cancel()); });
      case Workload::handover: return hand_over(name);
      case Workload::lease: break;
    }
    const auto began = Clock::now();
    const auto lease = client_.lease({.ttl = shared_.load.ttl});
    if (!lease) {
      return std::unexpected(lease.error());
    }
    const auto granted = Clock::now();
    const auto revoked = lease->revoke();
    if (revoked) {
      note(granted - began, Clock::now() - granted);
    }
    return revoked;
  }

  template <class Lock>
  Result<void> take(const Lock& lock) {
    const auto began = Clock::now();
    auto guard = lock();
    if (!guard) {
      return std::unexpected(std::move(guard).error());
    }
    const auto granted = Clock::now();
    auto unlocked = guard->unlock();
    if (unlocked) {
      note(granted - began, Clock::now() - granted);
    }
    return unlocked;
  }

  /// Measures from the release by one client to the grant to the next one. The time of the release
  /// is taken before unlock(), so the transfer of the release to the service is included.
  Result<void> hand_over(std::size_t name) {
    auto guard = mutex(name).lock(cancel());
    const auto granted = Clock::now();
    if (!guard) {
      return std::unexpected(std::move(guard).error());
    }
    auto& released_at = shared_.released_at[name];
    // The first grant of a name has no release before it.
    if (const auto before = released_at.load(); before != 0) {
      note(granted - Clock::time_point(Clock::duration(before)), std::nullopt);
    }
    // Under the lock itself: no other client writes this entry at the same time.
    released_at = Clock::now().time_since_epoch().count();
    return guard->unlock();
  }

  [[nodiscard]] std::stop_token cancel() const { return shared_.end.get_token(); }
  [[nodiscard]] std::string name_of(std::size_t number) const {
    return shared_.load.prefix + std::to_string(number);
  }
  [[nodiscard]] Mutex mutex(std::size_t name) const {
    return client_.mutex(name_of(name), {.ttl = shared_.load.ttl});
  }
  [[nodiscard]] RwLock rw_lock(std::size_t name) const {
    return client_.rw_lock(name_of(name), {.ttl = shared_.load.ttl});
  }

  void note(Clock::duration first, std::optional<Clock::duration> second) {
    const sys::MutexGuard guard(mutex_);
    first_.add(first);
    if (second) {
      second_.add(*second);
    }
  }
  void note(const Error& error) {
    const sys::MutexGuard guard(mutex_);
    ++errors_[std::string(to_string(error.code))];
    if (!first_error_) {
      first_error_ = error;
    }
  }

  /// Waits after an error, or until the end of the run.
  void pause() {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    ended.wait_for(lock, cancel(), pause_after_error, [] { return false; });
  }

  const Client& client_;
  SharedState& shared_;
  std::vector<std::size_t> names_;
  sys::Mutex mutex_;  ///< Guards the measurements.
  Latencies first_ TENURE_GUARDED_BY(mutex_);
  Latencies second_ TENURE_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t, std::less<>> errors_ TENURE_GUARDED_BY(mutex_);
  std::optional<Error> first_error_ TENURE_GUARDED_BY(mutex_);
};

/// Sum over all clients. Each one is locked in turn, so the sums may differ by the operations that
/// complete in between.
LoadFigures figures_of(const std::vector<std::unique_ptr<Worker>>& workers, Clock::duration took) {
  LoadFigures figures{.took = took};
  for (const auto& worker : workers) {
    worker->add_to(figures);
  }
  return figures;
}

}  // namespace

Result<void> check(const Load& load) {
  if (load.clients == 0 || load.names == 0) {
    return fail(Errc::invalid_argument, "at least one client and one name are required");
  }
  // With one client per name no client would wait, and every figure would be a round trip.
  if (load.workload == Workload::handover && load.clients < 2 * load.names) {
    return fail(Errc::invalid_argument,
                "handover needs at least two clients per name, so that one of them waits");
  }
  return {};
}

LoadFigures run_load(const std::vector<Client>& connections, const Load& load,
                     const LoadWatch& watch, std::stop_token stop) {
  SharedState shared(load);
  const std::stop_callback on_stop(std::move(stop), [&] { shared.end.request_stop(); });
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t number = 0; number < load.clients; ++number) {
    workers.push_back(
        std::make_unique<Worker>(connections[number % connections.size()], shared, number));
  }
  std::mutex mutex;
  std::condition_variable_any ended;
  std::size_t running = workers.size();
  const auto began = Clock::now();
  // All workers exist before the first thread starts, so none measures the construction of others.
  std::vector<std::jthread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&, work = worker.get()] {
      work->run();
      const std::lock_guard lock(mutex);
      --running;
      ended.notify_all();
    });
  }
  const auto is_over = [&] { return running == 0; };
  std::unique_lock lock(mutex);
  while (!is_over() && Clock::now() - began < load.time && !shared.end.stop_requested()) {
    const auto left =
        load.time - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    ended.wait_for(lock, shared.end.get_token(), std::min(watch.every, left), is_over);
    if (watch.tell) {
      // Not under the mutex: the callback writes to the terminal, and clients that end must not
      // wait.
      lock.unlock();
      watch.tell(figures_of(workers, Clock::now() - began));
      lock.lock();
    }
  }
  lock.unlock();
  // Cancels the waits in progress, so that the join below does not last for a lock timeout.
  shared.end.request_stop();
  // Joins the clients, so that their figures are final.
  threads.clear();
  return figures_of(workers, Clock::now() - began);
}

}  // namespace tenure::cli
