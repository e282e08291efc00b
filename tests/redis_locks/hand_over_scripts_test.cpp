#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/redis/scripts.hpp"

namespace tenure::test {
namespace {

/// release.lua has a short path for the most frequent case with waiters. It must have the same
/// effect as the long path, which is taken if the token argument is not the lock's token.
class HandOverScripts : public RedisScripts {
 protected:
  struct Situation {
    std::string what;
    std::function<void()> arrange;
  };
  struct Outcome {
    std::string answer{};
    std::string holds{};
    std::string waits{};
    std::string expiries{};
    bool is_full_form = false;

    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  /// Releases the hold of ann.
  [[nodiscard]] Outcome outcome_of(const Situation& situation, bool is_short_path) {
    server.command({"FLUSHALL"});
    situation.arrange();
    const auto detail = server.command({"HGET", head + ":m", "ann"});
    const auto token = detail.substr(2, detail.find(' ', 2) - 2);
    Outcome outcome;
    outcome.answer = run(Script::release, {"ann", "1", "-", is_short_path ? token : "0", "7"});
    for (const std::string who : {"ann", "bob", "cid", "dan"}) {
      outcome.holds += holds(who) ? who + " " : "";
    }
    outcome.waits = waiting();
    outcome.expiries = server.command({"ZRANGE", head + ":e", "0", "-1"});
    outcome.is_full_form = server.command({"GET", head}).starts_with("F ");
    return outcome;
  }
  void queue(std::vector<AcquireArguments> requests) {
    ASSERT_TRUE(is_granted(acquire({.member = "ann"})));
    for (const auto& request : requests) {
      ASSERT_TRUE(is_queued(acquire(request)));
    }
  }
  /// Makes the member expired.
  void expire_member(const std::string& member) {
    server.command({"ZADD", head + ":e", "1", member});
  }
};

// 001.011, 001-B2
TEST_F(HandOverScripts, the_short_path_and_the_long_path_have_the_same_effect) {
  subscribe();
  const std::vector<Situation> situations{
      {"one waits", [&] { queue({{.member = "bob"}}); }},
      {"three wait", [&] { queue({{.member = "bob"}, {.member = "cid"}, {.member = "dan"}}); }},
      {"readers wait",
       [&] { queue({{.member = "bob", .want = "S"}, {.member = "cid", .want = "S"}}); }},
      {"a reader is behind a writer",
       [&] { queue({{.member = "bob"}, {.member = "cid", .want = "S"}}); }},
      {"the first in line is dead",
       [&] {
         queue({{.member = "bob"}, {.member = "cid"}});
         expire_member("bob");
       }},
      {"the holder is dead",
       [&] {
         queue({{.member = "bob"}});
         expire_member("ann");
       }},
      {"it is held twice",
       [&] {
         queue({{.member = "bob"}});
         acquire({.member = "ann", .request = 2, .reentry = "reenter"});
       }},
      {"all have left",
       [&] {
         queue({{.member = "bob"}});
         leave("bob");
       }},
  };
  for (const auto& situation : situations) {
    EXPECT_EQ(outcome_of(situation, true), outcome_of(situation, false)) << situation.what;
  }
}

// A waiter without a subscription is skipped and keeps its position.
TEST_F(HandOverScripts, the_short_path_skips_unreachable_waiters) {
  const Situation deaf{"no subscriber", [&] { queue({{.member = "bob"}, {.member = "cid"}}); }};

  const auto short_path = outcome_of(deaf, true);

  EXPECT_EQ(short_path, outcome_of(deaf, false));
  EXPECT_EQ(short_path.holds, "");
  EXPECT_EQ(short_path.waits, "bob cid");
}

TEST_F(HandOverScripts, the_next_holder_receives_its_token_and_a_retry_finds_the_result) {
  subscribe();
  queue({{.member = "bob"}, {.member = "cid"}});
  const auto detail = server.command({"HGET", head + ":m", "ann"});
  const auto token = detail.substr(2, detail.find(' ', 2) - 2);

  EXPECT_EQ(run(Script::release, {"ann", "1", "-", token, "7"}), "1");

  const auto theirs = server.command({"HGET", head + ":m", "bob"});
  const auto next = theirs.substr(2, theirs.find(' ', 2) - 2);
  EXPECT_EQ(server.next_message(), "g bob 1 " + next + " 1");
  EXPECT_GT(std::stoll(next), std::stoll(token));
  EXPECT_EQ(run(Script::release, {"ann", "1", "-", token, "7"}), "3") << "a retry";
  EXPECT_TRUE(holds("bob"));
}

// The server's clock stepped back.
TEST_F(HandOverScripts, tokens_grow_on_the_short_path) {
  subscribe();
  server.command({"SET", head, "T 4000000000000000 x.1", "PX", "60000"});
  queue({{.member = "bob"}});

  EXPECT_EQ(run(Script::release, {"ann", "1", "-", "4000000000000001", "7"}), "1");

  EXPECT_TRUE(server.command({"HGET", head + ":m", "bob"}).starts_with("X 4000000000000002 "));
  EXPECT_TRUE(server.command({"GET", head}).starts_with("F L 4000000000000002 "));
  EXPECT_GT(std::stoll(server.command({"PTTL", head})), 60'000);
}

}  // namespace
}  // namespace tenure::test
