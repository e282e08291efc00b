#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redlock/servers.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Five real servers with injected faults.
class RedlockFaults : public ::testing::Test {
 protected:
  void restart_empty(std::size_t server) {
    servers[server].kill();
    servers[server].start();
  }
  /// Renews until this many servers have voted; a client needs a moment to reconnect.
  [[nodiscard]] static bool extends_to(RedlockServers& servers, Guard& guard, std::size_t votes) {
    return eventually([&] { return guard.extend() && servers.votes("a") == votes; });
  }

  RedlockServers servers;
  Client ann = connect(servers.url(), {.owner = "ann", .request_timeout = 5s}).value();
  Client bob = connect(servers.url(), {.owner = "bob", .request_timeout = 5s}).value();
};

// 003.019, 003.021, 003.003
TEST_F(RedlockFaults, all_servers_vote_for_the_holder) {
  auto guard = ann.mutex("a").lock().value();

  EXPECT_TRUE(eventually([&] { return servers.votes("a") == 5; }));
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_EQ(bob.holders("a").value().front().owner, "ann");
  EXPECT_EQ(bob.holders("a").value().front().token, guard.token());
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(eventually([&] { return servers.votes("a") == 0; }));
}

// 003.033, 003.002
TEST_F(RedlockFaults, a_dead_minority_does_not_matter) {
  auto before = ann.mutex("b").lock().value();
  servers[0].kill();
  servers[4].kill();

  auto guard = ann.mutex("a").lock().value();

  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(before.extend());
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(before.unlock());
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// 003.033: operations fail, waits included; later the client recovers by itself.
TEST_F(RedlockFaults, a_dead_majority_is_unavailable_until_it_returns) {
  const auto hasty = connect(servers.url("?restart_wait=0s"), {.request_timeout = 300ms}).value();
  auto guard = hasty.mutex("b", {.ttl = 60s}).lock().value();
  for (const std::size_t server : {0U, 1U, 2U}) {
    servers[server].kill();
  }

  const auto refused = hasty.mutex("a").try_lock();
  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_NE(refused.error().detail.find("no quorum of 3 of 5"), std::string::npos)
      << refused.error().detail;
  EXPECT_EQ(hasty.mutex("a").lock().error(), Errc::unavailable);
  EXPECT_EQ(guard.extend().error(), Errc::unavailable);
  EXPECT_TRUE(guard.owns_lock()) << "a missing reply is not a loss";
  EXPECT_FALSE(hasty.is_connected());
  EXPECT_EQ(servers[3].command({"EXISTS", "{tenure:a}:w"}), "0");
  EXPECT_EQ(servers.vote_of(3, "a"), "");

  servers[1].start();

  EXPECT_TRUE(eventually([&] { return hasty.mutex("a").try_lock().has_value(); }));
}

// 003.033, 003-B6
TEST_F(RedlockFaults, a_hung_server_delays_no_operation) {
  servers[2].pause();
  const auto began = steady_clock::now();

  for (int n = 0; n < 5; ++n) {
    auto guard = ann.mutex("a").lock();
    ASSERT_TRUE(guard);
    EXPECT_TRUE(guard->extend());
    EXPECT_TRUE(guard->unlock());
  }

  EXPECT_LT(steady_clock::now() - began, 3s) << "3 s is the timeout of one reply";
  servers[2].resume();
}

// 003-B9, 003.035: commands that it receives late have no effect, in any order.
TEST_F(RedlockFaults, a_resumed_server_ignores_outdated_votes) {
  const auto hasty =
      connect(servers.url("?restart_wait=0s&node_timeout=20ms"), {.request_timeout = 300ms})
          .value();
  servers[2].pause();
  for (int n = 0; n < 10; ++n) {
    EXPECT_TRUE(hasty.mutex("a" + std::to_string(n)).lock().value().unlock());
  }

  servers[2].resume();

  auto guard = hasty.mutex("z").lock().value();
  EXPECT_TRUE(eventually([&] { return guard.extend() && servers.vote_of(2, "z") != ""; }));
  for (int n = 0; n < 10; ++n) {
    EXPECT_EQ(servers.vote_of(2, "a" + std::to_string(n)), "");
  }
}

// 003.034, 003-B13
TEST_F(RedlockFaults, a_renewal_restores_the_vote_of_an_emptied_server) {
  auto guard = ann.mutex("a").lock().value();
  ASSERT_TRUE(eventually([&] { return servers.votes("a") == 5; }));

  // In turn, more than a majority.
  for (const std::size_t server : {0U, 1U, 2U, 3U}) {
    restart_empty(server);
    EXPECT_TRUE(extends_to(servers, guard, 5));
  }

  EXPECT_TRUE(guard.owns_lock());
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.unlock());
}

