#pragma once

#include <algorithm>
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

#include "backends/backend.hpp"
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
      : id_(terms.id), renewals_per_ttl_(terms.renewals_per_ttl), confirmed_(sent) {
    believe({.sent = sent, .ttl = terms.ttl});
  }

  [[nodiscard]] LeaseId id() const noexcept { return id_; }
  [[nodiscard]] int renewals_per_ttl() const noexcept { return renewals_per_ttl_; }

  /// What we believe: when the last confirmed renewal was sent, and the ttl it counts.
  [[nodiscard]] Term term() const {
    const sys::LatchGuard lock(latch_);
    return term_;
  }
  [[nodiscard]] sys::BootTime valid_until() const noexcept {
    return sys::BootTime(std::chrono::nanoseconds(valid_until_.load(std::memory_order_acquire)));
  }

  [[nodiscard]] bool is_lost() const noexcept { return life_.load() == Life::lost; }
  [[nodiscard]] bool has_ended() const noexcept { return life_.load() != Life::alive; }
  /// Not lost, and still running at this time.
  [[nodiscard]] bool is_valid(sys::BootTime now) const noexcept {
    return !has_ended() && now < valid_until();
  }
  [[nodiscard]] bool is_at_risk(sys::BootTime now) const noexcept {
    return is_doubted_.load() || now.time_since_epoch().count() >= at_risk_from_.load();
  }

  /// A renewal that left at this time was confirmed.
  void confirm(sys::BootTime sent) {
    const sys::LatchGuard lock(latch_);
    confirm_for(term_.ttl, sent);
  }
  /// A renewal was answered by an error, or by nobody.
  void doubt() noexcept { is_doubted_ = true; }
  /// Another ttl is about to be asked for. A shorter one counts at once, since it may arrive at any
  /// time from now on; a longer one when it is confirmed. False: the answer to an earlier one is
  /// still out, and what the service counts is for that to say.
  [[nodiscard]] bool ask_ttl(Term asked) {
    const sys::LatchGuard lock(latch_);
    if (asked_) {
      return false;
    }
    asked_ = Asked{.term = asked, .ttl_before = term_.ttl};
    if (asked.ttl < term_.ttl) {
      believe(shortened(term_, asked));
    }
    return true;
  }
  /// It is the ttl from then on. REQUIRES: ask_ttl().
  void confirm_ttl() {
    const sys::LatchGuard lock(latch_);
    const auto asked = std::exchange(asked_, std::nullopt)->term;
    term_.ttl = std::min(asked.ttl, feared_);
    confirm_for(term_.ttl, asked.sent);
  }
  /// The service did not take it: all is as before. REQUIRES: ask_ttl().
  void refuse_ttl() {
    const sys::LatchGuard lock(latch_);
    const auto before = std::exchange(asked_, std::nullopt)->ttl_before;
    believe({.sent = confirmed_, .ttl = before});
  }
  /// Nobody says whether the service took it, or will yet: no longer one is believed in again.
  /// REQUIRES: ask_ttl().
  void fear_ttl() {
    const sys::LatchGuard lock(latch_);
    feared_ = std::min(feared_, std::exchange(asked_, std::nullopt)->term.ttl);
    is_doubted_ = true;
  }
  /// False: the service may count another ttl than we do.
  [[nodiscard]] bool is_ttl_known() const {
    const sys::LatchGuard lock(latch_);
    return !asked_ && feared_ == std::chrono::milliseconds::max();
  }

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

  /// A hold was taken away. If the one who asked has not heard yet that it was granted, it is not
  /// among those who depend on the lease: was_taken() tells when it is. All who do.
  [[nodiscard]] std::vector<std::shared_ptr<Dependent>> note_taken(backends::RequestId acquired) {
    {
      const sys::LatchGuard lock(latch_);
      if (taken_.size() == taken_max) {
        taken_.erase(taken_.begin());
      }
      taken_.push_back(acquired);
      has_taken_ = true;
    }
    return dependents();
  }
  /// REQUIRES: the hold is attached, by this thread: whoever notes it later finds it there.
  [[nodiscard]] bool was_taken(backends::RequestId acquired) {
    if (!has_taken_.load(std::memory_order_relaxed)) {
      return false;
    }
    const sys::LatchGuard lock(latch_);
    return std::erase(taken_, acquired) > 0;
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
  friend class LeaseKeeper;
  enum class Life : std::uint8_t { alive, lost, ended };
  static constexpr std::size_t taken_max = 64;
  struct Asked {
    Term term;
    std::chrono::milliseconds ttl_before;
  };
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

  void believe(Term term) noexcept TENURE_REQUIRES(latch_) {
    term_ = term;
    valid_until_ = detail::valid_until(term.sent, term.ttl).time_since_epoch().count();
    at_risk_from_ = detail::at_risk_from(term.sent, term.ttl).time_since_epoch().count();
  }
  /// Answers may come out of order: the latest that was sent counts.
  void confirm_for(std::chrono::milliseconds ttl, sys::BootTime sent) noexcept
      TENURE_REQUIRES(latch_) {
    confirmed_ = std::max(confirmed_, sent);
    believe({.sent = std::max(term_.sent, sent), .ttl = ttl});
    is_doubted_ = false;
    has_warned_ = false;
  }

  const LeaseId id_;
  const int renewals_per_ttl_;
  std::atomic<std::int64_t> valid_until_;   ///< In nanoseconds since boot.
  std::atomic<std::int64_t> at_risk_from_;  ///< Likewise.
  std::atomic<Life> life_ = Life::alive;
  std::atomic<bool> is_doubted_ = false;
  std::atomic<bool> has_warned_ = false;
  std::atomic<bool> was_used_ = false;
  std::atomic<bool> has_taken_ = false;  ///< Anything, ever.

  std::optional<sys::BootTime> look_;  ///< When the keeper looks next; guarded by its mutex.

  mutable sys::Latch latch_;
  /// What valid_until_ and at_risk_from_ say. Its end never comes nearer, but for a shorter ttl.
  Term term_ TENURE_GUARDED_BY(latch_);
  sys::BootTime confirmed_ TENURE_GUARDED_BY(latch_);  ///< When what is confirmed was sent.
  std::optional<Asked> asked_ TENURE_GUARDED_BY(latch_);
  /// The least that was asked for and never answered. A copy of that may be on its way still.
  std::chrono::milliseconds feared_ TENURE_GUARDED_BY(latch_) = std::chrono::milliseconds::max();
  std::vector<Entry> dependents_ TENURE_GUARDED_BY(latch_);
  std::optional<Error> refused_ TENURE_GUARDED_BY(latch_);
  std::vector<backends::RequestId> taken_ TENURE_GUARDED_BY(latch_);  ///< Lately.
};

}  // namespace tenure::detail
