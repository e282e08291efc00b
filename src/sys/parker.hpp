#pragma once

#include <chrono>

#include "sys/wait_slot.hpp"

namespace tenure::sys {

/// Blocks threads on wait slots and wakes them. This one puts the thread to sleep;
/// net::EventLoopRunner lets it run an event loop. Thread safe.
class Parker {
 public:
  Parker() = default;
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;
  virtual ~Parker() = default;

  /// Blocks until `slot` is signalled or `deadline` passes. REQUIRES: no other thread waits on the
  /// slot, and the caller is not a handler of the event loop.
  virtual void wait(WaitSlot& slot, WaitSlot::Deadline deadline) { slot.park(deadline); }
  /// Signals the slot and wakes the thread that waits on it. May be called on any thread, also in
  /// handlers of the event loop.
  virtual void signal(WaitSlot& slot) { slot.signal(); }
  /// Sends what the caller has requested. For requests whose reply is of no interest, such as the
  /// release by a destructor; without it they are sent when the event loop runs next.
  virtual void flush() {}
  /// Begins an operation that ends with a callback and that no thread waits for. While there is
  /// one, a thread runs the event loop all the time.
  virtual void begin_background() {}
  /// REQUIRES: once for each begin_background().
  virtual void end_background() {}
  /// How long a waiting thread polls the event loop before it blocks. Returns false if there is no
  /// event loop.
  [[nodiscard]] virtual bool set_busy_poll(std::chrono::microseconds /*limit*/) { return false; }
};

/// Parker of threads that have no event loop to run.
[[nodiscard]] inline Parker& thread_parker() noexcept {
  static Parker parker;
  return parker;
}

}  // namespace tenure::sys
