#include "support/process.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"

// What a client does to the process that it is in, and to the children of that process.

namespace tenure::test {
namespace {

TENURE_CONTRACT(ProcessContract);

/// The port of one end of a connection; 0 if the descriptor is none.
std::uint16_t port_of(int descriptor, decltype(&::getpeername) end) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
  const bool is_there = end(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  return is_there && address.sin_family == AF_INET ? ntohs(address.sin_port) : 0;
}

bool is_connection(int descriptor) {
  return port_of(descriptor, ::getpeername) != 0;
}

/// Connections of clients in this process to the servers of this URL, which may be here, too.
std::set<int> connections_to(const std::string& url) {
  constexpr int descriptors_max = 1024;
  std::set<int> found;
  for (int descriptor = 0; descriptor < descriptors_max; ++descriptor) {
    const auto own = ":" + std::to_string(port_of(descriptor, ::getsockname));
    if (is_connection(descriptor) && !url.contains(own)) {
      found.insert(descriptor);
    }
  }
  return found;
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Exit code of a child of fork(): 0 if neither the guard nor the client works there.
int exit_code_in_child(Client& client, Guard guard) {
  if (!guard.lost().stop_requested() || guard.owns_lock()) {
    return 1;
  }
  const auto unlocked = guard.unlock();
  if (unlocked || unlocked.error() != Errc::lease_lost) {
    return 2;
  }
  const auto other = client.mutex("b").try_lock();
  if (other || other.error() != Errc::unsupported) {
    return 3;
  }
  return client.holders("a") || client.lease() || client.watch("a") ? 4 : 0;
}

// Else the child would release the lock of its parent, or read what the parent waits for.
TEST_P(ProcessContract, a_child_of_fork_does_not_hold_what_its_parent_holds) {
  auto guard = ann.mutex("a").lock().value();

  const auto child = ::fork();
  if (child == 0) {
    ::_exit(exit_code_in_child(ann, std::move(guard)));
  }

  EXPECT_EQ(status_of(child), 0);
  EXPECT_TRUE(guard.owns_lock());
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block) << "the parent has it";
  EXPECT_TRUE(guard.unlock()) << "and its connection works";
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// One that is inherited keeps a connection open when its owner is gone.
TEST_P(ProcessContract, connections_are_not_inherited) {
  if (service->url().empty() || service->url().starts_with("zookeeper:")) {
    return;  // the library opens no connection itself
  }
  const auto before = connections_to(service->url());  // those of the test itself, too
  const auto client = connect();
  auto connections = connections_to(service->url());
  std::erase_if(connections, [&](int descriptor) { return before.contains(descriptor); });
  ASSERT_FALSE(connections.empty());
  for (const int descriptor : connections) {
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0) << "by a program that is executed";
  }

  const auto child = ::fork();
  if (child == 0) {
    ::_exit(std::ranges::any_of(connections, is_connection) ? 1 : 0);
  }
  EXPECT_EQ(status_of(child), 0) << "by a child";
  EXPECT_TRUE(client.mutex("a").lock()) << "and the parent still has them";
}

#ifdef TENURE_STARVED
TEST_P(ProcessContract, a_process_without_descriptors_gets_errors) {
  const auto url = service->url().empty() ? "memory://starved" : service->url();

  EXPECT_EQ(Process({.words = {TENURE_STARVED, url}}).wait(), 0);
}
#endif

}  // namespace
}  // namespace tenure::test
