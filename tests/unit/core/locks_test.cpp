#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreLocks : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob, cid}); }
};

// 002.001-008, 002.013, 002.075
TEST_F(CoreLocks, a_lock_record_has_every_documented_field) {
  apply(Acquire{.lease = ann,
                .request = RequestId{7},
                .items = {lock("/locks/database/users-table")},
                .owner = "service-a",
                .metadata = "schema-migration"},
        seconds(2));

  const auto* record = machine.state().locks.find(resource("/locks/database/users-table"));
  ASSERT_NE(record, nullptr);
  const auto& hold = *machine.state().locks.find(*record->holds().begin());
  EXPECT_EQ(hold.owner, "service-a");
  EXPECT_EQ(hold.lease, ann);
  EXPECT_EQ(hold.metadata, "schema-migration");
  EXPECT_EQ(hold.acquired, seconds(2));
  EXPECT_EQ(hold.token, token_of(applied.outcome));
  EXPECT_EQ(record->create_revision(), applied.revision);
  EXPECT_EQ(record->mod_revision(), applied.revision);
  EXPECT_EQ(record->version(), 1U);
  EXPECT_EQ(machine.state().locks.owned(ann).holds, absl::btree_set<FencingToken>{hold.token});
}

// 002.059, 002.060, 002.078, 002.094, 002.097
TEST_F(CoreLocks, a_free_lock_is_granted_with_the_revision_as_token) {
  const auto first = token_of(acquire(ann, {lock("a")}));
  EXPECT_EQ(first.get(), applied.revision.get());

  const auto second = token_of(try_acquire(bob, {lock("b")}));
  EXPECT_EQ(second.get(), applied.revision.get());
  EXPECT_GT(second, first);
}

// 002.066, 002.078, 002.014-018
TEST_F(CoreLocks, a_held_lock_queues_the_next_request_and_returns_its_position) {
  acquire(ann, {lock("a")});

  const auto bobs = std::get<Queued>(acquire(bob, {lock("a")}));
  const auto cids = std::get<Queued>(acquire(cid, {lock("a")}));

  EXPECT_EQ(bobs.position, 1U);
  EXPECT_EQ(bobs.predecessor, std::nullopt);
  EXPECT_EQ(cids.position, 2U);
  EXPECT_EQ(cids.predecessor, bobs.ticket);
  const auto& wait = *machine.state().locks.find(cids.ticket);
  EXPECT_EQ(wait.lease, cid);
  EXPECT_EQ(wait.owner, "owner 3");
  EXPECT_EQ(wait.ticket, applied.revision);
}

// 002.062, 002.079, 002.100: hand-over happens inside the release, to the next one only.
TEST_F(CoreLocks, a_release_hands_over_to_the_next_with_a_new_token) {
  const auto first = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a")});
  acquire(cid, {lock("a")});

  release(ann, first);

  EXPECT_EQ(granted_waiters(), Leases{bob});
  EXPECT_GT(std::get<Granted>(applied.notices.front().end).token, first);
  EXPECT_EQ(holders_of("a"), Leases{bob});
  EXPECT_EQ(event_types(), (Types{EventType::released, EventType::granted}));
}

// 002-B19: created by the first holder, changed by every change of holders, counted.
TEST_F(CoreLocks, hand_over_keeps_create_revision_and_raises_the_others) {
  const auto first = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a")});

  release(ann, first);

  const auto& record = *machine.state().locks.find(resource("a"));
  EXPECT_EQ(record.create_revision().get(), first.get());
  EXPECT_EQ(record.mod_revision(), applied.revision);
  EXPECT_EQ(record.version(), 3U);
}

// 002.079, 002.061: the last release removes the record.
TEST_F(CoreLocks, a_free_lock_without_waiters_has_no_record) {
  release(ann, token_of(acquire(ann, {lock("a")})));

  EXPECT_EQ(machine.state().locks.find(resource("a")), nullptr);
}

// 002.079 "not lock holder", 002-B17, 002-B18
TEST_F(CoreLocks, only_the_lease_that_holds_it_can_release) {
  const auto token = token_of(acquire(ann, {lock("a")}));

  EXPECT_EQ(code_of(release(bob, token)), Errc::not_held);
  EXPECT_EQ(code_of(release(bob, "a")), Errc::not_held);
  EXPECT_EQ(code_of(release(ann, "no such lock")), Errc::not_held);
  EXPECT_EQ(code_of(release(ann, FencingToken{token.get() + 1})), Errc::not_held);
  EXPECT_EQ(holders_of("a"), Leases{ann});
}

