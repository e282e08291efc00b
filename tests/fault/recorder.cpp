#include "fault/recorder.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "history/lines.hpp"

namespace tenure::fault {
namespace {

[[noreturn]] void fail_fatally(const std::string& what) {
  std::fprintf(stderr, "tenure_workload: %s: %s\n", what.c_str(), std::strerror(errno));
  std::_Exit(1);
}

int open_to_append(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    fail_fatally(path);
  }
  return file;
}

}  // namespace

history::Time now() {
  timespec time{};
  // Bypasses libc, whose clocks preload.c manipulates.
  syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &time);
  return history::Time{time.tv_sec} * 1'000'000 + time.tv_nsec / 1'000;
}

history::Time history_time(std::chrono::steady_clock::time_point when) {
  // `boot` is read first: a pause in between makes the result earlier, so validity is never
  // overstated.
  const auto boot = now();
  const auto left = when - std::chrono::steady_clock::now();
  return boot + std::chrono::duration_cast<std::chrono::microseconds>(left).count();
}

Recorder::Recorder(const std::string& path)
    : file_(open_to_append(path)), ended_(open_to_append(path + ".ended")) {}

Recorder::~Recorder() {
  ::close(file_);
  ::close(ended_);
}

void Recorder::write(const history::Event& event) {
  append(file_, history::to_line(event) + "\n");
}

void Recorder::note_ended(const LockEvent& event) {
  append(ended_, std::to_string(now()) + " " + std::string(to_string(event.type)) + " " +
                     event.metadata + " " + std::to_string(event.token.get()) + "\n");
}

void Recorder::append(int file, const std::string& line) {
  const std::lock_guard guard(mutex_);
  if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail_fatally("cannot write the history");
  }
}

}  // namespace tenure::fault
