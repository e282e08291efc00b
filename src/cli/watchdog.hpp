#pragma once

#include <sys/types.h>

#include "sys/boot_clock.hpp"

namespace tenure::cli {

/// Watchdog process: kills a process group with SIGKILL when its deadline passes, even if this
/// process is stopped, starved or dead. A command must not outlive the lease of its lock. One
/// thread. REQUIRES: constructed before any thread, because fork() copies the calling thread only,
/// and the memory in whatever state the other threads have left it. Not thread safe.
class Watchdog {
 public:
  /// Forks. If that fails, there is no watchdog, and only the Supervisor enforces the deadline.
  Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  /// Stops the process.
  ~Watchdog();

  /// Kills this group at `deadline`, or when this process ends. Replaces an earlier deadline. Never
  /// blocks. A message that does not fit into the socket buffer is dropped; the earlier deadline
  /// then stays in force.
  void set_deadline(pid_t group, sys::BootTime deadline);
  /// Stops the process without killing the group. REQUIRES: the leader of the group is not reaped
  /// yet, because its id may be reused after that.
  void stop();

 private:
  /// Process id of the watchdog; -1 after stop(), or if fork() failed.
  pid_t process_ = -1;
  /// Socket to the watchdog. Its end of file reports the end of this process.
  int socket_ = -1;
};

}  // namespace tenure::cli
