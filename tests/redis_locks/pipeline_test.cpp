#include "backends/redis/pipeline.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "backends/redis/command_encoder.hpp"
#include "support/net/tcp_relay.hpp"
#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

// Order of commands and replies on one connection, and what happens to unanswered commands.

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using namespace backends;
using redis::Command;

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
           Command::Retry loss = Command::Retry::always) {
    pipeline->run({.encoded = std::move(command),
                   .on_reply = [this, what](const auto& answer) { note(what, answer); },
                   .retry = loss});
  }
  /// Acquires with a new lease each time.
  void acquire(const std::string& name) {
    const AcquireRequest request{.lease = LeaseId{++last_lease},
                                 .request = RequestId{1},
                                 .spec = std::make_shared<const AcquireSpec>(
                                     AcquireSpec{.items = {{.name = name}}, .owner = "me"})};
    run(name, commands.acquire(request, 60s));
  }
  /// Withdraws the request of this lease.
  void leave(const std::string& what, const std::string& name, LeaseId lease) {
    const AcquireSpec spec{.items = {{.name = name}}};
    run(what, commands.leave(spec, redis::member_of(spec, lease, RequestId{1}), RequestId{1},
                             redis::CommandEncoder::IfGranted::drop));
  }
  /// Releases what this lease acquired.
  void release(const std::string& what, const std::string& name, LeaseId lease) {
    const ReleaseRequest request{.lease = lease,
                                 .request = RequestId{2},
                                 .acquired = RequestId{1},
                                 .token = FencingToken{static_cast<std::uint64_t>(answers[name])},
                                 .spec = std::make_shared<const AcquireSpec>(
                                     AcquireSpec{.items = {{.name = name}}, .owner = "me"})};
    run(what, commands.release(request, redis::member_of(*request.spec, lease, RequestId{1})));
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
  TcpRelay relay{server.port()};
  boost::asio::io_context loop;
  redis::CommandEncoder commands{"tenure", "ear"};
  std::shared_ptr<redis::Pipeline> pipeline = std::make_shared<redis::Pipeline>(
      loop,
      redis::ServerOptions{.endpoint = {.host = "127.0.0.1", .port = relay.port()},
                           .timeout = test_timeout},
      redis::Pipeline::Callbacks{.ready = [] {},
                                 .disconnected = [this](const Error&) { ++losses; },
                                 .idle = [] {},
                                 .warning = [](const std::string&) {}});
  std::uint64_t last_lease = 0;
  /// Token, kind of the reply, or `failed`, by command.
  std::map<std::string, std::int64_t> answers;
  /// Commands in the order of their replies.
  std::vector<std::string> order;
  int retries = 0;
  int losses = 0;

 private:
  void note(const std::string& what, const Result<Command::Response>& answer) {
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

TEST_F(RedisPipeline, pipelined_commands_are_answered_in_order) {
  relay.hold_replies();
  acquire_all();
  run_until([&] { return server.command({"EXISTS", head_of("f")}) == "1"; });
  EXPECT_TRUE(order.empty());

  relay.pass_replies();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(order, names);
  EXPECT_GT(answers["f"], any_token);
}

// Otherwise a request that was withdrawn would join the queue after it left.
TEST_F(RedisPipeline, a_later_command_about_the_same_lock_is_executed_later) {
  const std::string held = "H 1 00000000000000ff.1 L X ear bob\n";
  server.command({"SET", head_of("c"), held, "PX", "90000"});
  acquire_all();
  leave("left", "c", LeaseId{3});
  acquire("c");
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(answers["left"], 0);
  EXPECT_EQ(server.command({"ZRANGE", head_of("c") + ":q", "0", "-1"}), "0000000000000007");
}

// run() and flush() are called while replies are dispatched.
TEST_F(RedisPipeline, a_command_issued_by_a_reply_is_answered_after_the_pending_replies) {
  relay.hold_replies();
  pipeline->run({.encoded = redis::encode_command({"PING"}), .on_reply = [&](const auto& /*pong*/) {
                   acquire("next");
                   pipeline->flush();
                 }});
  acquire_all();
  run_until([&] { return server.command({"EXISTS", head_of("f")}) == "1"; });

  relay.pass_replies();
  run_until([&] { return answers.contains("next"); });

  auto expected = names;
  expected.emplace_back("next");
  EXPECT_EQ(order, expected);
}

// 001.017, 003-B21
TEST_F(RedisPipeline, missing_scripts_are_loaded_again) {
  server.command({"SCRIPT", "FLUSH"});
  acquire_all();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_GT(answers["a"], any_token);
  EXPECT_EQ(order, names);
  EXPECT_EQ(retries, 0) << "the server executed none of them before";
}

// A release that was completed must not be reported as lost because of an error of another command
// that was sent with it.
TEST_F(RedisPipeline, a_failed_command_fails_no_other_command_of_its_write) {
  acquire("a");
  acquire("c");
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });
  server.command({"LPUSH", head_of("b"), "of another type"});
  release("first release", "a", LeaseId{1});
  acquire("b");
  release("second release", "c", LeaseId{2});
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(answers["first release"], 1);
  EXPECT_EQ(answers["b"], failed);
  EXPECT_EQ(answers["second release"], 1);
  EXPECT_EQ(losses, 0);
}

