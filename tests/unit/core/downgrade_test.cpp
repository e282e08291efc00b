#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/snapshot.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreDowngrade : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob, cid}); }

  Outcome downgrade(LeaseId lease, FencingToken token, LockMode mode = LockMode::shared) {
    return apply(Downgrade{.lease = lease, .request = fresh(), .token = token, .mode = mode})
        .outcome;
  }
  static std::string detail_of(const Outcome& outcome) {
    const auto* refused = std::get_if<Refused>(&outcome);
    return refused == nullptr ? "" : refused->error.detail;
  }
  [[nodiscard]] LockMode mode_held(FencingToken token) const {
    return mode_of(machine.state().locks.find(token)->items.front());
  }
};

constexpr Downgraded to_shared{.mode = LockMode::shared};

// 000-B15, 004-B14: a writer that goes on as a reader.
TEST_F(CoreDowngrade, readers_enter_at_once_and_the_token_stays) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a", LockMode::shared)});
  acquire(cid, {lock("a", LockMode::shared)});

  EXPECT_EQ(downgrade(ann, token), Outcome(to_shared));

  EXPECT_EQ(granted_waiters(), (Leases{bob, cid}));
  EXPECT_EQ(holders_of("a"), (Leases{ann, bob, cid}));
  EXPECT_EQ(mode_held(token), LockMode::shared);
  EXPECT_EQ(event_types(), (Types{EventType::downgraded, EventType::granted, EventType::granted}));
  const auto& event = applied.events.front();
  EXPECT_EQ(event.token, token);
  EXPECT_EQ(event.item, lock("a", LockMode::shared));
  EXPECT_EQ(event.owner, "owner 1");
}

// Queue order: a waiter behind a writer does not overtake it.
TEST_F(CoreDowngrade, a_downgrade_grants_no_reader_behind_a_waiting_writer) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a")});
  acquire(cid, {lock("a", LockMode::shared)});

  downgrade(ann, token);
  EXPECT_EQ(granted_waiters(), Leases{});
  release(ann, token);

  EXPECT_EQ(granted_waiters(), Leases{bob});
}

TEST_F(CoreDowngrade, a_downgrade_of_a_range_grants_readers_of_its_keys) {
  const auto token = token_of(acquire(ann, {keys("s", "b", "d")}));
  acquire(bob, {keys("s", "a", "c", LockMode::shared)});
  acquire(cid, {keys("s", "c", "e")});

  EXPECT_EQ(downgrade(ann, token), Outcome(to_shared));

  EXPECT_EQ(granted_waiters(), Leases{bob});
  EXPECT_EQ(mode_held(token), LockMode::shared);
  release(ann, token);
  EXPECT_EQ(granted_waiters(), Leases{cid});
}

TEST_F(CoreDowngrade, a_downgrade_to_update_grants_readers_and_no_second_updater) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a", LockMode::shared)});
  acquire(cid, {lock("a", LockMode::update)});

  EXPECT_EQ(downgrade(ann, token, LockMode::update), Outcome(Downgraded{.mode = LockMode::update}));

  EXPECT_EQ(granted_waiters(), Leases{bob});
}

TEST_F(CoreDowngrade, a_downgraded_hold_keeps_its_count_and_can_be_upgraded_again) {
  const auto first = token_of(acquire(ann, {lock("a", LockMode::shared)}));
  const auto second = token_of(acquire(ann, {lock("a")}, SelfConflict::reenter));
  ASSERT_GT(second, first);

  downgrade(ann, second);
  EXPECT_EQ(machine.state().locks.find(second)->count, 2U);
  const auto third = acquire(ann, {lock("a")}, SelfConflict::reenter);

  EXPECT_GT(token_of(third), second);
  EXPECT_EQ(std::get<Granted>(third).count, 3U);
}

TEST_F(CoreDowngrade, a_downgrade_to_the_present_mode_changes_nothing) {
  const auto token = token_of(acquire(ann, {lock("a", LockMode::shared)}));
  const auto version = machine.state().locks.find(resource("a"))->version();

  EXPECT_EQ(downgrade(ann, token), Outcome(to_shared));

  EXPECT_EQ(event_types(), Types{});
  EXPECT_EQ(machine.state().locks.find(resource("a"))->version(), version);
}

// 002-B32, property X: also after another upgrade.
TEST_F(CoreDowngrade, a_retry_gets_the_same_answer_and_changes_nothing) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  const Downgrade command{.lease = ann, .request = RequestId{50}, .token = token};
  apply(command);
  const auto stronger = token_of(acquire(ann, {lock("a")}, SelfConflict::reenter));

  EXPECT_EQ(apply(command).outcome, Outcome(to_shared));

  EXPECT_EQ(event_types(), Types{});
  EXPECT_EQ(mode_held(stronger), LockMode::exclusive);
}

