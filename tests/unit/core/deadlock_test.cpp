#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreDeadlock : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob, cid}); }

  std::vector<LeaseId> cycle_of(const Outcome& outcome) const {
    std::vector<LeaseId> leases;
    for (const auto& step : std::get<Refused>(outcome).cycle) {
      leases.push_back(step.lease);
    }
    return leases;
  }
};

TEST_F(CoreDeadlock, the_wait_that_closes_a_cycle_is_refused_with_the_cycle) {
  acquire(ann, {lock("a")});
  acquire(bob, {lock("b")});
  acquire(ann, {lock("b")});

  const auto outcome = acquire(bob, {lock("a")});

  EXPECT_EQ(code_of(outcome), Errc::deadlock);
  EXPECT_EQ(cycle_of(outcome), (Leases{bob, ann}));
  EXPECT_EQ(std::get<Refused>(outcome).cycle[0].resource, resource("a"));
  EXPECT_EQ(std::get<Refused>(outcome).cycle[1].resource, resource("b"));
  EXPECT_EQ(event_types(), Types{EventType::deadlock});
  EXPECT_EQ(machine.state().locks.waits().size(), 1U) << "ann still waits";
}

TEST_F(CoreDeadlock, a_cycle_may_lead_through_names_ranges_and_semaphores) {
  acquire(ann, {lock("a")});
  acquire(bob, {keys("s", "a", "m")});
  acquire(cid, {permits("p", 2, 2)});
  acquire(ann, {keys("s", "c", "d")});
  acquire(bob, {permits("p", 1, 2)});

  const auto outcome = acquire(cid, {lock("a")});

  EXPECT_EQ(code_of(outcome), Errc::deadlock);
  EXPECT_EQ(cycle_of(outcome), (Leases{cid, ann, bob}));
}

TEST_F(CoreDeadlock, a_wait_ahead_in_the_queue_is_an_edge_of_the_graph) {
  acquire(ann, {lock("a", LockMode::shared)});
  acquire(bob, {lock("b")});
  acquire(cid, {lock("a")});  // waits for ann
  acquire(ann, {lock("b")});  // waits for bob

  const auto outcome = acquire(bob, {lock("a", LockMode::shared)});  // behind cid

  EXPECT_EQ(cycle_of(outcome), (Leases{bob, cid, ann}));
}

TEST_F(CoreDeadlock, two_upgrades_of_one_lock_deadlock) {
  acquire(ann, {lock("a", LockMode::shared)});
  acquire(bob, {lock("a", LockMode::shared)});
  acquire(ann, {lock("a")}, SelfConflict::reenter);

  EXPECT_EQ(code_of(acquire(bob, {lock("a")}, SelfConflict::reenter)), Errc::deadlock);
}

TEST_F(CoreDeadlock, permits_that_a_runnable_lease_can_release_are_no_deadlock) {
  acquire(ann, {permits("p", 1, 3)});
  acquire(bob, {permits("p", 1, 3)});
  acquire(cid, {permits("p", 1, 3)});
  acquire(bob, {lock("b")});
  EXPECT_TRUE(is_queued(acquire(ann, {permits("p", 1, 3)})));

  EXPECT_TRUE(is_queued(acquire(ann, {lock("b")}))) << "cid may release its permit";
}

TEST_F(CoreDeadlock, permits_that_only_waiters_of_the_cycle_hold_are_a_deadlock) {
  acquire(ann, {permits("p", 1, 2)});
  acquire(bob, {permits("p", 1, 2)});
  acquire(ann, {permits("p", 1, 2)});

  EXPECT_EQ(code_of(acquire(bob, {permits("p", 1, 2)})), Errc::deadlock);
}

// Each could be helped by either of the others, so none of them alone is to blame.
TEST_F(CoreDeadlock, permits_that_several_waiters_would_have_to_release_are_a_deadlock) {
  for (const auto lease : {ann, bob, cid}) {
    acquire(lease, {permits("p", 1, 3)});
  }
  EXPECT_TRUE(is_queued(acquire(ann, {permits("p", 1, 3)})));
  EXPECT_TRUE(is_queued(acquire(bob, {permits("p", 1, 3)})));

  const auto outcome = acquire(cid, {permits("p", 1, 3)});

  EXPECT_EQ(code_of(outcome), Errc::deadlock);
  EXPECT_EQ(cycle_of(outcome), (Leases{cid, ann}));
  EXPECT_EQ(machine.state().locks.waits().size(), 2U) << "one gives way, not all";
}

