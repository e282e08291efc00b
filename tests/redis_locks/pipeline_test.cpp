#include "backends/redis/pipeline.hpp"

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
#include "support/redis_server.hpp"
#include "support/tcp_link.hpp"
#include "support/wait_until.hpp"

// Order of commands and replies on one connection, and what happens to unanswered commands.

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using namespace backends;
using redis::Errand;

std::string head_of(const std::string& name) {
  return "{tenure:" + name + "}";
}

/// A pipeline on an event loop that the test runs.
class RedisPipeline : public ::testing::Test {
 protected:
  RedisPipeline() {
    pipeline->start();
    run_until([&] { return pipeline->is_ready(); });
  }
  ~RedisPipeline() override {
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
  void run(const std::string& what, std::string command,
           Errand::Loss loss = Errand::Loss::send_again) {
    pipeline->run({.command = std::move(command),
                   .answered = [this, what](const auto& answer) { note(what, answer); },
                   .loss = loss});
  }
  /// By a new lease each time.
  void acquire(const std::string& name) {
    const AcquireRequest request{
        .lease = LeaseId{++last_lease},
        .request = RequestId{1},
        .ask = std::make_shared<const Ask>(Ask{.items = {{.name = name}}, .owner = "me"})};
    run(name, commands.acquire(request, 60s));
  }
  /// Withdraws what this lease asked for.
  void leave(const std::string& what, const std::string& name, LeaseId lease) {
    const Ask ask{.items = {{.name = name}}};
    run(what, commands.leave(ask, redis::member_of(ask, lease, RequestId{1}), RequestId{1},
                             redis::Commands::Found::drop));
  }
  void acquire_all() {
    for (const auto& name : names) {
      acquire(name);
    }
    pipeline->flush();
  }

  static constexpr std::int64_t any_token = 1'000'000'000'000'000;
  static constexpr std::int64_t failed = -100;
  const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};

  RedisServer server;
  TcpLink link{server.port()};
  boost::asio::io_context loop;
  redis::Commands commands{"tenure", "ear"};
  std::shared_ptr<redis::Pipeline> pipeline = std::make_shared<redis::Pipeline>(
      loop,
      redis::Address{.endpoint = {.host = "127.0.0.1", .port = link.port()}, .timeout = patience},
      redis::Pipeline::Calls{.ready = [] {},
                             .lost = [this](const Error&) { ++losses; },
                             .idle = [] {},
                             .doubtful = [](const std::string&) {}});
  std::uint64_t last_lease = 0;
  std::map<std::string, std::int64_t> answers;  ///< Token, kind of the answer, or `failed`.
  std::vector<std::string> order;               ///< Of the replies.
  int retries = 0;
  int losses = 0;

 private:
  void note(const std::string& what, const Result<Errand::Answer>& answer) {
    order.push_back(what);
    if (!answer) {
      answers[what] = failed;
      return;
    }
    answers[what] = answer->reply.kind == redis::Reply::Kind::integer ? answer->reply.number
                                                                      : answer->reply.number_at(0);
    retries += answer->is_retry ? 1 : 0;
  }
};

TEST_F(RedisPipeline, many_commands_are_in_flight_at_once_and_answered_in_order) {
  link.hold_answers();
  acquire_all();
  run_until([&] { return server.ask({"EXISTS", head_of("f")}) == "1"; });
  EXPECT_TRUE(order.empty());

  link.pass_answers();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(order, names);
  EXPECT_GT(answers["f"], any_token);
}

// Otherwise a request that was withdrawn would join the queue after it left.
TEST_F(RedisPipeline, a_later_command_about_the_same_lock_is_executed_later) {
  const std::string held = "H 1 00000000000000ff.1 L X ear bob\n";
  server.ask({"SET", head_of("c"), held, "PX", "90000"});
  acquire_all();
  leave("left", "c", LeaseId{3});
  acquire("c");
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(answers["left"], 0);
  EXPECT_EQ(server.ask({"ZRANGE", head_of("c") + ":q", "0", "-1"}), "0000000000000007");
}

// run() and flush() are called while replies are dispatched.
TEST_F(RedisPipeline, a_command_run_by_a_reply_is_answered_after_the_replies_that_were_due) {
  link.hold_answers();
  pipeline->run({.command = redis::command_of({"PING"}), .answered = [&](const auto& /*pong*/) {
                   acquire("next");
                   pipeline->flush();
                 }});
  acquire_all();
  run_until([&] { return server.ask({"EXISTS", head_of("f")}) == "1"; });

  link.pass_answers();
  run_until([&] { return answers.contains("next"); });

  auto expected = names;
  expected.emplace_back("next");
  EXPECT_EQ(order, expected);
}

// 001.017, 003-B21
TEST_F(RedisPipeline, scripts_that_the_server_lost_are_loaded_again) {
  server.ask({"SCRIPT", "FLUSH"});
  acquire_all();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_GT(answers["a"], any_token);
  EXPECT_EQ(order, names);
  EXPECT_EQ(retries, 0) << "the server executed none of them before";
}

// The second one must not be executed before the first one is sent again.
TEST_F(RedisPipeline, commands_keep_their_order_when_scripts_are_loaded_again) {
  server.ask({"SCRIPT", "FLUSH"});
  link.hold_answers();
  acquire("a");
  leave("left", "a", LeaseId{1});
  pipeline->flush();
  run_until([&] {
    return server.ask({"INFO", "errorstats"}).find("NOSCRIPT:count=2") != std::string::npos;
  });
  link.pass_answers();
  acquire("b");
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_GT(answers["a"], any_token) << "granted first";
  EXPECT_FALSE(server.ask({"GET", head_of("a")}).starts_with("H ")) << "then given back";
  EXPECT_EQ(order, (std::vector<std::string>{"a", "left", "b"}));
}

// The reply is lost with the connection: the command is sent again, and finds what it got.
TEST_F(RedisPipeline, a_command_whose_reply_is_lost_is_sent_again_as_a_retry) {
  link.hold_answers();
  acquire_all();
  run_until([&] { return server.ask({"EXISTS", head_of("f")}) == "1"; });
  const auto head = server.ask({"GET", head_of("a")});
  link.cut();
  link.pass_answers();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_EQ(retries, 6);
  EXPECT_EQ(order, names);
  EXPECT_EQ(answers["a"], 1) << "granted before";
  EXPECT_NE(server.ask({"HGET", head_of("a") + ":m", head.substr(19, 16)}), "(nil)");
}

// A release that was never sent and finds nothing is `not_held`, and no doubt about the connection.
TEST_F(RedisPipeline, a_command_that_was_never_sent_is_no_retry) {
  link.cut();
  run_until([&] { return losses > 0; });
  acquire("a");
  run_until([&] { return answers.contains("a"); });

  EXPECT_GT(answers["a"], any_token);
  EXPECT_EQ(retries, 0);
}

TEST_F(RedisPipeline, a_command_that_may_be_sent_once_fails_with_its_connection) {
  link.hold_answers();
  run("once", redis::command_of({"INCR", "count"}), Errand::Loss::once);
  acquire("a");
  pipeline->flush();
  run_until([&] { return server.ask({"EXISTS", head_of("a")}) == "1"; });
  link.cut();
  link.pass_answers();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(answers["once"], failed);
  EXPECT_EQ(answers["a"], 1);
  EXPECT_EQ(server.ask({"GET", "count"}), "1");
}

// As users meet it: many threads of one client.
TEST(RedisPipelines, many_threads_of_a_client_lock_and_unlock) {
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
