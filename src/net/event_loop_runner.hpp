#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "sys/mutex.hpp"
#include "sys/parker.hpp"

namespace tenure::net {

/// Leader/follower executor for one io_context.
///
/// A thread that waits for a reply becomes the *leader* and runs the event loop itself, so the
/// reply wakes exactly the thread that needs it. When the leader's reply has arrived, it promotes
/// the oldest waiting *follower*. A dedicated thread runs the loop while no thread waits, so that
/// callbacks, coroutines and unsolicited messages make progress.
///
///   runner_     runs the loop           ends when
///   none        no thread               a thread waits, or the dedicated thread takes over
///   waiter      the leader              its slot is signalled or its deadline passes
///   dedicated   the dedicated thread    a thread waits
///
/// Unless an operation in the background is pending, the dedicated thread takes over only after
/// takeover_delay without a leader. So a client that sends one request after the other never wakes
/// it, and an unsolicited message that arrives right after a reply may be read that much later.
///
/// Guarantees
///   - At most one thread runs the loop at any time; handlers need no further synchronisation.
///   - A follower that waits becomes the leader when the leader leaves.
///   - wait() returns when its slot is signalled or its deadline has passed, not later than one
///     handler's run time after that.
///   - No thread polls unless set_busy_poll() allows it.
///
/// Thread safe, except for stop().
class EventLoopRunner final : public sys::Parker {
 public:
  /// Time without a leader after which the dedicated thread runs the loop.
  static constexpr std::chrono::milliseconds takeover_delay{2};
  /// Maximum number of handlers that flush() runs, to bound the time of its caller.
  static constexpr int flush_handlers_max = 16;

  EventLoopRunner();
  EventLoopRunner(const EventLoopRunner&) = delete;
  EventLoopRunner& operator=(const EventLoopRunner&) = delete;
  ~EventLoopRunner() override { stop(); }

  [[nodiscard]] boost::asio::io_context& loop() noexcept { return loop_; }
  [[nodiscard]] bool runs_here() { return loop_.get_executor().running_in_this_thread(); }

  /// Runs `job` on the loop, after the jobs posted before.
  template <class Job>
  void post(Job job) {
    boost::asio::post(loop_, std::move(job));
  }

  /// Blocks the calling thread, which runs the loop if it is the leader.
  void wait(sys::WaitSlot& slot, sys::WaitSlot::Deadline deadline) override;
  void signal(sys::WaitSlot& slot) override;
  /// Runs handlers that are ready on the calling thread, unless another thread runs the loop; that
  /// thread then does not leave before it has run them.
  void flush() override;
  void begin_background() override;
  void end_background() override;
  bool set_busy_poll(std::chrono::microseconds limit) override;

  /// Stops the dedicated thread. REQUIRES: no thread is in wait() or flush(), and none enters them
  /// any more.
  void stop();

 private:
  enum class Runner : std::uint8_t { none, waiter, dedicated };

  /// Makes the calling thread the leader, or a follower if another thread runs the loop.
  [[nodiscard]] bool lead_or_follow(sys::WaitSlot& slot);
  /// Takes a follower out of the queue that was signalled or whose deadline has passed. Returns
  /// true if it has been promoted.
  [[nodiscard]] bool leave_queue(sys::WaitSlot& slot);
  void run_until(const sys::WaitSlot& slot, sys::WaitSlot::Deadline deadline);
  void leave(sys::WaitSlot& slot);
  /// Runs handlers that are ready, at most flush_handlers_max, and promotes a follower.
  void flush_and_leave();
  void promote_next() TENURE_REQUIRES(mutex_);
  void interrupt();
  void run_dedicated();

  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::atomic<std::chrono::microseconds> busy_poll_{};
  /// The dedicated thread shall leave the loop.
  std::atomic<bool> is_yield_requested_ = false;

  sys::Mutex mutex_;
  Runner runner_ TENURE_GUARDED_BY(mutex_) = Runner::none;
  /// Waiting threads in order of arrival, without the leader.
  sys::WaitSlotQueue followers_ TENURE_GUARDED_BY(mutex_);
  /// Number of times that a leader left without a successor.
  std::uint64_t terms_ TENURE_GUARDED_BY(mutex_) = 0;
  /// Number of operations that no thread waits for.
  std::size_t background_ TENURE_GUARDED_BY(mutex_) = 0;
  /// flush() was called while a leader ran the loop.
  bool is_flush_requested_ TENURE_GUARDED_BY(mutex_) = false;
  /// flush() left at its limit: the dedicated thread takes over at once.
  bool has_ready_handlers_ TENURE_GUARDED_BY(mutex_) = false;
  /// The dedicated thread sleeps until the leader leaves.
  bool is_dedicated_parked_ TENURE_GUARDED_BY(mutex_) = false;
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  sys::Signal dedicated_wakeup_;
  /// Declared last: it uses every other member.
  std::thread dedicated_;
};

}  // namespace tenure::net
