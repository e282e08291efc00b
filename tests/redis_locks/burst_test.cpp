#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <tenure/client.hpp>

#include "backends/redis/commands.hpp"
#include "backends/redis/pipeline.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_link.hpp"
#include "support/wait_until.hpp"

// Many acquisitions and releases in one call of a script: what each of them answers is what it
// would have answered alone.

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using namespace backends;
using redis::Errand;

std::string head_of(const std::string& name) {
  return "{tenure:" + name + "}";
}

/// A pipeline by itself, on a loop that the test runs.
class RedisBurst : public ::testing::Test {
 protected:
  RedisBurst() {
    pipeline->start();
    run_until([&] { return pipeline->is_ready(); });
  }
  ~RedisBurst() override {
    pipeline->stop({.code = Errc::unavailable});
    loop.poll();
  }
  template <class Predicate>
  void run_until(Predicate predicate) {
    ASSERT_TRUE(eventually([&] {
      loop.run_for(1ms);
      loop.restart();
      return predicate();
    }));
  }
  [[nodiscard]] AcquireRequest request_for(const std::string& name) {
    return {.lease = LeaseId{++last_lease},
            .request = RequestId{1},
            .ask = std::make_shared<const Ask>(Ask{.items = {{.name = name}}, .owner = "me"})};
  }
  void acquire(const std::string& name) {
    const auto request = request_for(name);
    asked[name] = request;
    pipeline->run({.brief = std::make_unique<Noted<redis::AcquireBrief>>(
                       *this, name, commands, request,
                       redis::member_of(*request.ask, request.lease, request.request), 60s)});
  }
  /// Of what was granted last; noted as "-name".
  void release(const std::string& name) {
    const auto& granted = asked.at(name);
    const ReleaseRequest request{.lease = granted.lease,
                                 .request = RequestId{2},
                                 .acquired = granted.request,
                                 .token = FencingToken{static_cast<std::uint64_t>(answers[name])},
                                 .ask = granted.ask};
    pipeline->run({.brief = std::make_unique<Noted<redis::ReleaseBrief>>(
                       *this, "-" + name, commands, request,
                       redis::member_of(*granted.ask, granted.lease, granted.request), 60s)});
  }
  /// Tells its answer to note().
  template <class Kind>
  class Noted final : public Kind {
   public:
    template <class... What>
    Noted(RedisBurst& test, std::string name, const What&... what)
        : Kind(what...), test_(test), name_(std::move(name)) {}
    void answered(const Result<Errand::Answer>& answer) override { test_.note(name_, answer); }

   private:
    RedisBurst& test_;
    std::string name_;
  };
  void note(const std::string& name, const Result<Errand::Answer>& answer) {
    if (may_fail && !answer) {
      answers[name] = failed;
      return;
    }
    ASSERT_TRUE(answer) << to_string(answer.error());
    answers[name] = answer->reply.kind == redis::Reply::Kind::integer ? answer->reply.number
                                                                      : answer->reply.number_at(0);
    retries += answer->is_retry ? 1 : 0;
  }
  [[nodiscard]] std::int64_t calls() {
    const auto all = server.ask({"INFO", "commandstats"});
    const std::string field = "cmdstat_evalsha:calls=";
    const auto at = all.find(field);
    return at == std::string::npos ? 0 : std::stoll(all.substr(at + field.size()));
  }

  RedisServer server;
  TcpLink link{server.port()};
  boost::asio::io_context loop;
  redis::Commands commands{"tenure", "ear"};
  std::shared_ptr<redis::Pipeline> pipeline = std::make_shared<redis::Pipeline>(
      loop,
      redis::Address{.endpoint = {.host = "127.0.0.1", .port = link.port()}, .timeout = patience},
      redis::Pipeline::Calls{.ready = [] {},
                             .lost = [](const Error&) {},
                             .idle = [] {},
                             .doubtful = [](const std::string&) {}});
  std::uint64_t last_lease = 0;
  std::map<std::string, AcquireRequest> asked;  ///< Last.
  std::map<std::string, std::int64_t> answers;  ///< A token, or what kind of answer it is.
  int retries = 0;
  static constexpr std::int64_t failed = -100;
  bool may_fail = false;
};

constexpr std::int64_t any_token = 1'000'000'000'000'000;
const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};

TEST_F(RedisBurst, many_that_leave_together_are_one_call) {
  const auto before = calls();
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_EQ(calls(), before + 1);
  for (const auto& name : names) {
    EXPECT_GT(answers[name], any_token);
    EXPECT_TRUE(server.ask({"GET", head_of(name)}).starts_with("H "));
  }
}

