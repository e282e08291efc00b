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

/// Observer of a lease that ends with it: a hold, or a pending request.
class Dependent : public std::enable_shared_from_this<Dependent> {
 public:
  Dependent() = default;
  Dependent(const Dependent&) = delete;
  Dependent& operator=(const Dependent&) = delete;
  virtual ~Dependent() = default;

  /// The lease has ended. Called at most once, on any thread, without a latch. Must not block.
  virtual void lease_lost() = 0;
  /// A renewal is overdue. Called on the callback thread. May run user code, and may run after the
  /// risk has passed: implementations check the state.
  virtual void lease_at_risk() {}

 private:
  friend class LeaseRecord;
  static constexpr std::size_t not_attached = std::numeric_limits<std::size_t>::max();
  std::size_t index_ = not_attached;  ///< Index in LeaseRecord::dependents_; guarded by its latch.
};

/// State of one lease, as this client knows it: its term by the local clock, the TTL changes in
/// progress, and the holds and requests that end with it. Thread safe.
///
/// INVARIANT: valid_until() is never later than the end that the service computes, whatever replies
/// are lost, delayed or reordered. Every rule below errs on the early side.
class LeaseRecord {
 public:
  /// Parameters that the client chooses for a new lease.
  struct Terms {
    LeaseId id{};
    std::chrono::milliseconds ttl{};
    int renewals_per_ttl = 0;
  };

  /// `sent`: time before the request was sent.
  LeaseRecord(Terms terms, sys::BootTime sent) noexcept
      : id_(terms.id), renewals_per_ttl_(terms.renewals_per_ttl), confirmed_(sent) {
    set_term({.sent = sent, .ttl = terms.ttl});
  }

  [[nodiscard]] LeaseId id() const noexcept { return id_; }
  [[nodiscard]] int renewals_per_ttl() const noexcept { return renewals_per_ttl_; }

  /// The term that counts: when the last confirmed renewal was sent, and its TTL.
  [[nodiscard]] Term term() const {
    const sys::LatchGuard lock(latch_);
    return term_;
  }
  /// End of the lease by the local clock. Lock-free, because each state() of a guard reads it.
  [[nodiscard]] sys::BootTime valid_until() const noexcept {
    return sys::BootTime(std::chrono::nanoseconds(valid_until_.load(std::memory_order_acquire)));
  }

  /// Whether the lease ended without a request of this client.
  [[nodiscard]] bool is_lost() const noexcept { return life_.load() == Life::lost; }
  /// Whether lose() or end() was called. An expired lease has not ended until one of them is.
  [[nodiscard]] bool has_ended() const noexcept { return life_.load() != Life::alive; }
  /// Whether the lease has neither ended nor expired at this time.
  [[nodiscard]] bool is_valid(sys::BootTime now) const noexcept {
    return !has_ended() && now < valid_until();
  }
  /// Whether renewals fail or are overdue. The lease is still valid.
  [[nodiscard]] bool is_at_risk(sys::BootTime now) const noexcept {
    return is_suspect_.load() || now.time_since_epoch().count() >= at_risk_from_.load();
  }

