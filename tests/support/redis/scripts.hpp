#pragma once

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backends/redis/scripts.hpp"
#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {

/// Fixture that runs the scripts with EVAL on the lock "a", as a client would. Results have the
/// format of RedisServer::command(): "2 1 4999" means queued at position 1, and the next expiry in
/// 4,999 ms.
class RedisScripts : public ::testing::Test {
 protected:
  using Script = backends::redis::Script;

  struct AcquireArguments {
    std::string member{};
    int request = 1;
    std::string want = "X";
    int ttl = 60'000;
    std::string queue = "wait";
    std::string reentry = "refuse";
    std::string kind = "L";
  };

  std::string acquire(const AcquireArguments& arguments) {
    return run(Script::acquire, {arguments.member, std::to_string(arguments.request),
                                 arguments.want, arguments.kind, std::to_string(arguments.ttl),
                                 arguments.queue, arguments.reentry, "ear " + arguments.member});
  }
  /// Acquires without waiting.
  std::string try_acquire(AcquireArguments arguments) {
    arguments.queue = "skip";
    return acquire(arguments);
  }
  std::string release(const std::string& member, int request = 1) {
    return run(Script::release,
               {member, std::to_string(request), "-", "0", std::to_string(++releases_)});
  }
  std::string leave(const std::string& member, int request = 1) {
    return run(Script::leave, {member, std::to_string(request), "keep"});
  }
  std::string renew(const std::string& member, int ttl = 60'000) {
    return run(Script::renew, {std::to_string(ttl), member});
  }
  std::string expire() { return run(Script::expire, {}); }
  /// Subscribes to the channel of all members, so that each waiter can be notified.
  void subscribe() { server.subscribe("tenure:wake:ear"); }

  [[nodiscard]] static bool is_granted(const std::string& answer) {
    return answer.starts_with("1 ") || answer.size() >= 16;
  }
  [[nodiscard]] static bool is_queued(const std::string& answer) {
    return answer.starts_with("2 ");
  }
  [[nodiscard]] bool holds(const std::string& member) {
    return (" " + run(Script::holders, {"100"})).find(" " + member + " ") != std::string::npos;
  }
  [[nodiscard]] std::string waiting() { return server.command({"ZRANGE", head + ":q", "0", "-1"}); }

  std::string run(Script script, const std::vector<std::string>& words) {
    std::vector<std::string> all{"EVAL",      std::string(backends::redis::text_of(script).text),
                                 "5",         head,
                                 head + ":m", head + ":e",
                                 head + ":q", last_token};
    all.insert(all.end(), words.begin(), words.end());
    return server.command(all);
  }

  const std::string head = "{tenure:a}";
  const std::string last_token = "{tenure:}:t";
  RedisServer server;

 private:
  int releases_ = 0;
};

}  // namespace tenure::test
