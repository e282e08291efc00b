#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <tenure/client/client.hpp>

#include "fault/ledger.hpp"
#include "fault/recorder.hpp"
#include "history/event.hpp"
#include "support/coroutine.hpp"

namespace tenure::fault {

/// State shared by all workers of a process.
struct WorkloadContext {
  Client client;
  Recorder& recorder;
  Ledger& ledger;
  std::string name;  ///< Name of the process in the history.
  std::chrono::milliseconds ttl{};
  std::chrono::milliseconds hold_max{};
  std::chrono::milliseconds pause_max{};
  std::stop_token stop;
  std::atomic<history::Time> stopped{};  ///< Time of the stop request; 0 before it.
};

/// Names of all locks of the workload. A watcher has to know them in advance.
[[nodiscard]] std::vector<std::string> all_names();

/// Client thread: acquires locks, holds them, writes to the storage, releases them, and records
/// each step, until the stop token is triggered. Failures of the service never end it.
class Worker {
 public:
  enum class Role : std::uint8_t {
    mutex,
    rw_lock,
    semaphore,
    election,
    two_locks,
    unchecked,
    task
  };
  static constexpr int roles = 7;

  Worker(WorkloadContext& context, Role role, int number, std::uint64_t seed);

  void run();

 private:
  /// One lock request as recorded in the history.
  struct RequestSpec {
    std::vector<history::Item> items;
    history::WaitPolicy policy = history::WaitPolicy::wait;
    std::optional<Lease> lease = std::nullopt;  ///< Shared lease; none: the request has its own.
  };

  void run_once();
  void use_mutex();
  void use_rw_lock();
  void use_semaphore();
  void use_election();
  void use_two_locks();
  void write_unchecked();
  void use_task();
  test::Detached lock_in_coroutine(const RequestSpec& spec, const std::string& request, Mutex mutex,
                                   std::latch& done);

  /// Records the start of a request and returns its name.
  std::string invoke(const RequestSpec& spec);
  void fail(const RequestSpec& spec, const std::string& request, const Error& error);
  /// Holds the lock for a random time while writing to the storage, then releases it.
  void hold(const RequestSpec& spec, const std::string& request, LockHandle& held);
  void release(const RequestSpec& spec, const std::string& request, LockHandle& held);
  void granted(const RequestSpec& spec, const std::string& request, const LockHandle& held);
  template <class Held>
  void finish(const RequestSpec& spec, const std::string& request, Result<Held> held);

  [[nodiscard]] static std::string owner_of(const RequestSpec& spec, const std::string& request);
  [[nodiscard]] LockOptions options(const RequestSpec& spec, const std::string& request) const;
  /// Returns the worker's lease for half of the requests.
  [[nodiscard]] std::optional<Lease> random_lease();
  void record(history::Kind kind, const std::string& request);
  void record_renewed(const std::string& owner, std::chrono::steady_clock::time_point until);
  /// Records that the lease of the request is lost, and drops it if it is the worker's.
  void record_lost(const RequestSpec& spec, const std::string& request);
  /// Creates a new lease if the current one has ended; false if the service is unreachable.
  bool ensure_lease();
  void pause(std::chrono::milliseconds longest);
  [[nodiscard]] std::uint64_t random_below(std::uint64_t limit);
  [[nodiscard]] bool is_one_in(std::uint64_t count) { return random_below(count) == 0; }

  WorkloadContext& context_;
  Role role_;
  std::string id_;  ///< Client id in the history.
  std::mt19937_64 random_;
  history::Time invoked_{};     ///< Start of the last request.
  history::Time timeout_at_{};  ///< Deadline of the current wait; 0: none.
  std::uint64_t requests_ = 0;
  std::optional<Lease> lease_;
};

}  // namespace tenure::fault
