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

/// What all workers of a process share.
struct Shop {
  Client client;
  Recorder& recorder;
  Ledger& ledger;
  std::string name;  ///< Of the process, in the history.
  std::chrono::milliseconds ttl{};
  std::chrono::milliseconds hold_max{};
  std::chrono::milliseconds pause_max{};
  std::stop_token stop;
  std::atomic<history::Time> stopped{};  ///< When everybody began to leave; 0: not yet.
};

/// Everything that workers ask for. A watcher has to know the names in advance.
[[nodiscard]] std::vector<std::string> all_names();

/// A thread that takes locks, holds them, writes under them and gives them back, until it is told
/// to stop, whatever happens to the service; and tells the history each step.
class Worker {
 public:
  enum class Role : std::uint8_t { mutex, rw_lock, semaphore, election, several, careless, task };
  static constexpr int roles = 7;

  Worker(Shop& shop, Role role, int number, std::uint64_t seed);

  void run();

 private:
  /// How one acquisition is asked for, in the words of the history.
  struct Claim {
    std::vector<history::Item> items;
    history::Asking asking = history::Asking::wait;
    std::optional<Lease> lease = std::nullopt;  ///< Of ours; else it gets one of its own.
  };

  void once();
  void use_mutex();
  void use_rw_lock();
  void use_semaphore();
  void use_election();
  void use_several();
  void write_late();
  void use_task();
  test::Detached take_in_a_coroutine(const Claim& claim, const std::string& request, Mutex mutex,
                                     std::latch& done);

  /// Tells that it is asked for. The name of the request.
  std::string invoke(const Claim& claim);
  void fail(const Claim& claim, const std::string& request, const Error& error);
  /// Holds for a while, writing, and gives back.
  void keep(const Claim& claim, const std::string& request, LockHandle& held);
  void give_back(const Claim& claim, const std::string& request, LockHandle& held);
  void granted(const Claim& claim, const std::string& request, const LockHandle& held);
  template <class Held>
  void finish(const Claim& claim, const std::string& request, Result<Held> held);

  [[nodiscard]] static std::string owner_of(const Claim& claim, const std::string& request);
  [[nodiscard]] LockOptions options(const Claim& claim, const std::string& request) const;
  /// Half of what is asked for hangs on the lease of the worker.
  [[nodiscard]] std::optional<Lease> maybe_lease();
  void say(history::Kind kind, const std::string& request);
  void say_renewed(const std::string& owner, std::chrono::steady_clock::time_point until);
  /// It is not believed in any more, and nobody renews it.
  void say_lost(const Claim& claim, const std::string& request);
  /// A lease of ours that lives, if the service can be reached.
  bool ensure_lease();
  void pause(std::chrono::milliseconds longest);
  [[nodiscard]] std::uint64_t below(std::uint64_t limit);
  [[nodiscard]] bool one_in(std::uint64_t count) { return below(count) == 0; }

  Shop& shop_;
  Role role_;
  std::string id_;  ///< Client of the history.
  std::mt19937_64 chance_;
  history::Time invoked_{};   ///< When the last request began.
  history::Time gives_up_{};  ///< When the wait of this moment ends by itself; 0: never.
  std::uint64_t requests_ = 0;
  std::optional<Lease> lease_;
};

}  // namespace tenure::fault
