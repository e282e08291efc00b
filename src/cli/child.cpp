#include "cli/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exit_code.hpp"

namespace tenure::cli {
namespace {

/// The command inherits stdin, stdout and stderr in any case.
constexpr unsigned first_other_file = STDERR_FILENO + 1;

/// Marks all other descriptors close-on-exec. Runs in the child between fork and exec. Marked
/// instead of closed, because the descriptors of the pipes are still needed until exec. REQUIRES:
/// `kept` is sorted.
void close_others(const std::vector<unsigned>& kept) {
  unsigned next = first_other_file;
  for (const auto number : kept) {
    if (number > next) {
      close_range(next, number - 1, CLOSE_RANGE_CLOEXEC);
    }
    next = number + 1;
  }
  close_range(next, ~0U, CLOSE_RANGE_CLOEXEC);
}

/// Argument array for exec, which points into `words`. Valid as long as `words` is neither changed
/// nor destroyed.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> made;
  for (auto& word : words) {
    made.push_back(word.data());
  }
  made.push_back(nullptr);
  return made;
}

/// Environment of this process with variables added or replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  const auto name_of = [](std::string_view line) { return line.substr(0, line.find('=')); };
  std::vector<std::string> all = added;
  for (char** line = environ; *line != nullptr; ++line) {
    const bool is_replaced = std::ranges::any_of(
        added, [&](const std::string& one) { return name_of(one) == name_of(*line); });
    if (!is_replaced) {
      all.emplace_back(*line);
    }
  }
  return all;
}

/// Close-on-exec pipe. One carries the start byte to the child, another one the errno of exec back.
/// Exec closes both ends in the child.
class Pipe {
 public:
  Pipe() { is_open_ = pipe2(ends_.data(), O_CLOEXEC) == 0; }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_in();
    if (is_open_) {
      close(out());
    }
  }

  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  [[nodiscard]] int out() const noexcept { return ends_[0]; }
  [[nodiscard]] int in() const noexcept { return ends_[1]; }
  void close_in() {
    if (const int end = std::exchange(ends_[1], -1); end >= 0) {
      close(end);
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool is_open_ = false;
};

/// Data for the code between fork and exec, which must not allocate memory.
struct Launch {
  std::vector<char*> words;
  std::vector<char*> environment;
  const std::vector<unsigned>& files;
  const sigset_t& mask;
  bool takes_terminal;
  pid_t parent;
  int start;
  int exec_errors;
};

/// Waits for the start byte. False if the parent has ended. Runs in the child. A signal without
/// effect may interrupt the read, which is then repeated.
bool wait_for_start(int file) {
  char byte = 0;
  ssize_t count = 0;
  do {
    count = read(file, &byte, sizeof(byte));
  } while (count < 0 && errno == EINTR);
  // 0 bytes are the end of the file: the parent has ended, which closed its write end.
  return count == sizeof(byte);
}

/// Code of the child up to exec. It must not acquire a mutex: another thread may have held it at
/// the time of the fork, and that thread does not exist in the child.
[[noreturn]] void exec_child(const Launch& launch) {
  // In child and parent, because either may run first: the group must exist before the terminal is
  // passed to it, and before the parent sends the first signal.
  setpgid(0, 0);
  if (launch.takes_terminal) {
    tcsetpgrp(STDIN_FILENO, getpid());
  }
  // In addition to the watchdog: immediate, but for this process only.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl(); then no death signal comes, and the parent id differs.
  if (getppid() == launch.parent && wait_for_start(launch.start)) {
    // The command starts with the mask that this process was started with. The signals are blocked
    // up to here, so that none is handled in the middle of the setup.
    pthread_sigmask(SIG_SETMASK, &launch.mask, nullptr);
    close_others(launch.files);
    execvpe(launch.words.front(), launch.words.data(), launch.environment.data());
  }
  // Reached only if exec failed, or if the parent has ended and reads nothing.
  const int why = errno;
  [[maybe_unused]] const auto written = ::write(launch.exec_errors, &why, sizeof(why));
  _exit(code(ExitCode::cannot_execute));
}

}  // namespace