  /// The service confirmed a renewal that was sent at this time.
  void confirm(sys::BootTime sent) {
    const sys::LatchGuard lock(latch_);
    confirm_for(term_.ttl, sent);
  }
  /// A renewal failed or got no reply: at risk until one is confirmed.
  void mark_suspect() noexcept { is_suspect_ = true; }
  /// A TTL change is about to be sent. A shorter TTL counts at once, because the service may apply
  /// it at any time from now on; a longer one when it is confirmed. False if an earlier change is
  /// pending: its reply decides which TTL the service counts.
  [[nodiscard]] bool begin_ttl_change(Term asked) {
    const sys::LatchGuard lock(latch_);
    if (pending_ttl_) {
      return false;
    }
    pending_ttl_ = PendingTtl{.term = asked, .ttl_before = term_.ttl};
    if (asked.ttl < term_.ttl) {
      set_term(shortened(term_, asked));
    }
    return true;
  }
  /// The service applied the pending TTL. REQUIRES: begin_ttl_change().
  void confirm_ttl() {
    const sys::LatchGuard lock(latch_);
    const auto asked = std::exchange(pending_ttl_, std::nullopt)->term;
    term_.ttl = std::min(asked.ttl, ttl_unacknowledged_min_);
    confirm_for(term_.ttl, asked.sent);
  }
  /// The service rejected the pending TTL: restores the previous one. REQUIRES: begin_ttl_change().
  void reject_ttl() {
    const sys::LatchGuard lock(latch_);
    const auto before = std::exchange(pending_ttl_, std::nullopt)->ttl_before;
    set_term({.sent = confirmed_, .ttl = before});
  }
  /// The outcome of the pending TTL change is unknown, and the request may still arrive. From now
  /// on never trust a TTL longer than the smallest unacknowledged one. REQUIRES:
  /// begin_ttl_change().
  void mark_ttl_unknown() {
    const sys::LatchGuard lock(latch_);
    ttl_unacknowledged_min_ =
        std::min(ttl_unacknowledged_min_, std::exchange(pending_ttl_, std::nullopt)->term.ttl);
    is_suspect_ = true;
  }
  /// False if the service may count another TTL than this client.
  [[nodiscard]] bool is_ttl_known() const {
    const sys::LatchGuard lock(latch_);
    return !pending_ttl_ && ttl_unacknowledged_min_ == std::chrono::milliseconds::max();
  }

  /// True once per risk: for the first caller after a confirmation.
  [[nodiscard]] bool should_warn() noexcept { return !has_warned_.exchange(true); }

  /// Ends the lease as lost. Returns the dependents to notify; std::nullopt if it had ended before.
  [[nodiscard]] std::optional<std::vector<std::shared_ptr<Dependent>>> lose() {
    return end(Life::lost) ? std::optional(dependents()) : std::nullopt;
  }
  /// Ends the lease on request of this client. False if it had ended before.
  bool end() { return end(Life::ended); }

  /// Registers a dependent. False if the lease has ended.
  [[nodiscard]] bool attach(Dependent& dependent) {
    const sys::LatchGuard lock(latch_);
    if (has_ended()) {
      return false;
    }
    dependent.index_ = dependents_.size();
    dependents_.push_back({.who = &dependent, .alive = dependent.weak_from_this()});
    return true;
  }
  /// Removes a dependent; no effect if it is not attached. A notification that is in progress may
  /// still reach it. Constant time: the last entry takes its slot, so order is not kept.
  void detach(Dependent& dependent) {
    const sys::LatchGuard lock(latch_);
    if (dependent.index_ == Dependent::not_attached) {
      return;
    }
    dependents_.back().who->index_ = dependent.index_;
    std::swap(dependents_[dependent.index_], dependents_.back());
    dependents_.pop_back();
    dependent.index_ = Dependent::not_attached;
  }

  /// An operator forced the release of a hold. If its grant is still being processed, the hold is
  /// not attached yet and learns of it from was_force_released(). Returns the attached dependents.
  [[nodiscard]] std::vector<std::shared_ptr<Dependent>> note_force_released(
      backends::RequestId acquired) {
    {
      const sys::LatchGuard lock(latch_);
      if (force_released_.size() == force_released_max) {
        force_released_.erase(force_released_.begin());
      }
      force_released_.push_back(acquired);
      has_force_released_ = true;
    }
    return dependents();
  }
  /// REQUIRES: the hold is attached, so that later calls of note_force_released() find it.
  [[nodiscard]] bool was_force_released(backends::RequestId acquired) {
    // Relaxed order suffices: attach() has used the latch, so a forced release that this load
    // misses finds the attached hold.
    if (!has_force_released_.load(std::memory_order_relaxed)) {
      return false;
    }
    const sys::LatchGuard lock(latch_);
    return std::erase(force_released_, acquired) > 0;
  }

  /// Strong references to the attached dependents, so that the caller can notify them after the
  /// latch is released. Omits dependents whose destructor has begun.
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

  /// Records the error with which the service rejected the lease.
  void refuse(Error why) {
    const sys::LatchGuard lock(latch_);
    refused_ = std::move(why);
  }
  [[nodiscard]] std::optional<Error> refused() {
    const sys::LatchGuard lock(latch_);
    return refused_;
  }

