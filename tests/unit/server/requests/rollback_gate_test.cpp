#include "server/requests/rollback_gate.hpp"

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace tenure::test {
namespace {

using server::RollbackGate;

constexpr core::LeaseId ann{1};
constexpr core::LeaseId bob{2};

/// Tasks that append a letter.
class RollbackGateTest : public ::testing::Test {
 protected:
  RollbackGate::Task appends(char letter) {
    return [this, letter] { ran_ += letter; };
  }

  RollbackGate gate_;
  std::string ran_;
};

TEST_F(RollbackGateTest, a_task_runs_at_once_while_the_gate_is_open) {
  gate_.pass(ann, appends('a'));

  EXPECT_EQ(ran_, "a");
}

TEST_F(RollbackGateTest, tasks_of_one_lease_run_in_order_after_the_last_rollback) {
  std::optional first(gate_.close(ann));
  std::optional second(gate_.close(ann));
  gate_.pass(ann, appends('a'));
  gate_.pass(ann, appends('b'));
  gate_.pass(bob, appends('x'));
  EXPECT_EQ(ran_, "x");

  first.reset();
  EXPECT_EQ(ran_, "x");
  second.reset();

  EXPECT_EQ(ran_, "xab");
  gate_.pass(ann, appends('c'));
  EXPECT_EQ(ran_, "xabc");
}

// A delayed request can complete at once and close the gate again.
TEST_F(RollbackGateTest, a_delayed_task_may_close_the_gate) {
  std::optional first(gate_.close(ann));
  std::optional<RollbackGate::Closed> again;
  gate_.pass(ann, [&] { again.emplace(gate_.close(ann)); });

  first.reset();
  gate_.pass(ann, appends('a'));
  EXPECT_EQ(ran_, "");
  again.reset();

  EXPECT_EQ(ran_, "a");
}

}  // namespace
}  // namespace tenure::test
