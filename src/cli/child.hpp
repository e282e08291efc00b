#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "cli/signals.hpp"

namespace tenure::cli {

/// File descriptors that this process inherited, except the standard ones. The child inherits them,
/// and no others: a descriptor that this process has opened itself, such as a connection, must not
/// stay open in the command, because the connection would outlive this process. REQUIRES:
/// constructed before any other file is opened.
class InheritedFiles {
 public:
  InheritedFiles();
  [[nodiscard]] const std::vector<unsigned>& numbers() const noexcept { return numbers_; }

 private:
  std::vector<unsigned> numbers_;  ///< Ascending.
};

/// Control of the terminal, if this process is alone in its foreground. The child then becomes the
/// foreground process group. REQUIRES: constructed before the child starts, while the group of this
/// process still owns the terminal.
class Foreground {
 public:
  Foreground();
  [[nodiscard]] bool is_ours() const noexcept { return is_ours_; }
  /// Makes this process group the foreground group. No effect if is_ours() is false.
  void give_to(pid_t group) const;

 private:
  bool is_ours_ = false;
};

/// Command to run. The executable is searched in PATH.
struct Program {
  std::vector<std::string> words{};        ///< Command and arguments.
  std::vector<std::string> environment{};  ///< Variables to add or replace, as NAME=value.
};

/// Child process in a process group of its own. It is killed if this process ends.
class Child {
 public:
  /// Starts the program. The error is the errno of exec. `before` is called with the process group
  /// before the program starts, and with 0 if it cannot be started, before the id can be reused.
  /// The child waits for `before` before it runs any code of the program: what `before` arranges,
  /// such as a deadline of the watchdog, is in effect from its first instruction.
  [[nodiscard]] static std::expected<Child, int> start(const Program& program,
                                                       const InheritedFiles& files,
                                                       const Signals& signals,
                                                       const Foreground& foreground,
                                                       const std::function<void(pid_t)>& before);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// Process id and process group id.
  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// File descriptor that is readable when the process has ended.
  [[nodiscard]] int file() const noexcept { return file_; }
  /// Sends a signal to the process group. REQUIRES: not reaped, because the id may be reused after
  /// that.
  void signal(int number) const;
  /// Signal that stopped it since the last call, or 0. Consumes the notification: the next call
  /// returns 0 until the child is stopped again.
  [[nodiscard]] int stopped_by() const;
  /// Waits for its end without reaping it, so that its id is not reused.
  void await() const;
  /// Reaps it. Returns its exit code, or 128 + the signal that terminated it. REQUIRES: called
  /// once, last.
  [[nodiscard]] int reap();

 private:
  explicit Child(pid_t id);

  /// Process id; -1 after a move.
  pid_t id_;
  /// File descriptor of the process (pidfd), for poll(); -1 after a move.
  int file_;
};

}  // namespace tenure::cli
