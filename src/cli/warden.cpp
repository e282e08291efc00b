#include "cli/warden.hpp"

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

/// What is said to it.
struct Order {
  std::int32_t group = 0;
  std::int32_t is_dismissed = 0;
  sys::Deadline deadline{};
};

void arm(int timer, const sys::Deadline& deadline) {
  itimerspec when{};
  when.it_value = deadline.look_at();
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

/// Whether the deadline has come. If not, the timer is set again: it may fire early.
bool is_over(int timer, const sys::Deadline& deadline) {
  if (deadline.left() <= std::chrono::nanoseconds::zero()) {
    return true;
  }
  arm(timer, deadline);
  return false;
}

/// The life of the process: only calls that are safe after a fork among threads.
[[noreturn]] void stand_guard(int line) {
  // No signal of a terminal arrives here, and nobody waits for our end of a pipe.
  setsid();
  prctl(PR_SET_NAME, "tenure-warden");
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(nowhere, number);
  }
  dup2(line, 3);
  close_range(4, ~0U, 0);
  constexpr int orders = 3;
  const int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  std::array<pollfd, 2> wakers{{{.fd = orders, .events = POLLIN, .revents = 0},
                                {.fd = timer, .events = POLLIN, .revents = 0}}};
  Order last;
  while (true) {
    poll(wakers.data(), wakers.size(), -1);
    // Orders first: the last one counts.
    if (wakers[0].revents != 0) {
      Order next;
      const auto count = recv(orders, &next, sizeof(next), 0);
      if (count == sizeof(next)) {
        last = next;
        if (last.is_dismissed != 0) {
          _exit(0);
        }
        arm(timer, last.deadline);
        continue;
      }
      if (count < 0 && errno == EINTR) {
        continue;
      }
      break;  // Whoever gave orders is dead.
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

Warden::Warden() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return;
  }
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    stand_guard(ends[1]);
  }
  close(ends[1]);
  line_ = ends[0];
}

Warden::~Warden() {
  dismiss();
}

void Warden::guard(pid_t group, sys::BootTime deadline) {
  if (line_ < 0) {
    return;
  }
  const Order order{.group = group, .is_dismissed = 0, .deadline = sys::Deadline::at(deadline)};
  send(line_, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Warden::dismiss() {
  if (const int line = std::exchange(line_, -1); line >= 0) {
    const Order order{.group = 0, .is_dismissed = 1, .deadline = {}};
    send(line, &order, sizeof(order), MSG_NOSIGNAL);
    close(line);
  }
  if (const auto process = std::exchange(process_, -1); process > 0) {
    waitpid(process, nullptr, 0);
  }
}

}  // namespace tenure::cli
