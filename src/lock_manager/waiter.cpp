#include "lock_manager/waiter.hpp"

#include <stop_token>

#include "sys/parking.hpp"
#include "sys/spin_wait.hpp"

namespace tenure::detail {

void Wakes::wake_all() noexcept {
  for (const auto* word : words_) {
    sys::unpark(word);
  }
}

void Waiter::sleep(const WaitOptions& wait) {
  // Handing over takes a fraction of a microsecond when both threads run, a futex round trip about
  // ten: poll for about that long before blocking.
  if (sys::poll_until([this] { return !is_pending(); }, std::chrono::microseconds(10))) {
    return;
  }

  const std::stop_callback on_stop(wait.cancel, [this] {
    std::uint32_t seen = state.load();
    while (seen <= parked && !state.compare_exchange_weak(seen, interrupted)) {
      // Another thread changed the state; `seen` has the new value.
    }
    if (seen == parked) {
      sys::unpark(&state);
    }
  });
  for (;;) {
    // Parks only from a pending state without an interruption; every other state ends the wait.
    std::uint32_t seen = waiting;
    const bool sleeps = state.compare_exchange_strong(seen, parked) || seen == parked;
    if (!sleeps || (wait.deadline && std::chrono::steady_clock::now() >= *wait.deadline)) {
      return;
    }
    sys::park(state, parked, wait.deadline);
  }
}

WaiterView view_of_waiter(const Waiter& waiter, std::chrono::steady_clock::time_point now) {
  return {.txn = waiter.txn,
          .mode = waiter.mode,
          .upgrade = waiter.upgrade,
          .waited = std::chrono::duration_cast<std::chrono::microseconds>(now - waiter.since)};
}

}  // namespace tenure::detail
