#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tenure::test {

/// Child process of a test. It ends with the test, even if the test crashes.
class Process {
 public:
  struct Command {
    std::vector<std::string> words;  ///< The program and its arguments.
    std::string user = {};  ///< User to run as if the test runs as root; empty: the same user.
    std::filesystem::path log = "/dev/null";  ///< File for the standard error.
  };

  explicit Process(const Command& command);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  /// Sends a line to its input, and reads one from its output; waits at most 30 s for that. Throws
  /// if there is none.
  void write_line(const std::string& line) const;
  [[nodiscard]] std::string hear();

  /// Stops it as a debugger or a suspended machine would; returns when it stands still.
  void pause() const;
  void resume() const;

  [[nodiscard]] bool has_ended() const;
  void signal(int number) const;
  /// Waits for its end and returns its exit code, or 128 and the signal that ended it.
  int wait();

 private:
  pid_t id_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string heard_;
};

/// An empty folder for a server's files, which belongs to `user`; gone with the test.
class ServerFolder {
 public:
  explicit ServerFolder(const std::string& user = {});
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;
  ~ServerFolder();

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tenure::test