// The second command must not be executed before the first one is sent again.
TEST_F(RedisPipeline, commands_keep_their_order_when_scripts_are_loaded_again) {
  server.command({"SCRIPT", "FLUSH"});
  relay.hold_replies();
  acquire("a");
  leave("left", "a", LeaseId{1});
  pipeline->flush();
  run_until([&] {
    return server.command({"INFO", "errorstats"}).find("NOSCRIPT:count=2") != std::string::npos;
  });
  relay.pass_replies();
  acquire("b");
  pipeline->flush();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_GT(answers["a"], any_token) << "granted first";
  EXPECT_FALSE(server.command({"GET", head_of("a")}).starts_with("H ")) << "then released";
  EXPECT_EQ(order, (std::vector<std::string>{"a", "left", "b"}));
}

// The reply is lost with the connection: the command is sent again and finds its earlier result.
TEST_F(RedisPipeline, a_command_whose_reply_is_lost_is_sent_again_as_a_retry) {
  relay.hold_replies();
  acquire_all();
  run_until([&] { return server.command({"EXISTS", head_of("f")}) == "1"; });
  const auto head = server.command({"GET", head_of("a")});
  relay.cut();
  relay.pass_replies();
  run_until([&] { return answers.size() == names.size(); });

  EXPECT_EQ(retries, 6);
  EXPECT_EQ(order, names);
  EXPECT_EQ(answers["a"], 1) << "granted before";
  EXPECT_NE(server.command({"HGET", head_of("a") + ":m", head.substr(19, 16)}), "(nil)");
}

// A release that was never sent and finds no hold fails with `not_held`, not with `unavailable`.
TEST_F(RedisPipeline, a_command_that_was_never_sent_is_no_retry) {
  relay.cut();
  run_until([&] { return losses > 0; });
  acquire("a");
  run_until([&] { return answers.contains("a"); });

  EXPECT_GT(answers["a"], any_token);
  EXPECT_EQ(retries, 0);
}

TEST_F(RedisPipeline, a_command_without_retry_fails_with_its_connection) {
  relay.hold_replies();
  run("once", redis::encode_command({"INCR", "count"}), Command::Retry::never);
  acquire("a");
  pipeline->flush();
  run_until([&] { return server.command({"EXISTS", head_of("a")}) == "1"; });
  relay.cut();
  relay.pass_replies();
  run_until([&] { return pipeline->is_idle(); });

  EXPECT_EQ(answers["once"], failed);
  EXPECT_EQ(answers["a"], 1);
  EXPECT_EQ(server.command({"GET", "count"}), "1");
}

// The use case: many threads of one client.
TEST(RedisPipelines, many_threads_of_a_client_lock_and_unlock) {
  RedisServer server;
  const auto client = connect(server.url(), {.request_timeout = test_timeout}).value();
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
