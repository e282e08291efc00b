#include "cli/signals.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace tenure::cli {
namespace {

/// Signals that users, shells and the kernel send to a job.
sigset_t wanted() {
  sigset_t signals;
  sigemptyset(&signals);
  // SIGTTOU would stop this process when it passes the terminal on from the background.
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD, SIGTTOU}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

Signals::Signals() {
  const auto signals = wanted();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  auto read = signals;
  // Blocked, but never read: a read would make it visible to the loops, which have no use for it.
  sigdelset(&read, SIGTTOU);
  // Nonblocking, because the loops read until nothing is pending.
  file_ = signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() {
  close(file_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Signals::next() const {
  signalfd_siginfo found{};
  // Nothing is pending (EAGAIN).
  if (read(file_, &found, sizeof(found)) != sizeof(found)) {
    return std::nullopt;
  }
  return static_cast<int>(found.ssi_signo);
}

bool is_termination(int signal) noexcept {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

TerminationWatch::TerminationWatch(const Signals& signals, std::function<void(int)> on_signal)
    : end_(eventfd(0, EFD_CLOEXEC)),
      thread_([&signals, on_signal = std::move(on_signal), end = end_] {
        std::array<pollfd, 2> wakers{{{.fd = signals.file(), .events = POLLIN, .revents = 0},
                                      {.fd = end, .events = POLLIN, .revents = 0}}};
        // A second Ctrl-C has no further effect: the operation is already being cancelled.
        bool is_reported = false;
        while (wakers[1].revents == 0) {
          poll(wakers.data(), wakers.size(), -1);
          const auto signal = wakers[0].revents != 0 ? signals.next() : std::nullopt;
          // Ctrl-Z. The signal is blocked, so the process has to stop itself, with all its threads.
          if (signal == SIGTSTP) {
            kill(getpid(), SIGSTOP);
          }
          if (signal && is_termination(*signal) && !std::exchange(is_reported, true)) {
            on_signal(*signal);
          }
        }
      }) {}

// The thread is joined before the descriptor is closed, because it polls it.
TerminationWatch::~TerminationWatch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(end_, &one, sizeof(one));
  thread_.join();
  close(end_);
}

}  // namespace tenure::cli
