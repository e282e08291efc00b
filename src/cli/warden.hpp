#pragma once

#include <sys/types.h>

#include "sys/boot_clock.hpp"

namespace tenure::cli {

/// A process of its own that kills a group of processes when the time is up which it was told last.
/// It does so also if we are stopped, starved or dead: what runs under a lock must not outlive its
/// lease because nobody was there to end it.
class Warden {
 public:
  /// Forks. Without a process to spare there is none, and the caller is all there is.
  Warden();
  Warden(const Warden&) = delete;
  Warden& operator=(const Warden&) = delete;
  /// Dismisses it.
  ~Warden();

  /// From now on this group must not outlive `deadline`; nor us.
  void guard(pid_t group, sys::BootTime deadline);
  /// It ends. REQUIRES: before the leader of the group is reaped, since its number may be somebody
  /// else's after that.
  void dismiss();

 private:
  pid_t process_ = -1;
  int line_ = -1;
};

}  // namespace tenure::cli
