#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include <tenure/client/watch.hpp>

#include "history/event.hpp"

namespace tenure::fault {

/// Microseconds of CLOCK_BOOTTIME: the one clock of a history of real processes on one machine.
[[nodiscard]] history::Time now();
/// The same for what the client library tells in steady time.
[[nodiscard]] history::Time at(std::chrono::steady_clock::time_point when);

/// Writes what happens to a file, a line each, at once: whoever kills us takes nothing back.
/// Thread safe.
class Recorder {
 public:
  /// Ends the process if the file cannot be written: a run without its history proves nothing.
  explicit Recorder(const std::string& path);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  void write(const history::Event& event);
  /// The lease of a request ended while it waited (no token), or while it held. The library asks
  /// again by itself if the grant had not arrived, so for the history it is still the same request;
  /// the driver has to know. Goes to a file of its own, since no client saw it.
  void note_ended(const LockEvent& event);

 private:
  void append(int file, const std::string& line);

  std::mutex mutex_;  ///< Lines are whole.
  int file_ = -1;
  int ended_ = -1;
};

}  // namespace tenure::fault
