#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

#include "client/validity.hpp"
#include "sys/boot_clock.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Something that ends with its lease: a hold, or a request that waits.
class Dependent : public std::enable_shared_from_this<Dependent> {
 public:
  Dependent() = default;
  Dependent(const Dependent&) = delete;
  Dependent& operator=(const Dependent&) = delete;
  virtual ~Dependent() = default;

  /// Called once at most, on any thread, without a latch; quick.
  virtual void lease_lost() = 0;
  /// Its lease is at risk from now on. On the notifier thread.
  virtual void lease_at_risk() {}

 private:
  friend class LeaseRecord;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::size_t place_ = nowhere;  ///< In LeaseRecord::dependents_; guarded by its latch.
};

/// One lease, as this client knows it. Thread safe.
class LeaseRecord {
 public:
  struct Terms {
    LeaseId id{};
    std::chrono::milliseconds ttl{};
    int renewals_per_ttl = 0;
  };

  /// `sent`: before the request for it left.
  LeaseRecord(Terms terms, sys::BootTime sent) noexcept
      : terms_(terms), confirmed_(sent.time_since_epoch().count()) {}

  [[nodiscard]] LeaseId id() const noexcept { return terms_.id; }
  [[nodiscard]] const Terms& terms() const noexcept { return terms_; }

  /// When the last confirmed renewal was sent.
  [[nodiscard]] sys::BootTime confirmed() const noexcept {
    return sys::BootTime(std::chrono::nanoseconds(confirmed_.load(std::memory_order_acquire)));
  }
  [[nodiscard]] sys::BootTime valid_until() const noexcept {
    return detail::valid_until(confirmed(), terms_.ttl);
  }

  [[nodiscard]] bool is_lost() const noexcept { return life_.load() == Life::lost; }
  [[nodiscard]] bool has_ended() const noexcept { return life_.load() != Life::alive; }
  /// Not lost, and still running at this time.
  [[nodiscard]] bool is_valid(sys::BootTime now) const noexcept {
    return !has_ended() && now < valid_until();
  }
  [[nodiscard]] bool is_at_risk(sys::BootTime now) const noexcept {
    return is_doubted_.load() || now >= at_risk_from(confirmed(), terms_.ttl);
  }

  /// A renewal that left at this time was confirmed.
  void confirm(sys::BootTime sent) noexcept {
    auto known = confirmed_.load();
    const auto count = sent.time_since_epoch().count();
    while (known < count && !confirmed_.compare_exchange_weak(known, count)) {
      // Another one was confirmed meanwhile; the later counts.
    }
    is_doubted_ = false;
    has_warned_ = false;
  }
  /// A renewal was answered by an error, or by nobody.
  void doubt() noexcept { is_doubted_ = true; }
  /// True for the first of them to ask, until it is confirmed again.
  [[nodiscard]] bool shall_warn() noexcept { return !has_warned_.exchange(true); }

  /// Terminal. Returns all that depends on it, to be told; nothing if it had ended before.
  [[nodiscard]] std::optional<std::vector<std::shared_ptr<Dependent>>> lose() {
    return end(Life::lost) ? std::optional(dependents()) : std::nullopt;
  }
  /// Terminal, by our own asking. False if it had ended before.
  bool end() { return end(Life::ended); }

  /// False if it has ended.
  [[nodiscard]] bool attach(Dependent& dependent) {
    const sys::LatchGuard lock(latch_);
    if (has_ended()) {
      return false;
    }
    dependent.place_ = dependents_.size();
    dependents_.push_back({.who = &dependent, .alive = dependent.weak_from_this()});
    return true;
  }
  void detach(Dependent& dependent) {
    const sys::LatchGuard lock(latch_);
    if (dependent.place_ == Dependent::nowhere) {
      return;
    }
    dependents_.back().who->place_ = dependent.place_;
    std::swap(dependents_[dependent.place_], dependents_.back());
    dependents_.pop_back();
    dependent.place_ = Dependent::nowhere;
  }
  [[nodiscard]] std::vector<std::shared_ptr<Dependent>> dependents() {
    std::vector<std::shared_ptr<Dependent>> alive;
    const sys::LatchGuard lock(latch_);
    for (const auto& entry : dependents_) {
      if (auto dependent = entry.alive.lock()) {
        alive.push_back(std::move(dependent));
      }
    }
    return alive;
  }

  /// Why the service did not grant it, if it did not.
  void refuse(Error why) {
    const sys::LatchGuard lock(latch_);
    refused_ = std::move(why);
  }
  [[nodiscard]] std::optional<Error> refused() {
    const sys::LatchGuard lock(latch_);
    return refused_;
  }

  /// Taken from the pool since the keeper last asked?
  void mark_used() noexcept { was_used_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool was_used() noexcept { return was_used_.exchange(false); }

 private:
  enum class Life : std::uint8_t { alive, lost, ended };
  struct Entry {
    Dependent* who;
    std::weak_ptr<Dependent> alive;
  };

  [[nodiscard]] bool end(Life how) {
    const sys::LatchGuard lock(latch_);
    if (has_ended()) {
      return false;
    }
    life_ = how;
    return true;
  }

  const Terms terms_;
  std::atomic<std::int64_t> confirmed_;  ///< In nanoseconds since boot. Never decreases.
  std::atomic<Life> life_ = Life::alive;
  std::atomic<bool> is_doubted_ = false;
  std::atomic<bool> has_warned_ = false;
  std::atomic<bool> was_used_ = false;

  sys::Latch latch_;
  std::vector<Entry> dependents_ TENURE_GUARDED_BY(latch_);
  std::optional<Error> refused_ TENURE_GUARDED_BY(latch_);
};

}  // namespace tenure::detail