// 003.036: and no vote is restored, because another client may hold the lock by now.
TEST_F(RedlockFaults, a_lock_forgotten_by_a_majority_is_lost_and_not_reacquired) {
  // Not renewed in between, however long the servers take to start: a renewal would restore the
  // votes.
  auto guard = ann.mutex("a", {.ttl = 10min}).lock().value();
  const auto lost = guard.lost();
  // No command is in flight that would be sent again.
  ASSERT_TRUE(eventually([&] { return servers.votes("a") == 5; }));
  for (const std::size_t server : {0U, 1U, 2U}) {
    restart_empty(server);
  }

  EXPECT_TRUE(eventually([&] {
    const auto extended = guard.extend();
    return !extended && extended.error() == Errc::lease_lost;
  }));

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_EQ(servers.vote_of(0, "a"), "");
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
  EXPECT_TRUE(eventually([&] { return servers.votes("a") == 0; }));
}

// 003.034, 003-B14: servers that lost ann's votes must not give them to bob.
TEST_F(RedlockFaults, a_restarted_server_has_no_vote_for_one_ttl) {
  const auto careful = connect(servers.url("?node_timeout=3s"), {.request_timeout = 10s}).value();
  const auto young = careful.mutex("b", {.ttl = 60s}).try_lock();
  EXPECT_EQ(young.error(), Errc::unavailable);
  EXPECT_NE(young.error().detail.find("started too recently to vote"), std::string::npos)
      << young.error().detail;
  // The withdrawal is not waited for.
  EXPECT_TRUE(eventually([&] { return servers.votes("b") == 0; }));

  // lock() waits until the servers may vote.
  auto guard = careful.mutex("a", {.ttl = 1s}).lock().value();
  EXPECT_TRUE(guard.unlock());
  // Not renewed: renewals would restore the votes of the servers that start slowly.
  auto held = ann.mutex("a", {.ttl = 1s, .renewals_per_ttl = 0}).lock().value();
  const auto restarted = steady_clock::now();
  for (const std::size_t server : {0U, 1U, 2U}) {
    restart_empty(server);
  }
  const auto next = careful.mutex("a", {.ttl = 1s}).lock();

  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_GE(steady_clock::now() - restarted, 1s);
  EXPECT_FALSE(held.owns_lock()) << "the loss was detected before the next grant";
}

// 003.023, 003-B8, 003.035
TEST_F(RedlockFaults, a_cancelled_wait_leaves_nothing_on_any_server) {
  auto guard = ann.mutex("a").lock().value();
  ASSERT_TRUE(eventually([&] { return servers.votes("a") == 5; }));
  const auto mine = servers.vote_of(0, "a");
  std::stop_source hurry;
  std::optional<Errc> end;
  {
    const std::jthread waiter([&] {
      const auto refused = bob.mutex("a").lock(hurry.get_token());
      end = refused ? std::nullopt : std::optional(refused.error().code);
    });
    ASSERT_TRUE(eventually([&] { return servers[4].command({"EXISTS", "{tenure:a}:w"}) == "1"; }));
    hurry.request_stop();
  }

  EXPECT_EQ(end, Errc::cancelled);
  for (std::size_t server = 0; server < servers.size(); ++server) {
    EXPECT_EQ(servers.vote_of(server, "a"), mine);
    EXPECT_TRUE(
        eventually([&] { return servers[server].command({"EXISTS", "{tenure:a}:w"}) == "0"; }));
  }
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(eventually([&] { return servers.votes("a") == 0; }));
}

