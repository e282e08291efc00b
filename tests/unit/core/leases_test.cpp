#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

using CoreLeases = CoreTest;

// 002.009-012, 002.019, 002.031, 002.032, 002.082, 002.093
TEST_F(CoreLeases, a_lease_has_every_documented_field) {
  apply(Tick{}, seconds(5));
  apply(GrantLease{.id = ann, .ttl = seconds(30), .client = "service-a", .address = "10.0.0.1"});
  apply(RenewLeases{{ann}}, seconds(10));

  const auto& lease = *machine.state().leases.find(ann);
  EXPECT_EQ(lease.id, ann);
  EXPECT_EQ(lease.ttl, seconds(30));
  EXPECT_EQ(lease.granted, seconds(5));
  EXPECT_EQ(lease.deadline, seconds(45));
  EXPECT_EQ(lease.last_seen, seconds(15));
  EXPECT_EQ(lease.client, "service-a");
  EXPECT_EQ(lease.address, "10.0.0.1");
  EXPECT_EQ(machine.next_deadline(), seconds(45));
}

// 002.031: 0 is automatic.
TEST_F(CoreLeases, the_store_chooses_an_id_for_a_lease_without_one) {
  grant_leases({LeaseId{1}});

  const auto first = std::get<LeaseGranted>(apply(GrantLease{.ttl = seconds(1)}).outcome);
  apply(RevokeLease{first.id});
  const auto second = std::get<LeaseGranted>(apply(GrantLease{.ttl = seconds(1)}).outcome);

  EXPECT_EQ(first.id, LeaseId{2});
  EXPECT_EQ(second.id, LeaseId{3}) << "an id does not come back";
}

// 002-B34: a requested id that is taken.
TEST_F(CoreLeases, an_id_that_is_taken_is_refused_unless_it_is_a_retry) {
  const GrantLease command{.id = ann, .request = RequestId{5}, .ttl = seconds(30), .client = "a"};
  const auto first = apply(command).outcome;

  EXPECT_EQ(apply(command).outcome, first);
  auto other = command;
  other.request = RequestId{6};
  EXPECT_EQ(code_of(apply(other).outcome), Errc::invalid_argument);
}

// Found by the simulation, seed 103442: delayed copies of a GrantLease and of an Acquire
// arrived after the lease had ended, and the lock was granted again, to a client that was gone.
TEST_F(CoreLeases, a_late_copy_of_a_grant_request_does_not_recreate_an_ended_lease) {
  const GrantLease command{.id = ann, .request = RequestId{5}, .ttl = seconds(30)};
  apply(command);
  apply(Tick{}, seconds(30));
  EXPECT_EQ(apply(command).outcome, Outcome(LeaseLost{ann}));

  const GrantLease revoked{.id = bob, .request = RequestId{5}, .ttl = seconds(30)};
  apply(revoked);
  apply(RevokeLease{bob});
  EXPECT_EQ(apply(revoked).outcome, Outcome(LeaseLost{bob}));
  EXPECT_TRUE(machine.state().leases.all().empty());
}

TEST_F(CoreLeases, a_new_request_can_reuse_the_id_of_an_ended_lease) {
  apply(GrantLease{.id = ann, .request = RequestId{5}, .ttl = seconds(30)});
  apply(RevokeLease{ann});
  apply(GrantLease{.id = ann, .request = RequestId{6}, .ttl = seconds(30)});
  EXPECT_NE(machine.state().leases.find(ann), nullptr);

  // Without a request id, a copy cannot be recognised.
  apply(GrantLease{.id = bob, .ttl = seconds(30)});
  apply(RevokeLease{bob});
  apply(GrantLease{.id = bob, .ttl = seconds(30)});
  EXPECT_NE(machine.state().leases.find(bob), nullptr);
}

TEST_F(CoreLeases, a_bounded_number_of_ended_leases_is_remembered) {
  const auto end_one = [this](std::uint64_t id) {
    const GrantLease command{.id = LeaseId{id}, .request = RequestId{1}, .ttl = seconds(30)};
    apply(command);
    apply(RevokeLease{command.id});
    return command;
  };
  const auto first = end_one(1);
  for (std::uint64_t id = 2; id <= LeaseTable::ended_max_1; ++id) {
    end_one(id);
  }
  EXPECT_EQ(apply(first).outcome, Outcome(LeaseLost{first.id}));

  end_one(LeaseTable::ended_max_1 + 1);

  EXPECT_TRUE(std::holds_alternative<LeaseGranted>(apply(first).outcome));
  EXPECT_EQ(machine.state().leases.ended().size(), LeaseTable::ended_max_1);
}

