#include <chrono>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenure/client/client.hpp>

#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 100ms;

/// Acquires a lock, stops the process, and checks the lock after SIGCONT. 0: success.
int stop_while_holding() {
  const auto client = connect("memory://").value();
  auto guard = client.mutex("a", {.ttl = ttl}).lock().value();
  auto other = client.mutex("b", {.ttl = ttl}).lock().value();
  raise(SIGSTOP);
  if (!guard.lost().stop_requested()) {
    return 1;
  }
  if (guard.owns_lock()) {
    return 2;
  }
  const auto unlocked = other.unlock();
  return !unlocked && unlocked.error() == Errc::lease_lost ? 0 : 3;
}

// 000-B7: a state that only a thread updates would still be `held` when the process resumes.
TEST(StoppedProcess, a_resumed_process_finds_its_locks_lost_at_once) {
  const auto child = fork();
  if (child == 0) {
    _exit(stop_while_holding());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));

  const auto over = std::chrono::steady_clock::now() + ttl + 10ms;
  ASSERT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > over; }));
  ASSERT_EQ(kill(child, SIGCONT), 0);

  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tenure::test
