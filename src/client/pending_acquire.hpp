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

/// One request on its way, from asking until it is granted, refused or called off. Exactly one end
/// counts, the first; a grant that comes after it is given back, and an upgrade is undone.
///
/// Like a Hold it does not own the session: whoever waits for it does.
class PendingAcquire : public Dependent {
 public:
  struct Question {
    std::shared_ptr<const backends::AcquireSpec> spec{};
    std::shared_ptr<LeaseRecord> lease{};
    backends::Queue queue = backends::Queue::wait;
    std::shared_ptr<Hold> upgrades{};  ///< The share that it makes exclusive, or none.
  };
  using Granted = Result<backends::Granted>;

  PendingAcquire(Session& session, Question question);

  /// Asks. The answer may be there when it returns.
  void start();

  /// Sleeps until it is settled, the deadline passes or the token is stopped.
  void sleep(std::optional<std::chrono::steady_clock::time_point> deadline,
             const std::stop_token& cancel);
  /// Calls `then` on the notifier thread when it is settled; false if it is already.
  [[nodiscard]] bool when_settled(std::move_only_function<void()> then);

  /// Leaves the queue, and answers `why` unless it is granted meanwhile.
  void call_off(Errc why);
  /// Does not wait for anybody any more.
  void give_up();

  [[nodiscard]] bool is_settled() const noexcept;
  /// REQUIRES: is_settled().
  [[nodiscard]] Granted take_answer();
  [[nodiscard]] const std::shared_ptr<LeaseRecord>& lease() const noexcept {
    return question_.lease;
  }
  [[nodiscard]] backends::RequestId request() const noexcept { return request_; }

  void lease_lost() override;

 private:
  void settle(Granted answer);
  void give_back(const backends::Granted& granted);

  Session& session_;
  /// Of the backend, which outlives its callbacks; the session may end when this is settled.
  sys::Parker& parker_;
  const Question question_;
  const backends::RequestId request_;
  std::atomic<bool> is_settled_ = false;
  sys::WaitSlot slot_;                       ///< Signalled when settled or cancelled.
  std::atomic<Errc> why_ = Errc::cancelled;  ///< What a wait that is called off answers.

  sys::Latch latch_;
  bool has_answer_ TENURE_GUARDED_BY(latch_) = false;
  Granted answer_ TENURE_GUARDED_BY(latch_);
  std::move_only_function<void()> then_ TENURE_GUARDED_BY(latch_);
};

}  // namespace tenure::detail
