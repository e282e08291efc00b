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
#include "sys/latch.hpp"

namespace tenure::detail {

class Session;

/// One granted lock. Its guard owns it, and with the LockSpec the session; the hold itself owns
/// neither, because the last reference to it may be dropped by a thread of the session.
class Hold : public Dependent {
 public:
  struct Start {
    backends::RequestId request{};
    std::shared_ptr<LeaseRecord> lease{};
    backends::Granted granted{};
    AcquisitionReport report{};
  };

  Hold(const LockSpec& spec, Start start);

  [[nodiscard]] GuardState state() const noexcept;
  [[nodiscard]] FencingToken token() const noexcept {
    return FencingToken{token_.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] std::stop_token lost();
  [[nodiscard]] const std::shared_ptr<LeaseRecord>& lease() const noexcept { return lease_; }
  [[nodiscard]] const AcquisitionReport& report() const noexcept { return report_; }
  /// REQUIRES: nobody else knows the hold yet.
  void set_attempts(int attempts, std::chrono::nanoseconds waited) noexcept {
    report_.attempts = attempts;
    report_.waited = waited;
  }
  [[nodiscard]] backends::RequestId request() const noexcept { return request_; }

  /// Gives back and waits for the answer.
  [[nodiscard]] Result<void> unlock();
  /// Gives back. Answers at once, or later by `done` on the notifier thread, which keeps whatever
  /// keeps the session.
  [[nodiscard]] std::optional<Result<void>> unlock_async(backends::Backend::Done<void> done);
  /// Gives back; nobody waits.
  void drop() noexcept;

  /// It was upgraded: another token, and one more release to be made.
  void strengthen(const backends::Granted& granted,
                  std::shared_ptr<const backends::AcquireSpec> acquire_spec);
  /// An upgrade was granted after its caller had given up: makes it a share again. The token is
  /// that of the upgrade from then on. `exclusive`: what was granted.
  void undo_upgrade(const backends::Granted& granted,
                    std::shared_ptr<const backends::AcquireSpec> exclusive);
  /// Makes it a share, with the same token. Waits for the answer, but does without: a share is all
  /// that is left either way. On failure it is as it was, or lost. REQUIRES: exclusive, and nobody
  /// else relies on that.
  [[nodiscard]] Result<void> downgrade(std::shared_ptr<const backends::AcquireSpec> shared);
  /// Taken away by an operator. Fires lost().
  void take_away() { lease_lost(); }

  void lease_lost() override;
  void lease_at_risk() override;

 private:
  [[nodiscard]] bool begin_release() noexcept { return !is_released_.exchange(true); }
  /// The guard lets go. An error is the answer to that; else the service is still to be asked.
  [[nodiscard]] Result<void> leave();
  /// Who hears the answer to a release.
  enum class Hears : std::uint8_t { nobody, sleeper, awaiter };
  void send_release(Hears who);
  void released(Hears who, Result<void> answer);
  void settle_release(Result<void> answer);
  /// Gives back once, of several times that it takes.
  void send_one_release();
  [[nodiscard]] std::shared_ptr<const backends::AcquireSpec> acquire_spec();
  void fire_lost();

  Session& session_;
  const std::shared_ptr<LeaseRecord> lease_;
  const backends::RequestId request_;
  AcquisitionReport report_;
  const bool is_lease_shared_;
  const std::shared_ptr<const std::function<void(const AtRisk&)>> on_at_risk_;

  std::atomic<std::uint64_t> token_;
  std::atomic<std::uint32_t> releases_ = 1;  ///< That it takes to give it back.
  std::atomic<bool> is_released_ = false;
  std::atomic<bool> is_lost_ = false;
  Awaited<void> released_;  ///< By unlock().

  sys::Latch latch_;
  std::shared_ptr<const backends::AcquireSpec> acquire_spec_ TENURE_GUARDED_BY(latch_);
  std::optional<std::stop_source> lost_ TENURE_GUARDED_BY(latch_);     ///< Made when asked for.
  backends::Backend::Done<void> releasing_ TENURE_GUARDED_BY(latch_);  ///< Who awaits the answer,
  std::optional<Result<void>> release_answer_ TENURE_GUARDED_BY(latch_);  ///< unless it was first.
};

}  // namespace tenure::detail
