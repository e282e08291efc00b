#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include <tenure/client/guard.hpp>

namespace tenure::cli {

/// Lock that this process holds, however it was acquired. The destructor releases it without
/// waiting for the reply. Thread safety: as LockHandle.
class HeldLock {
 public:
  HeldLock() = default;
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  virtual ~HeldLock() = default;

  /// Fencing token of the hold.
  [[nodiscard]] virtual FencingToken token() const = 0;
  /// Triggered once when the hold is lost.
  [[nodiscard]] virtual std::stop_token lost() const = 0;
  [[nodiscard]] virtual bool is_lost() const = 0;
  /// End of the confirmed lease by the local clock.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point valid_until() const = 0;
  /// Releases and waits for the reply. Errc::lease_lost: the hold had ended.
  [[nodiscard]] virtual Result<void> unlock() = 0;
};

/// Lock that the client library has acquired.
class LibraryLock final : public HeldLock {
 public:
  explicit LibraryLock(LockHandle handle) : handle_(std::move(handle)) {}

  [[nodiscard]] FencingToken token() const override { return handle_.token(); }
  [[nodiscard]] std::stop_token lost() const override { return handle_.lost(); }
  [[nodiscard]] bool is_lost() const override { return handle_.state() == GuardState::lost; }
  [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const override {
    return handle_.valid_until();
  }
  [[nodiscard]] Result<void> unlock() override { return handle_.unlock(); }

 private:
  LockHandle handle_;
};

}  // namespace tenure::cli