InheritedFiles::InheritedFiles() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const auto name = entry.path().filename().string();
    unsigned number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    // Only what an exec would pass on: the caller of this process has decided that. The descriptor
    // of this iteration is close-on-exec and therefore skipped.
    const int flags = fcntl(static_cast<int>(number), F_GETFD);
    if (number >= first_other_file && flags >= 0 && (flags & FD_CLOEXEC) == 0) {
      numbers_.push_back(number);
    }
  }
  std::ranges::sort(numbers_);
}

Foreground::Foreground() {
  // In a pipeline, other processes of the group may use the terminal.
  is_ours_ = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 &&
             tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void Foreground::give_to(pid_t group) const {
  if (is_ours_) {
    tcsetpgrp(STDIN_FILENO, group);
  }
}

std::expected<Child, int> Child::start(const Program& program, const InheritedFiles& files,
                                       const Signals& signals, const Foreground& foreground,
                                       const std::function<void(pid_t)>& before) {
  // Everything that allocates memory happens before the fork.
  auto words = program.words;
  auto environment = environment_with(program.environment);
  Pipe start;
  Pipe exec_errors;
  if (!start.is_open() || !exec_errors.is_open()) {
    return std::unexpected(errno);
  }
  const Launch launch{.words = pointers(words),
                      .environment = pointers(environment),
                      .files = files.numbers(),
                      .mask = signals.mask_before(),
                      .takes_terminal = foreground.is_ours(),
                      .parent = getpid(),
                      .start = start.out(),
                      .exec_errors = exec_errors.in()};
  const auto id = fork();
  if (id == 0) {
    // The child must not hold the write end: the end of the parent would then not be an end of
    // file.
    start.close_in();
    exec_child(launch);
  }
  int why = id < 0 ? errno : 0;
  // The write end of the parent. A successful exec closes that of the child, and the read below
  // returns 0 bytes, which leaves `why` at 0.
  exec_errors.close_in();
  if (id > 0) {
    setpgid(id, id);  // Parent and child both set it; the first one wins.
    // Before the start byte: the deadline of the watchdog is set when the program begins.
    before(id);
    [[maybe_unused]] const auto written = ::write(start.in(), "", 1);
    while (read(exec_errors.out(), &why, sizeof(why)) < 0 && errno == EINTR) {
    }
  }
  if (why == 0) {
    return Child(id);
  }
  if (id > 0) {
    // Before the id is reaped, so that the watchdog never signals a process with a reused id.
    before(0);
    waitpid(id, nullptr, 0);
    foreground.give_to(getpgrp());
  }
  return std::unexpected(why);
}

// A pidfd refers to this process only, and can be polled together with signals and timers.
Child::Child(pid_t id) : id_(id), file_(static_cast<int>(syscall(SYS_pidfd_open, id, 0))) {}

Child::Child(Child&& other) noexcept
    : id_(std::exchange(other.id_, -1)), file_(std::exchange(other.file_, -1)) {}

Child::~Child() {
  if (file_ >= 0) {
    close(file_);
  }
}

void Child::signal(int number) const {
  // A negative id addresses the process group, so that children of the command get the signal too.
  kill(-id_, number);
}

int Child::stopped_by() const {
  siginfo_t found{};
  if (waitid(P_PID, static_cast<id_t>(id_), &found, WSTOPPED | WNOHANG) == 0 &&
      found.si_pid == id_ && found.si_code == CLD_STOPPED) {
    return found.si_status;
  }
  return 0;
}

// WNOWAIT leaves the process as a zombie, which keeps its id reserved.
void Child::await() const {
  siginfo_t found{};
  while (waitid(P_PID, static_cast<id_t>(id_), &found, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
}

int Child::reap() {
  int status = 0;
  while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? code(ExitCode::signalled) + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tenure::cli
