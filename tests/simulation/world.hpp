#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "history/event.hpp"
#include "simulation/options.hpp"
#include "simulation/random.hpp"

namespace tenure::simulation {

/// Virtual real time, invisible to the simulated processes.
using VirtualTime = std::chrono::microseconds;

/// Event queue, virtual time and random source of a run. Everything runs in one thread, in an order
/// that depends on the seed only.
class World {
 public:
  using Task = std::function<void()>;

  /// `trace`: stream for the trace, or null.
  World(const Options& options, std::ostream* trace);

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Random& random() noexcept { return random_; }
  [[nodiscard]] VirtualTime now() const noexcept { return now_; }

  void at(VirtualTime when, Task task);
  void after(VirtualTime delay, Task task) { at(now_ + delay, std::move(task)); }
  /// Runs events until `end` or the first failure.
  void run_until(VirtualTime end);

  /// Ends the run; only the first failure is kept.
  void fail(const std::string& why);
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] bool has_failed() const noexcept { return !failure_.empty(); }

  /// Whether the faults have ended.
  [[nodiscard]] bool is_healed() const noexcept { return is_healed_; }
  void heal();

  /// Appends an event to the history with the present time.
  void record(history::Event event);
  [[nodiscard]] const history::Events& events() const noexcept { return events_; }

  [[nodiscard]] bool is_tracing() const noexcept { return trace_ != nullptr; }
  /// Writes a line. REQUIRES: is_tracing(), because formatting costs more than the traced event.
  void trace(const std::string& what);

 private:
  struct Due {
    VirtualTime when{};
    std::uint64_t order = 0;
    Task task;
  };
  static bool is_later(const Due& left, const Due& right) {
    return left.when != right.when ? left.when > right.when : left.order > right.order;
  }

  Options options_;
  std::ostream* trace_;
  Random random_;
  VirtualTime now_{std::chrono::seconds(1)};
  std::vector<Due> heap_;
  std::uint64_t tasks_made_ = 0;
  std::string failure_;
  bool is_healed_ = false;
  history::Events events_;
};

}  // namespace tenure::simulation