// 002.069, 002.064, 002.033
TEST_F(CoreLeases, a_renewal_restarts_the_ttl) {
  grant_leases({ann});
  acquire(ann, {lock("a")});

  apply(RenewLeases{{ann}}, seconds(29));
  apply(Tick{}, seconds(29));

  EXPECT_EQ(holders_of("a"), Leases{ann});
}

// 002.070, 002.063, 002.073, 002.080, 002.082, 002.095
TEST_F(CoreLeases, a_lease_expires_when_a_stamp_reaches_its_deadline) {
  grant_leases({ann});
  grant_leases({bob}, seconds(60));
  const auto old = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a")});

  apply(Tick{}, seconds(30) - ClusterTime{1});
  EXPECT_EQ(holders_of("a"), Leases{ann});
  apply(Tick{}, ClusterTime{1});

  EXPECT_EQ(granted_waiters(), Leases{bob});
  EXPECT_GT(std::get<Granted>(applied.notices.front().end).token, old);
  EXPECT_EQ(event_types(), (Types{EventType::expired, EventType::granted}));
  EXPECT_EQ(machine.state().leases.find(ann), nullptr);
}

// 002.081: the next to expire is known without looking at the others, and each is found by its id.
TEST_F(CoreLeases, the_next_deadline_is_the_earliest_of_all_leases) {
  grant_leases({ann}, seconds(30));
  grant_leases({bob}, seconds(10));
  grant_leases({cid}, seconds(20));
  EXPECT_EQ(machine.next_deadline(), seconds(10));

  apply(RenewLeases{{bob}}, seconds(5));
  EXPECT_EQ(machine.next_deadline(), seconds(15));
  apply(RenewLeases{{bob}}, seconds(9));
  EXPECT_EQ(machine.next_deadline(), seconds(20)) << "cid's";
  apply(RevokeLease{cid});
  EXPECT_EQ(machine.next_deadline(), seconds(24));
  EXPECT_EQ(machine.state().leases.find(bob)->deadline, seconds(24));
  apply(RevokeLease{bob});
  apply(RevokeLease{ann});
  EXPECT_EQ(machine.next_deadline(), std::nullopt);
}

// 002.083 as corrected (002-B24, 002-B26): a Tick at the next deadline, and nothing scans. It goes
// through the log like any other command; until it is applied the lease lives.
TEST_F(CoreLeases, a_tick_at_each_next_deadline_expires_all_leases_in_time) {
  grant_leases({ann}, seconds(30));
  grant_leases({bob}, seconds(10));
  acquire(ann, {lock("a")});
  acquire(bob, {lock("b")});
  std::vector<ClusterTime> ticks;

  while (const auto deadline = machine.next_deadline()) {
    ticks.push_back(*deadline);
    apply(Tick{}, *deadline - machine.state().now);
    EXPECT_EQ(event_types(), Types{EventType::expired});
  }

  EXPECT_EQ(ticks, (std::vector<ClusterTime>{seconds(10), seconds(30)}));
  EXPECT_TRUE(machine.state().leases.all().empty());
}

// 002.099: a renewal every third of the ttl; two in a row may be lost, three may not.
TEST_F(CoreLeases, renewals_every_third_of_the_ttl_tolerate_two_missed_ones) {
  grant_leases({ann}, seconds(30));
  apply(RenewLeases{{ann}}, seconds(10));

  apply(Tick{}, seconds(10));  // one is missed
  apply(Tick{}, seconds(9));   // and another
  apply(RenewLeases{{ann}}, seconds(1) - ClusterTime{1});
  EXPECT_EQ(std::get<Renewed>(applied.outcome).answers[0].ttl, seconds(30));

  apply(RenewLeases{{ann}}, seconds(30));
  EXPECT_EQ(std::get<Renewed>(applied.outcome).answers[0].ttl, std::nullopt) << "three";
}

// 002.104, 002.082 "lease not found": the deadline is checked before the renewal.
TEST_F(CoreLeases, a_renewal_at_the_deadline_comes_too_late) {
  grant_leases({ann, bob}, seconds(30));
  apply(RenewLeases{{bob}}, seconds(10));

  apply(RenewLeases{{ann, bob}}, seconds(20));

  EXPECT_EQ(applied.outcome, Outcome(Renewed{{{ann, std::nullopt}, {bob, seconds(30)}}}));
}

