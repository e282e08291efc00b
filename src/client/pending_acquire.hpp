#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <tenure/client/guard.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "client/hold.hpp"
#include "client/lease_record.hpp"
#include "client/lock_spec.hpp"
#include "sys/latch.hpp"
#include "sys/parker.hpp"

namespace tenure::detail {

class Session;

/// Acquire request in progress, from sending until it is granted, rejected or cancelled. The first
/// outcome wins; a grant that arrives after another outcome is released, and an upgrade is
/// reverted. Thread safe.
///
/// Like a Hold it does not own the session; its waiter does.
class PendingAcquire : public Dependent {
 public:
  /// What to acquire, and under which lease.
  struct Request {
    std::shared_ptr<const backends::AcquireSpec> spec{};
    std::shared_ptr<LeaseRecord> lease{};
    backends::Queue queue = backends::Queue::wait;
    std::shared_ptr<Hold> upgrades{};  ///< Shared hold to upgrade; null for a plain acquire.
  };
  using Granted = Result<backends::Granted>;

  PendingAcquire(Session& session, Request question);

  /// Sends the request. The reply may have arrived when it returns.
  void start();

  /// Blocks until the request is settled, the deadline passes or the token is triggered.
  void sleep(std::optional<std::chrono::steady_clock::time_point> deadline,
             const std::stop_token& cancel);
  /// Calls `then` on the callback thread when the request is settled; false if it is already.
  [[nodiscard]] bool on_settled(std::move_only_function<void()> then);

  /// Asks the service to leave the wait queue. The outcome is `why` unless a grant is faster.
  void cancel(Errc why);
  /// Settles with Errc::unavailable, without waiting for the service.
  void abandon();

  [[nodiscard]] bool is_settled() const noexcept;
  /// Detaches from the lease and returns the outcome, once. REQUIRES: is_settled().
  [[nodiscard]] Granted take_answer();
  [[nodiscard]] const std::shared_ptr<LeaseRecord>& lease() const noexcept {
    return parameters_.lease;
  }
  [[nodiscard]] backends::RequestId request() const noexcept { return request_; }

  /// Settles with Errc::lease_lost.
  void lease_lost() override;

 private:
  /// Records the first outcome and wakes its waiter; undoes a grant that comes later.
  void settle(Granted answer);
  /// Releases a late grant, or reverts a late upgrade. Without it the service would count a hold
  /// that no guard owns until the lease ends. Runs on the callback thread.
  void undo(const backends::Granted& granted);

  Session& session_;
  /// Parker of the backend, which outlives its callbacks. The session may be destroyed as soon as
  /// this request is settled, so settle() must not use it afterwards.
  sys::Parker& parker_;
  /// Parameters of the request; immutable, so the threads of the backend read them without a latch.
  const Request parameters_;
  /// Id under which the service knows this request.
  const backends::RequestId request_;
  std::atomic<bool> is_settled_ = false;
  sys::WaitSlot slot_;                       ///< Signalled when settled or cancelled.
  std::atomic<Errc> why_ = Errc::cancelled;  ///< Outcome of a cancelled wait.

  sys::Latch latch_;
  /// Whether an outcome is recorded; decides which one is the first.
  bool has_answer_ TENURE_GUARDED_BY(latch_) = false;
  Granted answer_ TENURE_GUARDED_BY(latch_);
  /// Completion of on_settled().
  std::move_only_function<void()> then_ TENURE_GUARDED_BY(latch_);
};

}  // namespace tenure::detail