  /// Marks a use, so that the next renewal keeps the lease instead of retiring it.
  void mark_used() noexcept { was_used_.store(true, std::memory_order_relaxed); }
  /// Whether the lease was taken from the pool since the last call.
  [[nodiscard]] bool was_used() noexcept { return was_used_.exchange(false); }

 private:
  friend class LeaseRenewer;
  enum class Life : std::uint8_t { alive, lost, ended };
  /// Bounds the memory of a long-lived lease. An entry matters only between a grant and the attach
  /// of its hold; the oldest ones are dropped.
  static constexpr std::size_t force_released_max = 64;
  /// TTL change without a reply.
  struct PendingTtl {
    Term term;
    std::chrono::milliseconds ttl_before;
  };
  struct Entry {
    /// Identity for detach(), which also runs in destructors, when `alive` has expired.
    Dependent* who;
    std::weak_ptr<Dependent> alive;
  };

  /// Ends the lease once; the first caller determines whether it counts as lost.
  [[nodiscard]] bool end(Life how) {
    const sys::LatchGuard lock(latch_);
    if (has_ended()) {
      return false;
    }
    life_ = how;
    return true;
  }

  /// Publishes the term to the lock-free readers. A reader between the two stores sees one old and
  /// one new value, which is harmless: each of them is a bound on its own.
  void set_term(Term term) noexcept TENURE_REQUIRES(latch_) {
    term_ = term;
    valid_until_ = detail::valid_until(term.sent, term.ttl).time_since_epoch().count();
    at_risk_from_ = detail::at_risk_from(term.sent, term.ttl).time_since_epoch().count();
  }
  /// Replies may arrive out of order: the renewal that was sent last counts.
  void confirm_for(std::chrono::milliseconds ttl, sys::BootTime sent) noexcept
      TENURE_REQUIRES(latch_) {
    confirmed_ = std::max(confirmed_, sent);
    set_term({.sent = std::max(term_.sent, sent), .ttl = ttl});
    is_suspect_ = false;
    has_warned_ = false;
  }

  const LeaseId id_;
  const int renewals_per_ttl_;
  std::atomic<std::int64_t> valid_until_;   ///< End of the term, in nanoseconds since boot.
  std::atomic<std::int64_t> at_risk_from_;  ///< Start of the risk, in nanoseconds since boot.
  /// State of the lease. Written under the latch, so that attach() cannot miss an end.
  std::atomic<Life> life_ = Life::alive;
  /// Whether a renewal failed after the last confirmation.
  std::atomic<bool> is_suspect_ = false;
  /// Whether at_risk was reported after the last confirmation.
  std::atomic<bool> has_warned_ = false;
  /// Whether the lease was taken from the pool since the last check for idleness.
  std::atomic<bool> was_used_ = false;
  std::atomic<bool> has_force_released_ =
      false;  ///< Set by the first forced release, to keep grants cheap without one.

  std::optional<sys::BootTime> next_check_;  ///< Next check by the renewer; guarded by its mutex.

  mutable sys::Latch latch_;
  /// Term behind valid_until_ and at_risk_from_. Its end moves forward only, except for a shorter
  /// TTL.
  Term term_ TENURE_GUARDED_BY(latch_);
  /// Send time of the last confirmed renewal: base of the term after a rejected TTL change. Differs
  /// from term_.sent while a shortened term counts.
  sys::BootTime confirmed_ TENURE_GUARDED_BY(latch_);
  /// TTL change in progress; at most one.
  std::optional<PendingTtl> pending_ttl_ TENURE_GUARDED_BY(latch_);
  /// Smallest TTL of a change without a reply. The network may still deliver that request.
  std::chrono::milliseconds ttl_unacknowledged_min_ TENURE_GUARDED_BY(latch_) =
      std::chrono::milliseconds::max();
  /// Holds and requests that end with the lease; Dependent::index_ is the position of each.
  std::vector<Entry> dependents_ TENURE_GUARDED_BY(latch_);
  /// Error with which the service rejected the lease, if it did.
  std::optional<Error> refused_ TENURE_GUARDED_BY(latch_);
  std::vector<backends::RequestId> force_released_ TENURE_GUARDED_BY(
      latch_);  ///< Requests whose holds were recently force-released; at most force_released_max.
};

}  // namespace tenure::detail
