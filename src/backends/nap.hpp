#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "sys/parking.hpp"

namespace tenure::backends {

/// What a thread sleeps for.
enum class SleepFor : std::uint8_t {
  answer,  ///< Somebody is kept waiting.
  work,    ///< It has nothing to do, and nobody misses it.
};

/// Where one thread sleeps until somebody calls it:
///
///   sleeper                                      caller
///     const auto calls = nap.calls();              condition = true;
///     if (!condition) backend.sleep(nap, calls);   backend.wake(nap);
class Nap {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  Nap() = default;
  Nap(const Nap&) = delete;
  Nap& operator=(const Nap&) = delete;
  ~Nap() = default;

  /// How often it was called.
  [[nodiscard]] std::uint32_t calls() const noexcept { return word_.load() & ~flags; }
  /// Was it called since, or appointed?
  [[nodiscard]] bool is_roused(std::uint32_t calls_seen) const noexcept {
    return (word_.load() & ~asleep) != calls_seen;
  }

  /// Sleeps while nobody calls or appoints; may return for no reason.
  void park(std::uint32_t calls_seen, Deadline deadline) {
    auto seen = calls_seen;
    if (word_.compare_exchange_strong(seen, calls_seen | asleep)) {
      sys::park(word_, calls_seen | asleep, deadline);
      word_.fetch_and(~asleep);
    }
  }
  /// True: it sleeps, and is to be woken by unpark(). Else it sees the call when it looks.
  [[nodiscard]] bool add_call() noexcept { return (word_.fetch_add(one_call) & asleep) != 0; }
  /// Uses the address only: it may be gone already.
  void unpark() const noexcept { sys::unpark(&word_); }
  void call() noexcept {
    if (add_call()) {
      unpark();
    }
  }

  /// Called for another reason than the one it sleeps for: see Pump.
  void appoint() noexcept {
    if ((word_.fetch_or(appointed) & asleep) != 0) {
      unpark();
    }
  }
  [[nodiscard]] bool take_appointment() noexcept {
    return (word_.fetch_and(~appointed) & appointed) != 0;
  }

 private:
  friend class NapList;
  static constexpr std::uint32_t appointed = 1;
  static constexpr std::uint32_t asleep = 2;
  static constexpr std::uint32_t flags = appointed | asleep;
  static constexpr std::uint32_t one_call = 4;

  std::atomic<std::uint32_t> word_ = 0;
  Nap* before_ = nullptr;  ///< In a NapList.
  Nap* after_ = nullptr;
};

/// Those who sleep, the first to come first. Allocates nothing.
class NapList {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Nap* first() const noexcept { return first_; }
  void push_back(Nap& nap) noexcept {
    nap.before_ = last_;
    nap.after_ = nullptr;
    (last_ == nullptr ? first_ : last_->after_) = &nap;
    last_ = &nap;
  }
  void remove(Nap& nap) noexcept {
    (nap.before_ == nullptr ? first_ : nap.before_->after_) = nap.after_;
    (nap.after_ == nullptr ? last_ : nap.after_->before_) = nap.before_;
  }

 private:
  Nap* first_ = nullptr;
  Nap* last_ = nullptr;
};

}  // namespace tenure::backends