// 003.022, 003.035: three of five votes belong to another client: two are not a quorum, and both
// are withdrawn.
TEST_F(RedlockFaults, a_failed_attempt_is_withdrawn_on_all_servers) {
  for (const std::size_t server : {1U, 2U, 3U}) {
    servers[server].command(
        {"SET", "{tenure:a}", "R ffff.1 60000 0 1 - x other\n", "PX", "120000"});
  }

  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);

  EXPECT_TRUE(eventually([&] { return servers.votes("a") == 3; }));
  EXPECT_EQ(servers.vote_of(0, "a"), "");
  EXPECT_EQ(servers.vote_of(4, "a"), "");
}

// A server with a full memory, or with a foreign value of the key, counts as unavailable.
TEST_F(RedlockFaults, a_refusing_minority_does_not_matter) {
  servers[0].command({"LPUSH", "{tenure:a}", "mine"});
  servers[1].command({"CONFIG", "SET", "maxmemory", "1"});

  const auto guard = ann.mutex("a").lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
}

// 003.018, 003-B4: no client has a majority; all withdraw and retry after a random delay.
TEST_F(RedlockFaults, clients_with_split_votes_make_progress) {
  std::vector<Client> clients;
  for (int n = 0; n < 4; ++n) {
    clients.push_back(connect(servers.url(), {.request_timeout = test_timeout}).value());
  }
  constexpr int rounds = 10;
  int counter = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& client : clients) {
      threads.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          const auto guard = client.mutex("a").lock();
          ASSERT_TRUE(guard) << to_string(guard.error());
          ++counter;
        }
      });
    }
  }

  EXPECT_EQ(counter, 4 * rounds);
}

// 003-B19: whichever servers die in between, the next token is larger.
TEST_F(RedlockFaults, tokens_grow_though_servers_leave_and_return) {
  FencingToken last{};
  const auto take = [&](Client& client) {
    const auto guard = client.mutex("a", {.fencing = Fencing::demanded}).try_lock_for(test_timeout);
    ASSERT_TRUE(guard) << to_string(guard.error());
    EXPECT_GT(guard->token(), last);
    last = guard->token();
  };
  for (std::size_t round = 0; round < 5; ++round) {
    // Each pair of neighbours is away once: consecutive majorities share different servers.
    servers[round].kill();
    servers[(round + 1) % 5].kill();
    take(round % 2 == 0 ? ann : bob);
    take(round % 2 == 0 ? bob : ann);
    servers[round].start();
    servers[(round + 1) % 5].start();
    take(ann);
  }
}

// 003-B19: servers with different clocks or tokens agree before the grant is reported.
TEST_F(RedlockFaults, a_token_is_written_back_to_a_majority_before_it_is_used) {
  const auto time = servers[0].command({"TIME"});
  const auto ahead = std::stoll(time) * 1'000'000 + 50'000'000'000;
  servers[3].command({"SET", "{tenure:a}", "T " + std::to_string(ahead) + " -"});
  servers[1].kill();
  servers[2].kill();

  // The majority is 0, 3 and 4, and only 3 knows a token from the future.
  auto guard = ann.mutex("a").lock().value();
  EXPECT_EQ(guard.token(), FencingToken{static_cast<std::uint64_t>(ahead + 1)});
  EXPECT_TRUE(guard.unlock());
  servers[1].start();
  servers[2].start();
  servers[3].kill();

  // This majority does not contain server 3.
  ASSERT_TRUE(eventually([&] { return bob.mutex("x").try_lock().has_value(); }));
  EXPECT_GT(bob.mutex("a").try_lock_for(test_timeout).value().token(), guard.token());
}

// 003.037, 003-B3, 003-B12: the validity of each attempt is counted from its own start.
TEST_F(RedlockFaults, validity_is_counted_from_the_attempt_that_succeeds) {
  auto guard = ann.mutex("a").lock().value();
  std::optional<std::chrono::nanoseconds> left;
  std::jthread waiter([&] {
    const auto mine = bob.mutex("a", {.ttl = 1s}).lock().value();
    left = mine.valid_until() - steady_clock::now();
  });
  ASSERT_TRUE(eventually([&] { return servers[0].command({"EXISTS", "{tenure:a}:w"}) == "1"; }));
  const auto over = steady_clock::now() + 1200ms;
  EXPECT_TRUE(eventually([&] { return steady_clock::now() > over; }));

  EXPECT_TRUE(guard.unlock());
  waiter.join();

  EXPECT_GT(left, 500ms);
}

