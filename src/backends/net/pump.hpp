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

#include "backends/nap.hpp"
#include "sys/mutex.hpp"
#include "sys/vigil.hpp"
#include "sys/wager.hpp"

namespace tenure::backends {

/// Runs a loop on whichever thread has nothing better to do: one that waits for an answer, or one
/// that has just posted something, or, when there is neither for a while, one that sleeps for want
/// of work or, if there is none of those either, a thread of its own. So
/// the bytes of an answer wake the very thread that waits for it, and not another one which then
/// wakes it: half of the time that a lock takes on a quick network. Where many wait for answers
/// that come together, again and again, they take turns: each that has a core looks for answers,
/// and lets the others go first. Nobody is woken, and nobody's turn is missed because it has no
/// core. Where servers want the cores, too, a thread of its own serves them.
///
/// One thread at a time runs the loop; whatever runs there needs no other protection. Thread safe.
class Pump {
 public:
  /// For so long who waits for an answer stays awake: a round trip and a write to a quick disk.
  static constexpr std::chrono::microseconds awake_at_most{400};

  /// `awake_for`: zero where one waits for several who all want a core; then a crowd takes no turns
  /// either, and our own thread serves it.
  explicit Pump(std::chrono::microseconds awake_for = awake_at_most);
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  ~Pump() { stop(); }

  [[nodiscard]] boost::asio::io_context& loop() noexcept { return loop_; }

  /// Does `job` on the loop, soon: on this thread, if nobody runs the loop. After what was posted
  /// before.
  template <class Job>
  void post(Job job) {
    boost::asio::post(loop_, std::move(job));
    nudge();
  }
  /// Does what was posted now, on this thread if nobody runs the loop, though more may follow soon.
  void hurry();
  [[nodiscard]] bool runs_here() { return loop_.get_executor().running_in_this_thread(); }

  /// Ends our own thread; nothing runs any more. REQUIRES: nobody sleeps or posts.
  void stop();

  /// Sleeps until the nap has more calls than these, or until the deadline, and runs the loop
  /// meanwhile if it can. May return for no reason. REQUIRES: not on the loop.
  void sleep(Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline,
             SleepFor what = SleepFor::answer);
  void wake(Nap& nap);

 private:
  /// The last two have nothing else to do and give way to a guest.
  enum class Runner : std::uint8_t { nobody, guest, idler, own };

  /// What came of not sleeping at once.
  enum class Dozed : std::uint8_t { well, in_vain, too_long };

  void nudge();
  [[nodiscard]] Dozed doze(const Nap& nap, std::uint32_t calls_seen);
  /// Runs what is ready, if nobody does and nobody just did.
  void look_after(std::chrono::steady_clock::time_point now);
  void end_doze();
  /// False: somebody else runs it.
  [[nodiscard]] bool take_loop(Runner as) TENURE_REQUIRES(mutex_);
  /// Or else it is among those who may be appointed.
  [[nodiscard]] bool take_loop_or_wait(Nap& nap, SleepFor what) TENURE_REQUIRES(mutex_);
  void appoint_next() TENURE_REQUIRES(mutex_);
  /// By our own thread.
  [[nodiscard]] bool is_crowd_served() const TENURE_REQUIRES(mutex_) {
    return is_crowded_ && !takes_turns_ && !is_stopping_;
  }
  void run_for(const Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline, SleepFor what);
  /// Jobs that are ready, at most so many; what is left of them.
  void do_favours(std::size_t& left);
  /// The running thread goes, after so many favours at most; one that sleeps takes its place.
  void leave(std::size_t favours);
  /// False: something was posted meanwhile, and it can do that much more.
  [[nodiscard]] bool try_leave(bool is_tired, std::uint32_t woken);
  void serve_crowd();
  void run_until_wanted();
  void run_own();

  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  sys::Vigil vigil_;                           ///< Of whoever runs the loop.
  std::atomic<const Nap*> running_ = nullptr;  ///< Of the guest that runs the loop until a call.
  std::atomic<bool> is_wanted_ = false;        ///< By a guest: an idler or our thread shall leave.
  const bool takes_turns_;                     ///< A crowd.

  std::uint32_t woken_ = 0;  ///< By whoever runs the loop, who alone uses this.
  /// Until then nobody who dozes looks: somebody just did.
  std::atomic<std::chrono::steady_clock::time_point> look_at_{};
  std::atomic<bool> may_doze_ = false;            ///< Those who wait take turns, and it pays.
  std::atomic<bool> is_dozing_doubtful_ = false;  ///< What dozing_ says, without its mutex.
  std::atomic<std::uint32_t> dozers_ = 0;         ///< Who take turns now.
  std::atomic<std::thread::id> idler_{};          ///< The last one that slept for work.

  sys::Mutex mutex_;
  Runner runner_ TENURE_GUARDED_BY(mutex_) = Runner::nobody;
  sys::Wager dozing_ TENURE_GUARDED_BY(mutex_);
  NapList sleepers_ TENURE_GUARDED_BY(mutex_);        ///< For an answer.
  NapList idlers_ TENURE_GUARDED_BY(mutex_);          ///< For work.
  bool is_nudged_ TENURE_GUARDED_BY(mutex_) = false;  ///< Something was posted since it last left.
  bool has_left_overs_ TENURE_GUARDED_BY(mutex_) = false;     ///< By one who went with jobs to do.
  std::uint64_t turns_ TENURE_GUARDED_BY(mutex_) = 0;         ///< How often the runner changed.
  bool is_crowded_ TENURE_GUARDED_BY(mutex_) = false;         ///< Many are answered together.
  std::uint32_t woken_lately_ TENURE_GUARDED_BY(mutex_) = 0;  ///< Since our thread looked.
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  bool is_own_asleep_ TENURE_GUARDED_BY(mutex_) = false;  ///< Until it is told.
  sys::Signal own_;
  std::thread thread_;  ///< Last: uses all the rest.
};

}  // namespace tenure::backends
