#pragma once

#include <functional>
#include <utility>

#include "backends/backend.hpp"
#include "net/event_loop_runner.hpp"
#include "net/mpsc_queue.hpp"

namespace tenure::backends {

/// Base class of backends whose work runs on an event loop. Requests of all threads are posted to
/// the loop; all pending requests are handled together and their commands are sent by one
/// send_all().
///
/// post(), do_now() and the operations of the backend are thread safe; jobs run one at a time on
/// the loop's thread, so that the state they use needs no mutex. A thread that waits for a result
/// runs the loop itself (net::EventLoopRunner).
class LoopBackend : public Backend {
 public:
  [[nodiscard]] sys::Parker& parker() noexcept override { return runner_; }

 protected:
  LoopBackend() = default;

  /// Event loop of the backend.
  [[nodiscard]] boost::asio::io_context& loop() noexcept { return runner_.loop(); }
  /// The calling thread is running the loop.
  [[nodiscard]] bool runs_here() { return runner_.runs_here(); }
  /// Runs `job` on the loop, after the jobs posted before.
  template <class Job>
  void post(Job job) {
    if (jobs_.push(std::move(job)) == 1) {
      runner_.post([this] { do_posted(); });
    }
  }
  /// Called on the loop after a batch of jobs: sends what they have queued, together.
  virtual void send_all() {}

  /// Runs `job` on the loop, after the jobs posted before, and waits for its end.
  void do_now(std::move_only_function<void()> job);
  /// Stops the loop. For destructors of derived classes, whose members the loop's handlers use.
  void stop() { runner_.stop(); }

 private:
  /// Runs all pending jobs, on the loop.
  void do_posted();

  /// Posted jobs that have not run.
  net::MpscQueue jobs_;
  /// Runs the loop.
  net::EventLoopRunner runner_;
};

}  // namespace tenure::backends