// 002-B14: the waits of a lease that ends go before its holds.
TEST_F(CoreLeases, an_expired_waiter_is_never_granted) {
  grant_leases({ann, bob});
  grant_leases({cid}, seconds(60));
  acquire(ann, {lock("a")});
  acquire(ann, {lock("a")}, SelfConflict::wait);
  acquire(bob, {lock("a")});
  acquire(cid, {lock("a")});

  apply(Tick{}, seconds(30));

  EXPECT_EQ(granted_waiters(), Leases{cid});
  EXPECT_EQ(holders_of("a"), Leases{cid});
}

// STYLE core: effects on several locks happen in name order.
TEST_F(CoreLeases, holds_and_waits_of_an_expired_lease_end_in_name_order) {
  grant_leases({ann});
  grant_leases({bob}, seconds(60));
  acquire(ann, {lock("c")});
  acquire(ann, {lock("a")});
  acquire(bob, {lock("b")});
  acquire(ann, {lock("b")});

  apply(Tick{}, seconds(30));

  ASSERT_EQ(applied.events.size(), 3U);
  EXPECT_EQ(applied.events[0].item.name, "b") << "the wait first";
  EXPECT_EQ(applied.events[1].item.name, "a");
  EXPECT_EQ(applied.events[2].item.name, "c");
}

// 002.071, 002.073
TEST_F(CoreLeases, revoking_ends_everything_under_the_lease) {
  grant_leases({ann, bob});
  acquire(ann, {lock("a")});
  acquire(bob, {lock("a")});

  EXPECT_EQ(apply(RevokeLease{ann}).outcome, Outcome(Done{}));

  EXPECT_EQ(event_types(), (Types{EventType::revoked, EventType::granted}));
  EXPECT_EQ(granted_waiters(), Leases{bob});
  EXPECT_EQ(apply(RevokeLease{ann}).outcome, Outcome(LeaseLost{ann}));
}

// 002-B15, lease rule L8
TEST_F(CoreLeases, a_command_for_a_lost_lease_changes_nothing) {
  EXPECT_EQ(acquire(ann, {lock("a")}), Outcome(LeaseLost{ann}));
  EXPECT_EQ(release(ann, "a"), Outcome(LeaseLost{ann}));
  EXPECT_EQ(apply(Abandon{ann, RequestId{1}}).outcome, Outcome(LeaseLost{ann}));
}

// 002.105: the same client in a new lease is another owner.
TEST_F(CoreLeases, a_new_lease_of_the_same_client_does_not_inherit) {
  apply(GrantLease{.id = ann, .ttl = seconds(30), .client = "same"});
  apply(GrantLease{.id = bob, .ttl = seconds(30), .client = "same"});
  const auto token = token_of(acquire(ann, {lock("a")}));

  EXPECT_EQ(code_of(release(bob, token)), Errc::not_held);
  EXPECT_TRUE(is_queued(acquire(bob, {lock("a")}, SelfConflict::reenter)));
}

// 002-B22, 002-B23
TEST_F(CoreLeases, time_never_goes_back) {
  grant_leases({ann});
  apply(Tick{}, seconds(20));
  machine.apply(RenewLeases{{ann}}, {.time = seconds(1)});

  EXPECT_EQ(machine.state().now, seconds(20));
  EXPECT_EQ(machine.state().leases.find(ann)->deadline, seconds(50));
}

// 002-B31: a store restored from an old backup continues beyond all tokens it may have lost.
TEST_F(CoreLeases, a_stamp_can_lift_the_revision_also_for_what_expires) {
  grant_leases({ann});
  grant_leases({bob}, seconds(60));
  acquire(ann, {lock("a")});
  acquire(bob, {lock("a")});

  applied = machine.apply(Tick{}, {.time = seconds(30), .revision = Revision{1000}});

  EXPECT_EQ(granted_waiters(), Leases{bob});
  EXPECT_GE(std::get<Granted>(applied.notices.front().end).token, FencingToken{1000});
  EXPECT_EQ(machine.apply(Tick{}, {.revision = Revision{5}}).revision.get(),
            applied.revision.get() + 1);
}

TEST_F(CoreLeases, extreme_stamps_do_not_overflow) {
  grant_leases({ann});

  machine.apply(Tick{}, {.time = ClusterTime::max(), .revision = Revision{~0ULL}});
  machine.apply(GrantLease{.id = ann, .ttl = seconds(30)}, {.time = ClusterTime::max()});
  machine.apply(Tick{}, {.time = ClusterTime::min()});

  EXPECT_EQ(invariants::check(machine.state()), std::vector<std::string>{});
  EXPECT_NE(machine.state().leases.find(ann), nullptr);
}

}  // namespace
}  // namespace tenure::core
