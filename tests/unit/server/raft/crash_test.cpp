#include <cstdint>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/raft/client.hpp"

namespace tenure::server::raft {
namespace {

using core::LeaseId;
using test::RaftClient;

/// Record that the child writes for each acknowledged grant.
struct Acknowledged {
  std::uint64_t lock;
  std::uint64_t token;
};

// Acquires one lock after the other and writes a record for each grant, until it is killed.
[[noreturn]] void acquire_for_ever(const NodeOptions& options, std::uint64_t first, int pipe) {
  auto node = Node::open(options);
  if (!node) {
    ::_exit(2);
  }
  (*node)->start();
  RaftClient client(**node);
  client.use_requests_after(first);
  static_cast<void>(client.grant_lease(LeaseId{1}));
  for (std::uint64_t lock = first;; ++lock) {
    const Acknowledged acknowledged{.lock = lock,
                                    .token = client.token(LeaseId{1}, std::to_string(lock))};
    if (::write(pipe, &acknowledged, sizeof acknowledged) != sizeof acknowledged) {
      ::_exit(3);
    }
  }
}

// 002.108: a process that is killed at any moment has lost nothing that it acknowledged.
TEST(RaftCrash, repeated_kills_lose_no_acknowledged_command) {
  const test::TemporaryFolder folder;
  test::Reports reports;
  auto options = test::small_node(folder.path(), reports);
  options.snapshot_log_bytes = 20'000;
  options.snapshot_factor = 0;
  std::map<std::uint64_t, std::uint64_t> tokens;
  std::uint64_t highest = 0;
  std::uint64_t next_lock = 1;

  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      acquire_for_ever(options, next_lock, ends[1]);
    }
    ::close(ends[1]);
    // Kills after a different number of replies in each round, during the next command.
    const int answers = 10 + round * 17 % 90;
    Acknowledged acknowledged{};
    int received = 0;
    while (::read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
      EXPECT_GT(acknowledged.token, highest) << "a token was granted twice";
      highest = acknowledged.token;
      tokens[acknowledged.lock] = acknowledged.token;
      if (++received == answers) {
        ::kill(child, SIGKILL);
      }
    }
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round << ": status " << status;
    next_lock = tokens.rbegin()->first + 10;
  }

  const auto node = test::started(options);
  ASSERT_NE(node, nullptr);
  RaftClient(*node).ask([&](const View& view) {
    for (const auto& [lock, token] : tokens) {
      const auto* hold = view.state.locks.find(core::FencingToken{token});
      EXPECT_TRUE(hold != nullptr && hold->items.front().name == std::to_string(lock)) << lock;
    }
    return 0;
  });
  EXPECT_GT(tokens.size(), 800U);
}

}  // namespace
}  // namespace tenure::server::raft
