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

/// After an error, so that a server that is gone is not asked without end.
constexpr std::chrono::milliseconds pause_after_error{100};

/// What all clients share.
struct Course {
  const Load& load;
  std::stop_source end{};
  std::atomic<std::uint64_t> begun = 0;
  /// When each name was last given back, in the clock's own count; 0: not yet. Written by whoever
  /// holds the name.
  std::vector<std::atomic<Clock::rep>> given_back;

  explicit Course(const Load& wanted) : load(wanted), given_back(wanted.names) {}

  /// May one more be done?
  [[nodiscard]] bool begin_one() {
    return !end.stop_requested() && (load.count == 0 || begun++ < load.count);
  }
};

/// One of the clients.
class Worker {
 public:
  Worker(const Client& client, Course& course, std::size_t number)
      : client_(client), course_(course) {
    const auto& load = course.load;
    for (auto name = number % load.names; name < load.names; name += load.clients) {
      names_.push_back(name);
    }
  }

  void run() {
    for (std::size_t turn = 0; course_.begin_one(); ++turn) {
      const auto done = perform(names_[turn % names_.size()]);
      if (done || done.error() == Errc::cancelled) {
        continue;
      }
      note(done.error());
      if (is_final(done.error().code)) {
        course_.end.request_stop();
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
  /// Asking again does not help.
  static bool is_final(Errc error) {
    return error == Errc::unsupported || error == Errc::invalid_argument ||
           error == Errc::permission_denied;
  }

  Result<void> perform(std::size_t name) {
    switch (course_.load.chore) {
      case Chore::mutex: return take([&] { return mutex(name).lock(cancel()); });
      case Chore::shared: return take([&] { return rw_lock(name).lock_shared(cancel()); });
      case Chore::handover: return hand_over(name);
      case Chore::lease: break;
    }
    const auto began = Clock::now();
    const auto lease = client_.lease({.ttl = course_.load.ttl});
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

  Result<void> hand_over(std::size_t name) {
    auto guard = mutex(name).lock(cancel());
    const auto granted = Clock::now();
    if (!guard) {
      return std::unexpected(std::move(guard).error());
    }
    auto& given_back = course_.given_back[name];
    if (const auto before = given_back.load(); before != 0) {
      note(granted - Clock::time_point(Clock::duration(before)), std::nullopt);
    }
    given_back = Clock::now().time_since_epoch().count();
    return guard->unlock();
  }

  [[nodiscard]] std::stop_token cancel() const { return course_.end.get_token(); }
  [[nodiscard]] std::string name_of(std::size_t number) const {
    return course_.load.prefix + std::to_string(number);
  }
  [[nodiscard]] Mutex mutex(std::size_t name) const {
    return client_.mutex(name_of(name), {.ttl = course_.load.ttl});
  }
  [[nodiscard]] RwLock rw_lock(std::size_t name) const {
    return client_.rw_lock(name_of(name), {.ttl = course_.load.ttl});
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

  void pause() {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    ended.wait_for(lock, cancel(), pause_after_error, [] { return false; });
  }

  const Client& client_;
  Course& course_;
  std::vector<std::size_t> names_;
  sys::Mutex mutex_;  ///< Guards: the figures.
  Latencies first_ TENURE_GUARDED_BY(mutex_);
  Latencies second_ TENURE_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t, std::less<>> errors_ TENURE_GUARDED_BY(mutex_);
  std::optional<Error> first_error_ TENURE_GUARDED_BY(mutex_);
};

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
    return fail(Errc::invalid_argument, "at least one client, and one name");
  }
  if (load.chore == Chore::handover && load.clients < 2 * load.names) {
    return fail(Errc::invalid_argument,
                "a hand-over needs somebody who waits: at least two clients for each name");
  }
  return {};
}

LoadFigures run_load(const std::vector<Client>& connections, const Load& load,
                     const LoadWatch& watch, std::stop_token stop) {
  Course course(load);
  const std::stop_callback on_stop(std::move(stop), [&] { course.end.request_stop(); });
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t number = 0; number < load.clients; ++number) {
    workers.push_back(
        std::make_unique<Worker>(connections[number % connections.size()], course, number));
  }
  std::mutex mutex;
  std::condition_variable_any ended;
  std::size_t running = workers.size();
  const auto began = Clock::now();
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
  while (!is_over() && Clock::now() - began < load.time && !course.end.stop_requested()) {
    const auto left =
        load.time - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    ended.wait_for(lock, course.end.get_token(), std::min(watch.every, left), is_over);
    if (watch.tell) {
      lock.unlock();
      watch.tell(figures_of(workers, Clock::now() - began));
      lock.lock();
    }
  }
  lock.unlock();
  course.end.request_stop();
  threads.clear();
  return figures_of(workers, Clock::now() - began);
}

}  // namespace tenure::cli