TEST_F(RedisBurst, what_is_given_back_and_taken_again_goes_together) {
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == names.size(); });
  const auto granted = answers;
  const auto before = calls();

  for (const auto& name : names) {
    release(name);
  }
  for (const auto& name : names) {
    acquire(name);
  }
  answers.clear();
  pipeline->flush();
  run_until([&] { return answers.size() == 2 * names.size(); });

  EXPECT_EQ(calls(), before + 1);
  for (const auto& name : names) {
    EXPECT_EQ(answers["-" + name], 1) << name;
    EXPECT_GT(answers[name], granted.at(name)) << name;
  }
}

// What the script did before it failed is found by the lock's own script, as after a lost answer.
TEST_F(RedisBurst, a_release_of_a_script_that_failed_later_is_a_retry) {
  constexpr int seconds = 10;  // more than the test takes
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == names.size(); });
  // Free locks whose record needs no SET to be held again, each in another second. Then the script
  // records the token by SET, which fails.
  const auto now = std::stoll(server.ask({"TIME"}));
  for (int n = 0; n < seconds; ++n) {
    const auto end = std::to_string((now + n + 1) * 1000 + 120'000);
    server.ask({"SET", head_of("free" + std::to_string(n)),
                "T 1700000000000000 0000000000000001.1 L X ear me\n " + end, "PX", "90000"});
  }
  server.ask({"ACL", "SETUSER", "default", "-set"});
  may_fail = true;

  for (const std::string name : {"a", "b", "c", "d"}) {
    release(name);
  }
  for (int n = 0; n < seconds; ++n) {
    acquire("free" + std::to_string(n));
  }
  answers.clear();
  pipeline->flush();
  run_until([&] { return answers.size() == 4 + seconds; });

  EXPECT_EQ(retries, 4);
  for (const std::string name : {"-a", "-b", "-c", "-d"}) {
    EXPECT_EQ(answers[name], 3) << name << ": not held any more, and this one gave it back";
  }
}

// Nobody is overtaken by one who had it a moment ago.
TEST_F(RedisBurst, who_waits_is_before_one_that_gives_back_and_asks_again) {
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == names.size(); });
  const auto bob = connect(server.url()).value();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("c").lock()); });
  ASSERT_TRUE(eventually([&] { return server.ask({"ZCARD", head_of("c") + ":q"}) == "1"; }));

  for (const auto& name : names) {
    release(name);
    acquire(name);
  }
  for (const auto& name : names) {
    answers.erase(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == 2 * names.size(); });

  EXPECT_EQ(answers["c"], 2) << "behind who waited";
  EXPECT_GT(answers["d"], any_token);
}

TEST_F(RedisBurst, few_go_by_themselves) {
  const auto before = calls();
  acquire("a");
  acquire("b");
  pipeline->flush();
  run_until([&] { return answers.size() == 2; });

  EXPECT_EQ(calls(), before + 2);
}

// One that has to queue is asked again by its own script, the others need not wait for that.
// Threads come one by one: each would make a small burst of its own, or none.
TEST_F(RedisBurst, what_comes_while_one_is_out_makes_the_next) {
  const auto before = calls();
  link.hold_answers();
  for (const auto* name : {"a", "b", "c", "d"}) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return calls() == before + 1; });

  for (const auto* name : {"e", "f", "g", "h"}) {
    acquire(name);
    pipeline->flush();
  }
  link.pass_answers();
  run_until([&] { return answers.size() == 8; });

  EXPECT_EQ(calls(), before + 2);
}

// So that the server has something to do while answers are told.
TEST_F(RedisBurst, when_many_wait_a_second_one_leaves_and_no_third) {
  const auto before = calls();
  link.hold_answers();
  const auto acquire_so_many = [&](int count, const std::string& prefix) {
    for (int n = 0; n < count; ++n) {
      acquire(prefix + std::to_string(n));
    }
    pipeline->flush();
  };
  acquire_so_many(4, "a");
  EXPECT_EQ(pipeline->room_after(), 16U);
  acquire_so_many(15, "b");
  EXPECT_EQ(pipeline->room_after(), 1U);
  acquire_so_many(1, "c");
  EXPECT_GT(pipeline->room_after(), 1'000'000U);
  acquire_so_many(40, "d");
  run_until([&] { return calls() == before + 2; });

  link.pass_answers();
  run_until([&] { return answers.size() == 60; });

  EXPECT_EQ(calls(), before + 4);
}

