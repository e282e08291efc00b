#include "core/restore.hpp"

#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

/// A state with a hold of ann, for which bob waits, restored from a backup.
class CoreRestore : public CoreTest {
 protected:
  CoreRestore() {
    machine = StateMachine({}, version_2);
    grant_leases({ann, bob}, seconds(20));
    held = token_of(acquire(ann, {lock("x")}));
    wait_request = fresh();
    apply(wait_of_bob());
  }

  Acquire wait_of_bob() const {
    return {.lease = bob, .request = wait_request, .items = {lock("x")}};
  }
  /// Through a snapshot, as a seed is.
  void restore(ClusterTime longest = seconds(60)) {
    auto state = decode(encode(machine.state())).value();
    state.revision = Revision{state.revision.get() + 1000};
    begin_restoration(state, longest);
    machine = StateMachine(decode(encode(state)).value());
  }
  Outcome confirm(LeaseId lease, std::vector<FencingToken> tokens) {
    return apply(ConfirmHolds{.lease = lease, .tokens = std::move(tokens)}).outcome;
  }
  static Outcome renewed(LeaseId lease) { return Renewed{{{.id = lease, .ttl = seconds(20)}}}; }
  static Outcome lost(LeaseId lease) { return Renewed{{{.id = lease, .ttl = std::nullopt}}}; }

  FencingToken held;
  RequestId wait_request;
};

TEST_F(CoreRestore, no_lock_is_granted_before_the_longest_ttl_has_passed) {
  restore(seconds(60));
  grant_leases({cid}, seconds(300));

  EXPECT_TRUE(is_queued(acquire(cid, {lock("free")})));
  EXPECT_EQ(code_of(try_acquire(cid, {lock("other")})), Errc::would_block);
  apply(Tick{}, seconds(59));
  EXPECT_EQ(holders_of("free"), Leases{});

  apply(Tick{}, seconds(1));
  EXPECT_EQ(holders_of("free"), Leases{cid});
  EXPECT_FALSE(machine.state().restoration.is_active());
}

TEST_F(CoreRestore, the_end_of_the_restoration_is_a_deadline) {
  apply(RevokeLease{ann});
  apply(RevokeLease{bob});
  restore(seconds(60));

  EXPECT_EQ(machine.next_deadline(), machine.state().now + seconds(60));
}

// The client of an unconfirmed lease may rely on a hold that was granted after the backup.
TEST_F(CoreRestore, a_restored_lease_is_not_renewed_before_its_client_confirms_its_holds) {
  restore();

  const Renewed refused{{{.id = ann, .ttl = std::nullopt, .is_unconfirmed = true}}};
  EXPECT_EQ(apply(RenewLeases{{ann}}).outcome, Outcome(refused));
  EXPECT_EQ(apply(SetTtl{.lease = ann, .request = fresh(), .ttl = seconds(9)}).outcome,
            Outcome(refused));
  apply(Tick{}, seconds(20));

  EXPECT_EQ(machine.state().leases.find(ann), nullptr);
  EXPECT_EQ(applied.events.front().type, EventType::expired);
}

TEST_F(CoreRestore, a_confirmed_hold_survives) {
  restore();

  EXPECT_EQ(confirm(ann, {held}), renewed(ann));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(apply(RenewLeases{{ann}}, seconds(10)).outcome, renewed(ann));
  }

  EXPECT_EQ(holders_of("x"), Leases{ann});
  EXPECT_TRUE(std::holds_alternative<Released>(release(ann, held)));
}

TEST_F(CoreRestore, a_hold_that_its_client_released_after_the_backup_ends) {
  restore();

  EXPECT_EQ(confirm(ann, {}), renewed(ann));

  EXPECT_EQ(holders_of("x"), Leases{});
  EXPECT_EQ(event_types(), Types{EventType::expired});
  EXPECT_TRUE(applied.losses.empty());
}

TEST_F(CoreRestore, a_lease_ends_if_its_client_has_a_hold_that_the_backup_lacks) {
  restore();

  EXPECT_EQ(confirm(ann, {held, FencingToken{77}}), lost(ann));

  EXPECT_EQ(machine.state().leases.find(ann), nullptr);
  EXPECT_EQ(holders_of("x"), Leases{});
}

TEST_F(CoreRestore, a_confirmation_sets_the_release_count_of_a_hold) {
  restore();

  confirm(ann, {held, held});

  EXPECT_EQ(release(ann, held), Outcome(Released{.count_left = 1}));
  EXPECT_EQ(release(ann, held), Outcome(Released{}));
}

TEST_F(CoreRestore, a_second_confirmation_is_a_renewal) {
  restore();
  confirm(ann, {held});

  EXPECT_EQ(confirm(ann, {}), renewed(ann));

  EXPECT_EQ(holders_of("x"), Leases{ann});
}

// It may have been granted after the backup; the lock would stay with a client that forgot it.
TEST_F(CoreRestore, a_restored_wait_is_dropped_and_asking_again_waits_again) {
  restore(seconds(60));
  EXPECT_TRUE(machine.state().locks.waits().empty());

  EXPECT_TRUE(is_queued(apply(wait_of_bob()).outcome));
  confirm(bob, {});
  apply(RenewLeases{{bob}}, seconds(19));
  apply(RenewLeases{{bob}}, seconds(19));
  EXPECT_EQ(holders_of("x"), Leases{});
  apply(RenewLeases{{bob}}, seconds(19));
  apply(Tick{}, seconds(3));

  EXPECT_EQ(holders_of("x"), Leases{bob});
}

TEST_F(CoreRestore, unconfirmed_leases_end_with_the_restoration_at_the_latest) {
  restore(seconds(5));
  grant_leases({cid}, seconds(300));
  acquire(cid, {lock("x")});

  apply(Tick{}, seconds(5));

  EXPECT_EQ(machine.state().leases.find(ann), nullptr);
  EXPECT_EQ(holders_of("x"), Leases{cid});
}

TEST_F(CoreRestore, a_hold_is_not_entered_again_before_it_is_confirmed) {
  restore();

  EXPECT_EQ(code_of(acquire(ann, {lock("x")}, SelfConflict::reenter)), Errc::would_block);
  confirm(ann, {held});
  EXPECT_EQ(acquire(ann, {lock("x")}, SelfConflict::reenter), Outcome(Granted{held, 2}));
}

TEST_F(CoreRestore, a_state_without_its_leases_keeps_its_revision_and_its_ids) {
  auto state = machine.state();
  drop_leases(state);

  EXPECT_TRUE(state.leases.all().empty());
  EXPECT_TRUE(state.locks.locks().empty());
  EXPECT_EQ(state.revision, machine.state().revision);
  EXPECT_EQ(state.leases.usage(), Usage{});
  EXPECT_EQ(invariants::check(state), std::vector<std::string>{});
  EXPECT_TRUE(decode(encode(state)).has_value());
}

}  // namespace
}  // namespace tenure::core
