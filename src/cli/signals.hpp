#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <thread>

namespace tenure::cli {

/// The signals that people and shells send, read from a file instead of interrupting. REQUIRES:
/// made before any thread, so that none of them is interrupted either. Those that were ignored when
/// we were started (nohup) stay ignored.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  /// Readable when one is there.
  [[nodiscard]] int file() const noexcept { return file_; }
  /// The next one, if there is any.
  [[nodiscard]] std::optional<int> next() const;
  /// What was blocked before us: for children.
  [[nodiscard]] const sigset_t& mask_before() const noexcept { return before_; }

 private:
  sigset_t before_{};
  int file_ = -1;
};

/// Does a signal ask us to end?
[[nodiscard]] bool is_farewell(int signal) noexcept;

/// While it lives, the first signal that asks us to end is told, on a thread of its own. Ctrl-Z
/// stops us.
class FarewellWatch {
 public:
  FarewellWatch(const Signals& signals, std::function<void(int signal)> tell);
  FarewellWatch(const FarewellWatch&) = delete;
  FarewellWatch& operator=(const FarewellWatch&) = delete;
  ~FarewellWatch();

 private:
  int end_ = -1;
  std::jthread thread_;
};

}  // namespace tenure::cli