// 003.038
TEST_F(RedlockFaults, a_late_release_does_not_free_the_next_holder) {
  auto first = ann.mutex("a", {.ttl = 100ms, .renewals_per_ttl = 0}).lock().value();
  const auto second = bob.mutex("a").lock().value();

  EXPECT_EQ(first.unlock().error(), Errc::lease_lost);

  EXPECT_TRUE(second.owns_lock());
  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);
}

// 003.025, 003.026, 003.028: while servers die and return.
TEST_F(RedlockFaults, a_hold_is_renewed_on_the_available_servers) {
  auto guard = ann.mutex("a", {.ttl = 500ms}).lock().value();
  for (std::size_t server = 0; server < 5; ++server) {
    servers[server].kill();
    const auto until = guard.valid_until();
    EXPECT_TRUE(eventually([&] { return guard.valid_until() > until; }));
    servers[server].start();
    EXPECT_TRUE(eventually([&] { return servers.vote_of(server, "a") != ""; }));
  }

  EXPECT_TRUE(guard.owns_lock());
  EXPECT_TRUE(guard.unlock());
}

TEST_F(RedlockFaults, threads_of_one_client_queue_locally) {
  constexpr int threads = 8;
  constexpr int rounds = 20;
  int counter = 0;
  {
    std::vector<std::jthread> all;
    for (int n = 0; n < threads; ++n) {
      all.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          const auto guard = ann.mutex("a").lock();
          ASSERT_TRUE(guard) << to_string(guard.error());
          ++counter;
        }
      });
    }
  }

  EXPECT_EQ(counter, threads * rounds);
}

// 003.014: plain keys, compatible with other libraries.
TEST_F(RedlockFaults, a_barging_lock_interoperates_with_other_libraries_and_has_no_token) {
  const LockOptions plain{.fairness = Fairness::barging};
  auto guard = ann.mutex("orders", plain).lock().value();

  EXPECT_TRUE(eventually([&] { return servers[4].command({"EXISTS", "orders"}) == "1"; }));
  EXPECT_EQ(guard.token(), FencingToken{});
  EXPECT_TRUE(guard.extend());
  EXPECT_TRUE(guard.extend(20s));
  EXPECT_EQ(bob.mutex("orders", plain).try_lock().error(), Errc::would_block);
  EXPECT_TRUE(guard.unlock());
  for (const std::size_t server : {0U, 1U, 2U, 3U, 4U}) {
    EXPECT_TRUE(eventually([&] { return servers[server].command({"EXISTS", "orders"}) == "0"; }));
  }
  for (const std::size_t server : {0U, 1U, 2U}) {
    servers[server].command({"SET", "orders", "theirs", "NX", "PX", "60000"});
  }
  EXPECT_EQ(ann.mutex("orders", plain).try_lock().error(), Errc::would_block);
  EXPECT_EQ(servers[0].command({"GET", "orders"}), "theirs");
}

// 003-B19: rejected if a token is demanded.
TEST_F(RedlockFaults, a_barging_lock_is_unsupported_where_a_token_is_demanded) {
  const auto refused =
      ann.mutex("a", {.fairness = Fairness::barging, .fencing = Fencing::demanded}).lock();

  EXPECT_EQ(refused.error(), Errc::unsupported);
}

TEST_F(RedlockFaults, missing_capabilities_are_unsupported) {
  EXPECT_EQ(ann.rw_lock("a").lock_shared().error(), Errc::unsupported);
  EXPECT_EQ(ann.semaphore("a", {.capacity = 2}).acquire().error(), Errc::unsupported);
  EXPECT_EQ(ann.lock_all({"a", "b"}).error(), Errc::unsupported);
  EXPECT_EQ(ann.watch("a").error(), Errc::unsupported);
}

}  // namespace
}  // namespace tenure::test
