#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <tenure/client/guard.hpp>
#include <tenure/client/options.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "client/completion.hpp"
#include "client/lease_record.hpp"
#include "client/lock_spec.hpp"
#include "sys/boot_clock.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

class Session;

/// State of one granted lock, shared by its guard and by pending callbacks. The guard owns the hold
/// and, through the LockSpec, the session. The hold itself must not own the session, because a
/// thread of the session may drop the last reference to the hold. Thread safe.
class Hold : public Dependent {
 public:
  /// Facts of the grant from which a hold begins.
  struct Start {
    backends::RequestId request{};
    std::shared_ptr<LeaseRecord> lease{};
    backends::Granted granted{};
    AcquisitionReport report{};
  };

  Hold(const LockSpec& spec, Start start);

  /// Current state by the local clock. A valid hold needs neither network nor latch. The first call
  /// that finds the lease expired ends it as lost for all its dependents.
  [[nodiscard]] GuardState state() const noexcept;
  [[nodiscard]] FencingToken token() const noexcept {
    return FencingToken{token_.load(std::memory_order_relaxed)};
  }
  /// Token that is triggered when the hold is lost. The stop source is created by the first call,
  /// because most holds never need one.
  [[nodiscard]] std::stop_token lost();
  /// Lease of the hold, never null.
  [[nodiscard]] const std::shared_ptr<LeaseRecord>& lease() const noexcept { return lease_; }
  [[nodiscard]] const AcquisitionReport& report() const noexcept { return report_; }
  /// REQUIRES: no other thread has a reference yet.
  void set_attempts(int attempts, std::chrono::nanoseconds waited) noexcept {
    report_.attempts = attempts;
    report_.waited = waited;
  }
  /// The service keeps the lock until then, even if it is released earlier. REQUIRES: no other
  /// thread has a reference yet.
  void keep_until(sys::BootTime end) noexcept { kept_until_ = end; }
  /// Request id of the acquisition, which identifies the hold in the service.
  [[nodiscard]] backends::RequestId request() const noexcept { return request_; }

  /// Releases and waits for the reply. `not_held`: it was released before. `lease_lost`: it was
  /// lost before. `unavailable`: no reply; the lock is free when its lease ends at the latest.
  [[nodiscard]] Result<void> unlock();
  /// Releases. Returns the outcome at once, or calls `done` later on the callback thread. `done`
  /// must keep the session alive.
  [[nodiscard]] std::optional<Result<void>> unlock_async(backends::Backend::Done<void> done);
  /// Releases without waiting for the reply. For destructors, which must not block. No effect after
  /// a release.
  void drop() noexcept;

  /// Records a granted upgrade: a new token, and one more release that the service counts.
  void apply_upgrade(const backends::Granted& granted,
                     std::shared_ptr<const backends::AcquireSpec> acquire_spec);
  /// Reverts an upgrade that was granted after its caller had abandoned it. The token remains that
  /// of the upgrade. `exclusive`: the granted specification.
  void undo_upgrade(const backends::Granted& granted,
                    std::shared_ptr<const backends::AcquireSpec> exclusive);
  /// Downgrades to a shared hold with the same token. Waits for the reply, but succeeds without
  /// one, because the hold is treated as shared either way. On failure it is unchanged or lost.
  /// REQUIRES: an exclusive hold without other guards.
  [[nodiscard]] Result<void> downgrade(std::shared_ptr<const backends::AcquireSpec> shared);
  /// An operator forced the release. Triggers lost().
  void mark_lost() { lease_lost(); }

  /// Marks the hold as lost and triggers lost() on the callback thread; completes unlock_async().
  void lease_lost() override;
  /// Calls LockOptions::on_at_risk if the hold is still at risk.
  void lease_at_risk() override;

 private:
  /// True for exactly one caller: unlock(), unlock_async() and drop() may race.
  [[nodiscard]] bool begin_release() noexcept { return !is_released_.exchange(true); }
  /// Ends the use by the guard. An error is the outcome of the release; without one, the caller
  /// still has to send the release.
  [[nodiscard]] Result<void> leave();
  /// Recipient of the reply to a release.
  enum class Waiter : std::uint8_t { none, thread, coroutine };
  /// Sends all releases_ releases, or before kept_until_ a last renewal until then. The callback of
  /// the last request keeps the hold alive.
  void send_release(Waiter waiter);
  /// Frees the lease of the hold, then passes the reply on. Runs on a thread of the backend.
  void on_released(Waiter waiter, Result<void> answer);
  /// Completes unlock_async() once; keeps the outcome if its completion is not registered yet.
  void settle_release(Result<void> answer);
  /// Sends one of the releases_ releases.
  void send_one_release(backends::Backend::Done<void> done = [](const Result<void>&) {});
  /// Specification that the service counts at present; upgrades and downgrades change it.
  [[nodiscard]] std::shared_ptr<const backends::AcquireSpec> acquire_spec();
  /// Triggers the stop source. Runs on the callback thread, because stop callbacks are user code.
  void fire_lost();

  /// Session of the guard, which keeps it alive.
  Session& session_;
  const std::shared_ptr<LeaseRecord> lease_;
  /// Request id of the acquisition.
  const backends::RequestId request_;
  AcquisitionReport report_;
  /// End of LockOptions::hold_at_least.
  sys::BootTime kept_until_{};
  /// Whether the lease belongs to a Lease of the user; otherwise the hold frees it.
  const bool is_lease_shared_;
  /// User callback for a lease at risk, or null.
  const std::shared_ptr<const std::function<void(const AtRisk&)>> on_at_risk_;

  /// Fencing token; an upgrade replaces it.
  std::atomic<std::uint64_t> token_;
  std::atomic<std::uint32_t> releases_ =
      1;  ///< Releases until the service frees the lock: 1 + upgrades.
  /// Whether a release has begun. Never reset.
  std::atomic<bool> is_released_ = false;
  /// Whether the hold was lost while the guard used it.
  std::atomic<bool> is_lost_ = false;
  ReplySlot<void> released_;  ///< Reply that unlock() waits for.

  sys::Latch latch_;
  std::shared_ptr<const backends::AcquireSpec> acquire_spec_ TENURE_GUARDED_BY(latch_);
  std::optional<std::stop_source> lost_
      TENURE_GUARDED_BY(latch_);  ///< Created by the first lost().
  backends::Backend::Done<void> releasing_
      TENURE_GUARDED_BY(latch_);  ///< Completion of unlock_async().
  std::optional<Result<void>> release_answer_
      TENURE_GUARDED_BY(latch_);  ///< Reply that came before releasing_ was set.
};

}  // namespace tenure::detail