TEST_F(CoreDeadlock, a_cycle_that_a_lease_outside_of_it_can_break_is_no_deadlock) {
  constexpr LeaseId dora{4};
  grant_leases({dora});
  for (const auto lease : {ann, bob, cid, dora}) {
    acquire(lease, {permits("p", 1, 4)});
  }
  for (const auto lease : {ann, bob, cid}) {
    EXPECT_TRUE(is_queued(acquire(lease, {permits("p", 1, 4)})));
  }

  release(dora, "p");

  EXPECT_EQ(granted_waiters(), Leases{ann});
}

// The holder of the permit that could help waits, over a lock, for a deadlocked lease.
TEST_F(CoreDeadlock, a_permit_holder_that_waits_for_the_cycle_does_not_break_it) {
  constexpr LeaseId dora{4};
  grant_leases({dora});
  for (const auto lease : {ann, bob, dora}) {
    acquire(lease, {permits("p", 1, 3)});
  }
  acquire(ann, {lock("a")});
  acquire(ann, {permits("p", 1, 3)});
  acquire(bob, {permits("p", 1, 3)});

  const auto outcome = acquire(dora, {lock("a")});

  EXPECT_EQ(code_of(outcome), Errc::deadlock);
  EXPECT_EQ(cycle_of(outcome), (Leases{dora, ann}));
}

// An upgrade that is granted past the queue makes others wait for a lease that waits elsewhere.
TEST_F(CoreDeadlock, a_grant_that_closes_a_cycle_makes_the_youngest_wait_the_victim) {
  acquire(ann, {lock("a", LockMode::intention_shared)});
  acquire(cid, {lock("a", LockMode::shared)});
  acquire(bob, {lock("b")});
  acquire(ann, {lock("b")});                                 // waits for bob
  acquire(bob, {lock("a", LockMode::intention_exclusive)});  // waits for cid

  token_of(acquire(ann, {lock("a", LockMode::shared)}, SelfConflict::reenter));

  ASSERT_EQ(applied.notices.size(), 1U);
  EXPECT_EQ(applied.notices[0].lease, bob);
  EXPECT_EQ(std::get<Refused>(applied.notices[0].end).error.code, Errc::deadlock);
}

TEST_F(CoreDeadlock, a_victim_keeps_what_it_holds_and_gets_the_same_answer_again) {
  acquire(ann, {lock("a")});
  acquire(bob, {lock("b")});
  acquire(ann, {lock("b")});
  const auto first = acquire(bob, {lock("a")});

  const auto again = apply(Acquire{.lease = bob, .request = last_request, .items = {lock("a")}});

  EXPECT_EQ(again.outcome, first);
  EXPECT_EQ(holders_of("b"), Leases{bob});
}

// A search that looks at every pair would take minutes here.
TEST_F(CoreDeadlock, a_long_queue_is_searched_in_reasonable_time) {
  constexpr std::uint64_t waiters = 3000;
  StateMachine big;
  for (std::uint64_t i = 1; i <= waiters; ++i) {
    big.apply(GrantLease{.id = LeaseId{i}, .ttl = seconds(30)}, {});
    big.apply(Acquire{.lease = LeaseId{i},
                      .request = RequestId{1},
                      .items = {lock("own " + std::to_string(i))}},
              {});
  }
  big.apply(Acquire{.lease = LeaseId{1}, .request = RequestId{2}, .items = {lock("all")}}, {});
  for (std::uint64_t i = 2; i <= waiters; ++i) {
    const auto queued = big.apply(
        Acquire{.lease = LeaseId{i}, .request = RequestId{2}, .items = {lock("all")}}, {});
    EXPECT_TRUE(is_queued(queued.outcome));
  }

  const auto outcome = big.apply(Acquire{.lease = LeaseId{1},
                                         .request = RequestId{3},
                                         .items = {lock("own " + std::to_string(waiters))}},
                                 {});

  EXPECT_EQ(code_of(outcome.outcome), Errc::deadlock);
  EXPECT_EQ(std::get<Refused>(outcome.outcome).cycle.size(), 2U);
}

}  // namespace
}  // namespace tenure::core