TEST_F(CoreDowngrade, a_refusal_is_remembered_too) {
  const auto token = token_of(acquire(ann, {lock("a", LockMode::shared)}));
  const Downgrade command{
      .lease = ann, .request = RequestId{50}, .token = token, .mode = LockMode::exclusive};
  ASSERT_EQ(code_of(apply(command).outcome), Errc::invalid_argument);
  acquire(ann, {lock("a")}, SelfConflict::reenter);

  EXPECT_EQ(code_of(apply(command).outcome), Errc::invalid_argument);
}

TEST_F(CoreDowngrade, an_id_is_not_used_for_another_kind_of_request) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  const Downgrade command{.lease = ann, .request = RequestId{50}, .token = token};
  apply(command);

  EXPECT_EQ(code_of(apply(Release{.lease = ann, .request = RequestId{50}, .what = token}).outcome),
            Errc::invalid_argument);
  EXPECT_EQ(
      code_of(apply(Acquire{.lease = ann, .request = RequestId{50}, .items = {lock("b")}}).outcome),
      Errc::invalid_argument);
  EXPECT_EQ(
      code_of(apply(Downgrade{.lease = ann, .request = RequestId{1001}, .token = token}).outcome),
      Errc::invalid_argument);
}

TEST_F(CoreDowngrade, a_downgrade_of_a_hold_of_another_lease_is_refused) {
  const auto token = token_of(acquire(ann, {lock("a")}));

  EXPECT_EQ(code_of(downgrade(bob, token)), Errc::not_held);
  EXPECT_EQ(code_of(downgrade(ann, FencingToken{999})), Errc::not_held);
  EXPECT_EQ(downgrade(LeaseId{99}, token), Outcome(LeaseLost{LeaseId{99}}));
  EXPECT_EQ(mode_held(token), LockMode::exclusive);
}

TEST_F(CoreDowngrade, a_mode_that_is_not_covered_is_refused_with_both_names) {
  const auto token = token_of(acquire(ann, {lock("a", LockMode::update)}));

  EXPECT_EQ(detail_of(downgrade(ann, token, LockMode::exclusive)),
            "it is held in U, which does not cover X");
  EXPECT_EQ(detail_of(downgrade(ann, token, LockMode::intention_exclusive)),
            "it is held in U, which does not cover IX");
  EXPECT_EQ(mode_held(token), LockMode::update);
}

TEST_F(CoreDowngrade, several_items_and_semaphores_are_refused) {
  const auto both = token_of(acquire(ann, {lock("a"), lock("b")}));
  const auto some = token_of(acquire(ann, {permits("p", 1, 3)}));

  EXPECT_EQ(code_of(downgrade(ann, both)), Errc::invalid_argument);
  EXPECT_NE(detail_of(applied.outcome).find("several items"), std::string::npos);
  EXPECT_EQ(code_of(downgrade(ann, some)), Errc::invalid_argument);
  EXPECT_NE(detail_of(applied.outcome).find("semaphore"), std::string::npos);
}

TEST_F(CoreDowngrade, a_hold_whose_upgrade_waits_is_refused) {
  const auto token = token_of(acquire(ann, {lock("a", LockMode::shared)}));
  acquire(bob, {lock("a", LockMode::shared)});
  ASSERT_TRUE(is_queued(acquire(ann, {lock("a")}, SelfConflict::reenter)));

  EXPECT_EQ(code_of(downgrade(ann, token, LockMode::intention_shared)), Errc::invalid_argument);
  EXPECT_NE(detail_of(applied.outcome).find("upgrade"), std::string::npos);
}

// The kind of the event and of the remembered answer are newer than the format.
TEST_F(CoreDowngrade, the_snapshot_has_the_mode_the_event_and_the_answer) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  const Downgrade command{.lease = ann, .request = RequestId{50}, .token = token};
  apply(command);

  const auto restored = decode(encode(machine.state()));

  ASSERT_TRUE(restored.has_value()) << restored.error().detail;
  EXPECT_EQ(encode(*restored), encode(machine.state()));
  EXPECT_EQ(restored->events.all().back().type, EventType::downgraded);
  StateMachine again(*restored);
  EXPECT_EQ(again.apply(command, {}).outcome, Outcome(to_shared));
}

// Byte by byte, as in docs/reference/snapshot_format.md: logs of today are read tomorrow.
TEST_F(CoreDowngrade, the_log_encodes_a_downgrade_as_kind_ten) {
  const Batch batch{.commands = {Downgrade{.lease = LeaseId{3},
                                           .request = RequestId{4},
                                           .token = FencingToken{5},
                                           .mode = LockMode::update}}};

  EXPECT_EQ(encode(batch), std::string("\x01\x00\x00\x01\x0A\x03\x04\x05\x03", 9));
  EXPECT_EQ(decode_batch(encode(batch)).value(), batch);
}

}  // namespace
}  // namespace tenure::core
