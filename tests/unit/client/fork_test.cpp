#include <optional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenure/client/client.hpp>

// Children of fork(). tests/contract/process_test.cpp has what every backend does.

namespace tenure::test {
namespace {

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The threads of the client do not exist in the child, which must not wait for them.
TEST(ForkedProcess, a_child_destroys_what_it_inherits) {
  std::optional client(connect("memory://forked").value());
  std::optional guard(client->mutex("a").lock().value());
  std::optional lease(client->lease().value());

  const auto child = ::fork();
  if (child == 0) {
    ::alarm(10);  // rather than wait for ever
    guard.reset();
    lease.reset();
    client.reset();
    ::_exit(0);
  }

  EXPECT_EQ(status_of(child), 0);
  EXPECT_TRUE(guard->owns_lock());
  EXPECT_TRUE(lease->is_alive());
  EXPECT_TRUE(guard->unlock());
}

#ifndef __SANITIZE_THREAD__  // which allows no thread in a child of fork()
TEST(ForkedProcess, a_child_that_connects_has_locks_of_its_own) {
  const auto client = connect("memory://forked").value();
  const auto guard = client.mutex("a").lock().value();

  const auto child = ::fork();
  if (child == 0) {
    ::alarm(10);
    const auto own = connect("memory://forked").value();
    ::_exit(own.mutex("a").try_lock() ? 0 : 1);
  }

  EXPECT_EQ(status_of(child), 0);
  EXPECT_TRUE(guard.owns_lock());
}
#endif

}  // namespace
}  // namespace tenure::test
