#include "support/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tenure::test {
namespace {

constexpr int timeout_milliseconds = 30'000;

[[noreturn]] void give_up(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// The account to change to, or nothing if that is not possible or not wanted.
const passwd* account(const std::string& user) {
  if (user.empty() || ::geteuid() != 0) {
    return nullptr;
  }
  const passwd* found = ::getpwnam(user.c_str());
  if (found == nullptr) {
    throw std::runtime_error("there is no user " + user);
  }
  return found;
}

/// The rest of the child's life.
[[noreturn]] void become(const std::vector<char*>& words, const passwd* who) {
  const bool is_changed =
      who == nullptr ||
      (::setgroups(0, nullptr) == 0 && ::setgid(who->pw_gid) == 0 && ::setuid(who->pw_uid) == 0);
  // After setuid, which would forget it. SIGQUIT ends a PostgreSQL with all its processes.
  if (is_changed && ::prctl(PR_SET_PDEATHSIG, SIGQUIT) == 0) {
    ::execvp(words.front(), words.data());
  }
  ::_exit(127);
}

}  // namespace

Process::Process(const Command& command) {
  // All that allocates comes before fork().
  std::vector<std::string> texts = command.words;
  std::vector<char*> words;
  for (auto& text : texts) {
    words.push_back(text.data());
  }
  words.push_back(nullptr);
  const passwd* who = account(command.user);

  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) {
    give_up("pipe");
  }
  const int log = ::open(command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  id_ = ::fork();
  if (id_ < 0) {
    give_up("fork");
  }
  if (id_ == 0) {
    ::dup2(to_child[0], STDIN_FILENO);
    ::dup2(from_child[1], STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    become(words, who);
  }
  ::close(to_child[0]);
  ::close(from_child[1]);
  ::close(log);
  input_ = to_child[1];
  output_ = from_child[0];
}

Process::~Process() {
  if (id_ > 0) {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  ::close(input_);
  ::close(output_);
}

void Process::write_line(const std::string& line) const {
  const auto text = line + '\n';
  if (::write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    give_up("cannot write: " + line);
  }
}

std::string Process::hear() {
  while (!heard_.contains('\n')) {
    pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
    char bytes[512];
    if (::poll(&ready, 1, timeout_milliseconds) != 1) {
      throw std::runtime_error("a process is silent");
    }
    const auto count = ::read(output_, bytes, sizeof bytes);
    if (count <= 0) {
      throw std::runtime_error("a process has ended without an answer");
    }
    heard_.append(bytes, static_cast<std::size_t>(count));
  }
  const auto end = heard_.find('\n');
  auto line = heard_.substr(0, end);
  heard_.erase(0, end + 1);
  return line;
}

void Process::pause() const {
  signal(SIGSTOP);
  int status = 0;
  if (::waitpid(id_, &status, WUNTRACED) != id_ || !WIFSTOPPED(status)) {
    throw std::runtime_error("a process could not be paused");
  }
}

void Process::resume() const {
  signal(SIGCONT);
}

bool Process::has_ended() const {
  siginfo_t seen{};
  return ::waitid(P_PID, static_cast<id_t>(id_), &seen, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         seen.si_pid == id_;
}

void Process::signal(int number) const {
  if (id_ <= 0 || ::kill(id_, number) != 0) {
    give_up("signal " + std::to_string(number));
  }
}

int Process::wait() {
  int status = 0;
  if (::waitpid(id_, &status, 0) != id_) {
    give_up("wait");
  }
  id_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

ServerFolder::ServerFolder(const std::string& user) {
  // A short path: a socket's has 107 bytes at most. In memory where that is possible.
  std::string name =
      ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/tenure-XXXXXX" : "/tmp/tenure-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    give_up("a folder for a server");
  }
  path_ = name;
  const passwd* who = account(user);
  if (who != nullptr && ::chown(path_.c_str(), who->pw_uid, who->pw_gid) != 0) {
    give_up("a folder for " + user);
  }
}

ServerFolder::~ServerFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tenure::test