// lease rule L7: a second release must not take the lock from its next holder.
TEST_F(CoreLocks, a_stale_token_does_not_release_the_new_hold) {
  const auto old = token_of(acquire(ann, {lock("a")}));
  release(ann, old);
  acquire(ann, {lock("a")});

  EXPECT_EQ(code_of(release(ann, old)), Errc::not_held);
  EXPECT_EQ(holders_of("a"), Leases{ann});
}

TEST_F(CoreLocks, a_lock_is_released_by_name) {
  acquire(ann, {lock("a")});

  EXPECT_EQ(release(ann, "a"), Outcome(Released{}));
  EXPECT_EQ(holders_of("a"), Leases{});
}

// DESIGN 1: try never overtakes.
TEST_F(CoreLocks, try_does_not_pass_a_waiter) {
  acquire(ann, {lock("a", LockMode::shared)});
  acquire(bob, {lock("a")});

  EXPECT_EQ(code_of(try_acquire(cid, {lock("a", LockMode::shared)})), Errc::would_block);
  EXPECT_TRUE(is_queued(acquire(cid, {lock("a", LockMode::shared)})));
}

TEST_F(CoreLocks, compatible_neighbours_enter_together) {
  grant_leases({LeaseId{4}});
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a", LockMode::shared)});
  acquire(cid, {lock("a", LockMode::shared)});
  acquire(LeaseId{4}, {lock("a")});

  release(ann, token);

  EXPECT_EQ(granted_waiters(), (Leases{bob, cid}));
}

// 002-B31, lease rule L9: several grants of one command have different, growing tokens.
TEST_F(CoreLocks, grants_of_one_command_have_growing_tokens) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a", LockMode::shared)});
  acquire(cid, {lock("a", LockMode::shared)});

  release(ann, token);

  ASSERT_EQ(applied.notices.size(), 2U);
  EXPECT_LT(std::get<Granted>(applied.notices[0].end).token,
            std::get<Granted>(applied.notices[1].end).token);
  EXPECT_EQ(std::get<Granted>(applied.notices[1].end).token.get(), applied.revision.get());
}

// 002.065, 002-B16
TEST_F(CoreLocks, a_reentrant_lease_gets_its_token_and_a_count) {
  const auto token = token_of(acquire(ann, {lock("a")}));

  EXPECT_EQ(acquire(ann, {lock("a")}, SelfConflict::reenter), Outcome(Granted{token, 2}));
  EXPECT_EQ(release(ann, token), Outcome(Released{1}));
  EXPECT_EQ(holders_of("a"), Leases{ann});
  EXPECT_EQ(release(ann, token), Outcome(Released{0}));
  EXPECT_EQ(holders_of("a"), Leases{});
}

// DESIGN 1 "Asking twice"
TEST_F(CoreLocks, a_lease_waits_behind_itself_only_if_it_asked_to) {
  const auto token = token_of(acquire(ann, {lock("a")}));

  EXPECT_EQ(code_of(acquire(ann, {lock("a")})), Errc::deadlock);
  EXPECT_TRUE(is_queued(acquire(ann, {lock("a")}, SelfConflict::wait)));
  release(ann, token);
  EXPECT_EQ(granted_waiters(), Leases{ann});
}

TEST_F(CoreLocks, an_upgrade_goes_before_the_queue_and_gets_a_new_token) {
  const auto weak = token_of(acquire(ann, {lock("a", LockMode::shared)}));
  const auto other = token_of(acquire(bob, {lock("a", LockMode::shared)}));
  acquire(cid, {lock("a")});

  EXPECT_TRUE(is_queued(acquire(ann, {lock("a")}, SelfConflict::reenter)));
  release(bob, other);

  EXPECT_EQ(granted_waiters(), Leases{ann});
  const auto granted = std::get<Granted>(applied.notices.front().end);
  EXPECT_GT(granted.token, other);
  EXPECT_EQ(granted.count, 2U);
  EXPECT_EQ(code_of(release(ann, weak)), Errc::not_held);
}

TEST_F(CoreLocks, items_of_one_request_are_granted_together_or_not_at_all) {
  const auto token = token_of(acquire(ann, {lock("b")}));

  EXPECT_TRUE(is_queued(acquire(bob, {lock("a"), lock("b"), lock("c")})));
  EXPECT_EQ(holders_of("a"), Leases{});
  EXPECT_TRUE(is_queued(acquire(cid, {lock("c")}))) << "bob is before cid at c";
  release(ann, token);

  EXPECT_EQ(granted_waiters(), Leases{bob});
  const auto bobs = std::get<Granted>(applied.notices.front().end).token;
  EXPECT_EQ(holders_of("a"), Leases{bob});
  release(bob, bobs);
  EXPECT_EQ(granted_waiters(), Leases{cid});
}

