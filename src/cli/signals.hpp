#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <thread>

namespace tenure::cli {

/// Signals of users and shells as a file descriptor (signalfd), instead of handlers. REQUIRES:
/// constructed before any thread, so that all threads block them. Signals that were ignored at the
/// start (nohup) stay ignored. A signal that arrives between two reads stays pending, so none is
/// lost; standard signals of the same number may merge. The destructor restores the mask.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  /// File descriptor that is readable when a signal is pending.
  [[nodiscard]] int file() const noexcept { return file_; }
  /// Next pending signal, if there is one.
  [[nodiscard]] std::optional<int> next() const;
  /// Signal mask before construction, for child processes.
  [[nodiscard]] const sigset_t& mask_before() const noexcept { return before_; }

 private:
  sigset_t before_{};
  int file_ = -1;
};

/// Whether a signal requests termination: SIGINT, SIGTERM, SIGHUP or SIGQUIT.
[[nodiscard]] bool is_termination(int signal) noexcept;

/// Thread that reports the first termination signal while this object exists. Ctrl-Z stops the
/// process. `on_signal` runs on that thread, at most once, while the owner may be blocked in the
/// library. After the destructor the signals stay pending for the next reader.
class TerminationWatch {
 public:
  TerminationWatch(const Signals& signals, std::function<void(int signal)> on_signal);
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;
  ~TerminationWatch();

 private:
  /// Event file descriptor that ends the thread.
  int end_ = -1;
  std::jthread thread_;
};

}  // namespace tenure::cli
