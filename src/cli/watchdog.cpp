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

/// Message to the watchdog process. Both processes run the same program, so the bytes of the struct
/// are the format.
struct Message {
  /// Process group to kill; 0: none yet.
  std::int32_t group = 0;
  /// Not 0: end without killing.
  std::int32_t stops = 0;
  /// On both clocks, because times of the boot clock of two processes are not comparable.
  sys::Deadline deadline{};
};

/// Sets the timer to the next time at which the deadline has to be checked.
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
  // A reader of a pipe from this process would otherwise wait for the watchdog, too.
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(nowhere, number);
  }
  // At a fixed number, so that one close_range() closes every other descriptor.
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
      // SOCK_SEQPACKET keeps message boundaries, so a message is read whole or not at all.
      const auto count = recv(channel, &next, sizeof(next), 0);
      if (count == sizeof(next)) {
        last = next;
        if (last.stops != 0) {
          // Not exit(): handlers and destructors belong to the parent.
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
  // Without a command there is nothing to kill. Neither 0 nor 1 may reach kill(): -0 is the own
  // group, and -1 every process of the user.
  if (last.group > 1) {
    kill(-last.group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

Watchdog::Watchdog() {
  std::array<int, 2> ends{};
  // Close-on-exec: the command must not inherit the socket, which would keep it open.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return;
  }
  process_ = fork();
  if (process_ == 0) {
    // With this end open in the child, the socket would not report the end of the parent.
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
  // MSG_NOSIGNAL: the death of the watchdog must not kill this process by SIGPIPE.
  send(socket_, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Watchdog::stop() {
  if (const int socket = std::exchange(socket_, -1); socket >= 0) {
    const Message order{.group = 0, .stops = 1, .deadline = {}};
    // Without MSG_DONTWAIT: this message must arrive, or the close below would kill the group.
    send(socket, &order, sizeof(order), MSG_NOSIGNAL);
    close(socket);
  }
  if (const auto process = std::exchange(process_, -1); process > 0) {
    // From here on the group cannot be signalled, and its leader may be reaped.
    waitpid(process, nullptr, 0);
  }
}

}  // namespace tenure::cli