TEST_F(CoreLocks, a_single_item_of_several_can_be_released) {
  const auto token = token_of(acquire(ann, {lock("a"), lock("b")}));

  EXPECT_EQ(release(ann, "a"), Outcome(Released{}));

  EXPECT_EQ(holders_of("a"), Leases{});
  EXPECT_EQ(holders_of("b"), Leases{ann});
  EXPECT_EQ(release(ann, token), Outcome(Released{}));
  EXPECT_EQ(holders_of("b"), Leases{});
}

TEST_F(CoreLocks, ranges_conflict_where_they_overlap) {
  acquire(ann, {keys("users", "a", "m")});

  EXPECT_EQ(code_of(try_acquire(bob, {keys("users", "k", "z")})), Errc::would_block);
  token_of(try_acquire(bob, {keys("users", "m", "z")}));
  token_of(try_acquire(bob, {keys("orders", "a", "z")}));
  token_of(try_acquire(bob, {lock("users")}));
}

TEST_F(CoreLocks, two_ranges_of_one_space_are_one_request) {
  const auto token = token_of(acquire(ann, {keys("users", "a", "c"), keys("users", "x", "z")}));

  EXPECT_EQ(code_of(try_acquire(bob, {keys("users", "b", "d")})), Errc::would_block);
  apply(Release{
      .lease = ann, .request = fresh(), .what = Target{"users", BytesRange::half_open("a", "c")}});
  token_of(try_acquire(bob, {keys("users", "b", "d")}));
  release(ann, token);
  EXPECT_EQ(holders_of(Resource{"users", ResourceKind::space}), Leases{bob});
}

TEST_F(CoreLocks, a_semaphore_admits_up_to_its_capacity_in_order) {
  const auto two = token_of(acquire(ann, {permits("s", 2, 3)}));
  EXPECT_TRUE(is_queued(acquire(bob, {permits("s", 2, 3)})));

  EXPECT_EQ(code_of(try_acquire(cid, {permits("s", 1, 3)})), Errc::would_block)
      << "one is free, but bob is next";
  acquire(cid, {permits("s", 1, 3)});
  release(ann, two);

  EXPECT_EQ(granted_waiters(), (Leases{bob, cid}));
}

TEST_F(CoreLocks, the_first_holder_fixes_kind_and_capacity) {
  acquire(ann, {permits("s", 1, 3)});
  acquire(ann, {lock("a")});

  EXPECT_EQ(code_of(acquire(bob, {permits("s", 1, 4)})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(bob, {lock("s")})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(bob, {permits("a", 1, 3)})), Errc::invalid_argument);
}

TEST_F(CoreLocks, an_operator_can_take_a_lock_away) {
  acquire(ann, {lock("a"), lock("b")});
  acquire(bob, {lock("a")});

  EXPECT_EQ(apply(ForceRelease{.resource = resource("a")}).outcome, Outcome(Forced{1}));

  EXPECT_EQ(event_types(), (Types{EventType::forced, EventType::granted}));
  EXPECT_EQ(holders_of("a"), Leases{bob});
  EXPECT_EQ(holders_of("b"), Leases{ann});
  EXPECT_EQ(code_of(apply(ForceRelease{.resource = resource("z")}).outcome), Errc::not_held);
}

// 002.096, 002-B6: every acquisition has its own id, so also two of one lease have two places in
// the queue, and the queue is served in the order of arrival.
TEST_F(CoreLocks, each_acquisition_has_its_own_position_in_a_fair_queue) {
  auto token = token_of(acquire(ann, {lock("a")}));
  const auto first = std::get<Queued>(acquire(bob, {lock("a")}));
  const auto second = std::get<Queued>(acquire(bob, {lock("a")}, SelfConflict::wait));
  const auto third = std::get<Queued>(acquire(cid, {lock("a")}));
  EXPECT_EQ(first.position, 1U);
  EXPECT_EQ(second.position, 2U);
  EXPECT_EQ(second.predecessor, first.ticket);
  EXPECT_EQ(third.predecessor, second.ticket);

  Leases served;
  for (const auto holder : {ann, bob, bob}) {
    release(holder, token);
    served.push_back(applied.notices.front().lease);
    token = std::get<Granted>(applied.notices.front().end).token;
  }

  EXPECT_EQ(served, (Leases{bob, bob, cid}));
}

}  // namespace
}  // namespace tenure::core
