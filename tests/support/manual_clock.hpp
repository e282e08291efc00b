#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "sys/boot_clock.hpp"
#include "sys/mutex.hpp"

namespace tenure::test {

/// Clock that a test advances. Thread safe.
class ManualClock : public sys::Clock {
 public:
  [[nodiscard]] sys::BootTime now() const noexcept override {
    const sys::MutexGuard lock(state_->mutex);
    return state_->now;
  }
  [[nodiscard]] std::unique_ptr<sys::Alarm> make_alarm() override {
    return std::make_unique<ManualAlarm>(state_);
  }
  void advance(std::chrono::nanoseconds by) {
    const sys::MutexGuard lock(state_->mutex);
    state_->now += by;
    state_->changed.notify_all();
  }

 private:
  struct State {
    mutable sys::Mutex mutex;
    sys::Signal changed;
    sys::BootTime now TENURE_GUARDED_BY(mutex){std::chrono::hours(1)};
  };

  class ManualAlarm : public sys::Alarm {
   public:
    explicit ManualAlarm(std::shared_ptr<State> state) : state_(std::move(state)) {}

    void wait_until(std::optional<sys::BootTime> when) override {
      const sys::MutexGuard lock(state_->mutex);
      while (!is_notified_ && (!when || state_->now < *when)) {
        state_->changed.wait(state_->mutex);
      }
      is_notified_ = false;
    }
    void notify() noexcept override {
      const sys::MutexGuard lock(state_->mutex);
      is_notified_ = true;
      state_->changed.notify_all();
    }

   private:
    std::shared_ptr<State> state_;
    bool is_notified_ = false;  ///< Guarded by the mutex of the clock.
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace tenure::test
