// A holder is suspended past its lease: two real processes, one of them stopped, and a real
// database. The lock service is the state machine of tenured with a manual clock, so that a lease
// of 30 s expires at once.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fence/databases.hpp"
#include "fence/lock_service.hpp"
#include "support/process.hpp"

namespace tenure::test {
namespace {

class PausedHolder : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    database(GetParam()).wipe();
    storage_ = connect_storage(GetParam(), database(GetParam()).address());
    storage_->create();
  }

  std::unique_ptr<Process> start_writer(const std::string& way) const {
    return std::make_unique<Process>(Process::Command{
        .words = {TENURE_FENCE_WRITER, GetParam(), database(GetParam()).address(), "x", way}});
  }
  /// Plays the lock service for a process that asks for the lock. The token that it got.
  FencingToken serve(Process& writer) {
    EXPECT_EQ(writer.hear(), "lock");
    const auto token = service_.try_lock("x").value();
    writer.write_line("granted " + std::to_string(token.get()));
    EXPECT_EQ(writer.hear(), "holds " + std::to_string(token.get()));
    return token;
  }

  struct Outcome {
    FencingToken old_token;
    FencingToken new_token;
    std::string new_answer;
    std::string old_answer;
  };
  Outcome play(const std::string& way) {
    Outcome outcome;
    const auto first = start_writer(way);
    outcome.old_token = serve(*first);  // T1
    first->pause();                     // T2: between its lock and its write
    first->write_line("Y");             // what it will write as soon as it runs again
    EXPECT_EQ(service_.try_lock("x"), std::nullopt);
    service_.pass(LockService::ttl);  // T3
    const auto second = start_writer(way);
    outcome.new_token = serve(*second);  // T4
    second->write_line("X");
    outcome.new_answer = second->hear();  // T5
    first->resume();                      // T6
    outcome.old_answer = first->hear();   // T7
    return outcome;
  }

  LockService service_;
  std::unique_ptr<Storage> storage_;
};

// 002.057
TEST_P(PausedHolder, is_rejected_after_its_successor_has_written) {
  const auto outcome = play("fenced");

  EXPECT_LT(outcome.old_token, outcome.new_token);
  EXPECT_EQ(outcome.new_answer, "written");
  EXPECT_EQ(outcome.old_answer, "refused, lease_lost: token " +
                                    std::to_string(outcome.old_token.get()) +
                                    " is stale: " + std::to_string(outcome.new_token.get()) +
                                    " was admitted for \"x\"");
  EXPECT_EQ(storage_->texts("x"), std::vector<std::string>{"X"});
  EXPECT_EQ(storage_->highest("x"), outcome.new_token);
}

// 002.057: without a fence the late write succeeds, which shows that the fence prevents it.
TEST_P(PausedHolder, overwrites_its_successor_without_a_fence) {
  const auto outcome = play("unfenced");

  EXPECT_EQ(outcome.old_answer, "written");
  EXPECT_EQ(storage_->texts("x"), (std::vector<std::string>{"X", "Y"}));
}

INSTANTIATE_TEST_SUITE_P(Sqlite, PausedHolder, ::testing::Values("sqlite"));
INSTANTIATE_TEST_SUITE_P(Postgres, PausedHolder, ::testing::Values("postgresql"));
INSTANTIATE_TEST_SUITE_P(Redis, PausedHolder, ::testing::Values("redis"));

}  // namespace
}  // namespace tenure::test
