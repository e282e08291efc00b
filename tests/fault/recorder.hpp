#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include <tenure/client/watch.hpp>

#include "history/event.hpp"

namespace tenure::fault {

/// Microseconds of CLOCK_BOOTTIME, the common clock of all processes of a history.
[[nodiscard]] history::Time now();
/// Converts a steady_clock time of the client library to the clock of the history.
[[nodiscard]] history::Time history_time(std::chrono::steady_clock::time_point when);

/// Appends events to the history file, one line each, unbuffered: no event is lost when the process
/// is killed. Thread safe.
class Recorder {
 public:
  /// Ends the process if the file cannot be written: a run without its history verifies nothing.
  explicit Recorder(const std::string& path);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  void write(const history::Event& event);
  /// Records that the lease of a request ended while it waited (no token) or held. The library
  /// retries by itself if the grant had not arrived, so the history shows one request; run.py needs
  /// this to excuse the first attempt. Written to a separate file, since no client observed it.
  void note_ended(const LockEvent& event);

 private:
  void append(int file, const std::string& line);

  std::mutex mutex_;  ///< Serialises writes, so that lines do not interleave.
  int file_ = -1;
  int ended_ = -1;
};

}  // namespace tenure::fault
