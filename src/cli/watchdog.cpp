#include "cli/watchdog.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tenure::cli {
namespace {

/// Message to the watchdog process.
struct Message {
  std::int32_t group = 0;
  std::int32_t stops = 0;
  sys::Deadline deadline{};
};

void arm(int timer, const sys::Deadline& deadline) {
  itimerspec when{};
  when.it_value = deadline.look_at();
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

/// Whether the deadline has passed. Otherwise re-arms the timer, which may have fired early.
bool is_over(int timer, const sys::Deadline& deadline) {
  if (deadline.left() <= std::chrono::nanoseconds::zero()) {
    return true;
  }
  arm(timer, deadline);
  return false;
}

/// Main loop of the process. Uses only calls that are safe after fork() in a multi-threaded
/// process.
[[noreturn]] void run_watchdog(int socket) {
  // A session of its own receives no signals of the terminal. Closed descriptors keep no pipe open.
  setsid();
  prctl(PR_SET_NAME, "tenure-watchdog");
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(nowhere, number);
  }
  dup2(socket, 3);
  close_range(4, ~0U, 0);
  constexpr int channel = 3;
  const int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  std::array<pollfd, 2> wakers{{{.fd = channel, .events = POLLIN, .revents = 0},
                                {.fd = timer, .events = POLLIN, .revents = 0}}};
  Message last;
  while (true) {
    poll(wakers.data(), wakers.size(), -1);
    // Messages first: a new deadline overrides an expired one.
    if (wakers[0].revents != 0) {
      Message next;
      const auto count = recv(channel, &next, sizeof(next), 0);
      if (count == sizeof(next)) {
        last = next;
        if (last.stops != 0) {
          _exit(0);
        }
        arm(timer, last.deadline);
        continue;
      }
      if (count < 0 && errno == EINTR) {
        continue;
      }
      break;  // The parent is dead.
    }
    if (wakers[1].revents != 0 && is_over(timer, last.deadline)) {
      break;
    }
  }
  if (last.group > 1) {
    kill(-last.group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

Watchdog::Watchdog() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return;
  }
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    run_watchdog(ends[1]);
  }
  close(ends[1]);
  socket_ = ends[0];
}

Watchdog::~Watchdog() {
  stop();
}

void Watchdog::set_deadline(pid_t group, sys::BootTime deadline) {
  if (socket_ < 0) {
    return;
  }
  const Message order{.group = group, .stops = 0, .deadline = sys::Deadline::at(deadline)};
  send(socket_, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Watchdog::stop() {
  if (const int socket = std::exchange(socket_, -1); socket >= 0) {
    const Message order{.group = 0, .stops = 1, .deadline = {}};
    send(socket, &order, sizeof(order), MSG_NOSIGNAL);
    close(socket);
  }
  if (const auto process = std::exchange(process_, -1); process > 0) {
    waitpid(process, nullptr, 0);
  }
}

}  // namespace tenure::cli