// Else what ends a request would come before the request, and find nothing to end.
TEST_F(RedisBurst, what_is_said_about_one_that_waits_for_the_next_burst_comes_after_it) {
  link.hold_answers();
  for (const auto* name : {"a", "b", "c", "d"}) {
    acquire(name);
  }
  pipeline->flush();
  acquire("e");
  const auto& request = asked.at("e");
  pipeline->run({.command = commands.leave(
                     *request.ask, redis::member_of(*request.ask, request.lease, request.request),
                     request.request, redis::Commands::Found::drop),
                 .answered = [this](const auto& answer) { note("left", answer); }});
  pipeline->flush();

  link.pass_answers();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_GT(answers["e"], any_token) << "it was granted first";
  EXPECT_FALSE(server.ask({"GET", head_of("e")}).starts_with("H ")) << "and then given back";
}

TEST_F(RedisBurst, more_than_fit_into_one_make_two) {
  const auto before = calls();
  for (int n = 0; n < 40; ++n) {
    acquire("m" + std::to_string(n));
  }
  pipeline->flush();
  run_until([&] { return answers.size() == 40; });

  EXPECT_EQ(calls(), before + 2);
}

TEST_F(RedisBurst, one_that_is_not_that_easy_is_asked_alone) {
  server.ask(
      {"SET", head_of("c"), "H 1 00000000000000ff.1 L X ear bob\n 0000000000000", "PX", "90000"});
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_EQ(answers["c"], 2) << "queued";
  EXPECT_GT(answers["f"], any_token);
  EXPECT_EQ(server.ask({"ZCARD", head_of("c") + ":q"}), "1");
}

// Else one that was called off would join the queue after it left.
TEST_F(RedisBurst, what_is_said_later_about_the_same_lock_comes_later) {
  server.ask(
      {"SET", head_of("c"), "H 1 00000000000000ff.1 L X ear bob\n 0000000000000", "PX", "90000"});
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  const Ask ask{.items = {{.name = "c"}}};
  pipeline->run({.command = commands.leave(ask, redis::member_of(ask, LeaseId{3}, RequestId{1}),
                                           RequestId{1}, redis::Commands::Found::drop),
                 .answered = [this](const auto& answer) { note("left", answer); }});
  acquire("c");
  pipeline->flush();
  run_until([&] { return answers.contains("left") && pipeline->is_idle(); });

  EXPECT_EQ(answers["left"], 0);
  EXPECT_EQ(server.ask({"ZRANGE", head_of("c") + ":q", "0", "-1"}), "0000000000000007");
}

TEST_F(RedisBurst, the_same_lock_twice_is_granted_once) {
  for (const auto& name : names) {
    acquire(name);
  }
  answers.clear();
  acquire("a");
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(answers["a"], 2) << "the second waits";
}

// 001.017, 003-B21
TEST_F(RedisBurst, scripts_that_the_server_forgot_are_told_again) {
  server.ask({"SCRIPT", "FLUSH"});
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_GT(answers["a"], any_token);
}

// Its answer is lost with the connection: each asks again, and finds what it got.
TEST_F(RedisBurst, a_lost_answer_is_asked_for_again) {
  link.hold_answers();
  for (const auto& name : names) {
    acquire(name);
  }
  pipeline->flush();
  run_until([&] { return server.ask({"EXISTS", head_of("f")}) == "1"; });
  const auto head = server.ask({"GET", head_of("a")});
  link.cut();
  link.pass_answers();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_EQ(retries, 6);
  EXPECT_EQ(answers["a"], 1) << "granted before";
  EXPECT_NE(server.ask({"HGET", head_of("a") + ":m", head.substr(19, 16)}), "(nil)");
}

// As users meet it: many threads of one client.
TEST(RedisBursts, many_threads_of_a_client_lock_and_unlock) {
  RedisServer server;
  const auto client = connect(server.url(), {.request_timeout = patience}).value();
  std::vector<std::jthread> threads;
  for (int n = 0; n < 32; ++n) {
    threads.emplace_back([&, n] {
      const auto mutex = client.mutex("lock " + std::to_string(n % 24));
      FencingToken last{};
      for (int round = 0; round < 30; ++round) {
        auto guard = mutex.lock();
        ASSERT_TRUE(guard) << to_string(guard.error());
        EXPECT_GT(guard->token(), last);
        last = guard->token();
        const auto unlocked = guard->unlock();
        EXPECT_TRUE(unlocked) << to_string(unlocked.error());
      }
    });
  }
}

}  // namespace
}  // namespace tenure::test
