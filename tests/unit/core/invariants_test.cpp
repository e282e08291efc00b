#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

/// A sound state that each test damages in one way.
class CoreInvariants : public CoreTest {
 protected:
  void SetUp() override {
    grant_leases({ann, bob, cid});
    token = token_of(acquire(ann, {lock("a")}));
    acquire(bob, {lock("a")});
    state = machine.state();
  }

  [[nodiscard]] bool finds(std::string_view words) const {
    for (const auto& sentence : invariants::check(state)) {
      if (sentence.find(words) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] Hold second_hold() const {
    auto hold = *state.locks.find(token);
    hold.token = FencingToken{state.revision.get()};
    return hold;
  }

  FencingToken token;
  State state;
};

TEST_F(CoreInvariants, two_exclusive_holders_are_found) {
  state.locks.add(second_hold(), state.revision);

  EXPECT_TRUE(finds("lock 'a': holders are not compatible"));
}

// The first range reaches over the second one to the third.
TEST_F(CoreInvariants, two_exclusive_holders_of_overlapping_ranges_are_found) {
  auto hold = second_hold();
  for (const auto& item : {keys("s", "a", "z", LockMode::shared),
                           keys("s", "b", "c", LockMode::intention_shared), keys("s", "k", "l")}) {
    hold.token = FencingToken{hold.token.get() + 1};
    hold.items = {item};
    state.locks.add(hold, state.revision);
  }

  EXPECT_TRUE(finds("space 's': holders are not compatible"));
}

TEST_F(CoreInvariants, holders_of_ranges_that_end_before_the_next_start_are_compatible) {
  auto hold = second_hold();
  for (const auto& item :
       {keys("s", "a", "b"), keys("s", "b", "c"), keys("s", "c", "d", LockMode::shared)}) {
    hold.token = FencingToken{hold.token.get() + 1};
    hold.items = {item};
    state.locks.add(hold, state.revision);
  }

  EXPECT_FALSE(finds("space 's': holders are not compatible"));
}

TEST_F(CoreInvariants, a_missed_grant_is_found) {
  state.locks.remove(token, state.revision);

  EXPECT_TRUE(finds("waits for nothing"));
}

TEST_F(CoreInvariants, a_hold_without_a_lease_is_found) {
  state.leases.remove(ann, {});

  EXPECT_TRUE(finds("has no live lease"));
}

TEST_F(CoreInvariants, a_wrong_count_of_waits_is_found) {
  state.leases.count_wait(bob);

  EXPECT_TRUE(finds("the waits of a client are counted wrong"));
}

TEST_F(CoreInvariants, a_lease_beyond_its_deadline_is_found) {
  state.now += seconds(60);

  EXPECT_TRUE(finds("should have expired"));
}

TEST_F(CoreInvariants, a_token_beyond_the_revision_is_found) {
  state.revision = Revision{1};

  EXPECT_TRUE(finds("is of the future"));
}

TEST_F(CoreInvariants, a_reused_token_is_found) {
  auto after = state;
  after.revision = Revision{state.revision.get() + 1};
  auto hold = after.locks.remove(token, after.revision);
  hold.token = FencingToken{token.get() - 1};
  after.locks.add(std::move(hold), after.revision);

  const auto broken = invariants::check_step(state, after);

  ASSERT_FALSE(broken.empty());
  EXPECT_NE(broken.back().find("is not new"), std::string::npos);
}

TEST_F(CoreInvariants, a_cycle_of_waits_is_found) {
  auto wait = *state.locks.find(*state.locks.owned(bob).waits.begin());
  auto hold = second_hold();
  hold.lease = bob;
  hold.items = {lock("b")};
  state.locks.add(hold, state.revision);
  wait.lease = ann;
  wait.ticket = Revision{state.revision.get() + 1};
  wait.items = {lock("b")};
  state.locks.add(wait);

  EXPECT_EQ(invariants::check_no_deadlock(state),
            (std::vector<std::string>{"lease 1 can never go on", "lease 2 can never go on"}));
}

#ifdef TENURE_CHECK_INVARIANTS
TEST_F(CoreInvariants, a_broken_invariant_aborts_with_a_description) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  state.locks.add(second_hold(), state.revision);
  StateMachine broken(state);

  EXPECT_DEATH(broken.apply(Tick{}, {}), "holders are not compatible");
}
#endif

TEST_F(CoreInvariants, an_upgrade_without_a_new_token_is_found) {
  auto weaker = state;
  weaker.locks.downgrade(token, LockMode::shared, state.revision);
  state.revision = Revision{state.revision.get() + 1};

  const auto broken = invariants::check_step(weaker, state);

  EXPECT_NE(std::ranges::find(broken, "hold " + std::to_string(token.get()) +
                                          " got stronger without a new token"),
            broken.end());
}

}  // namespace
}  // namespace tenure::core
