#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "cli/signals.hpp"

namespace tenure::cli {

/// Files that were open when we were started, other than the standard ones: they are the child's,
/// and nothing else that we open is. REQUIRES: made first of all.
class InheritedFiles {
 public:
  InheritedFiles();
  [[nodiscard]] const std::vector<unsigned>& numbers() const noexcept { return numbers_; }

 private:
  std::vector<unsigned> numbers_;  ///< Ascending.
};

/// The terminal, if we are in its foreground and nobody else is with us: what reads from it then
/// has to be the child.
class Foreground {
 public:
  Foreground();
  [[nodiscard]] bool is_ours() const noexcept { return is_ours_; }
  /// To this group, which may be ours.
  void give_to(pid_t group) const;

 private:
  bool is_ours_ = false;
};

struct Program {
  std::vector<std::string> words{};        ///< The command and its arguments.
  std::vector<std::string> environment{};  ///< NAME=value, besides what we have.
};

/// A program in a process group of its own, which ends if we do.
class Child {
 public:
  /// The error is an errno, of a program that cannot be executed. `before` gets the number of the
  /// group, and the program begins when it returns; 0 if it did not begin, before that number may
  /// be somebody else's.
  [[nodiscard]] static std::expected<Child, int> start(const Program& program,
                                                       const InheritedFiles& files,
                                                       const Signals& signals,
                                                       const Foreground& foreground,
                                                       const std::function<void(pid_t)>& before);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// Also of its group.
  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// Readable when it has ended.
  [[nodiscard]] int file() const noexcept { return file_; }
  /// To all of its group.
  void signal(int number) const;
  /// The signal that stopped it since we last asked, or 0.
  [[nodiscard]] int stopped_by() const;
  /// Waits for its end, and does not reap it: its number stays its own.
  void await() const;
  /// Reaps it. Its exit code, or 128 and the signal that ended it.
  [[nodiscard]] int reap();

 private:
  explicit Child(pid_t id);

  pid_t id_;
  int file_;
};

}  // namespace tenure::cli
