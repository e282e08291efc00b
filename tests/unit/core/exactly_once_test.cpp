#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreExactlyOnce : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob, cid}); }

  Acquire request(LeaseId lease, std::uint64_t id, Queue queue = Queue::wait) const {
    return {.lease = lease, .request = RequestId{id}, .items = {lock("a")}, .queue = queue};
  }
};

// property X, 002-B32: one request id never yields two tokens.
TEST_F(CoreExactlyOnce, a_retry_of_a_granted_request_gets_the_same_token) {
  const auto first = apply(request(ann, 1)).outcome;

  EXPECT_EQ(apply(request(ann, 1)).outcome, first);
  EXPECT_EQ(applied.events, std::vector<Event>{});
  EXPECT_EQ(machine.state().locks.holds().size(), 1U);
}

// 002-B32, 002.103: re-attaches to its place.
TEST_F(CoreExactlyOnce, a_retry_of_a_waiting_request_keeps_its_place) {
  apply(request(ann, 1));
  const auto first = apply(request(bob, 1)).outcome;
  apply(request(cid, 1));

  EXPECT_EQ(apply(request(bob, 1)).outcome, first);
  EXPECT_EQ(machine.state().locks.waits().size(), 2U);
}

TEST_F(CoreExactlyOnce, a_retry_after_the_wait_was_granted_gets_that_grant) {
  const auto token = token_of(apply(request(ann, 1)).outcome);
  apply(request(bob, 1));
  release(ann, token);
  const auto granted = std::get<Granted>(applied.notices.front().end);

  EXPECT_EQ(apply(request(bob, 1)).outcome, Outcome(granted));
}

TEST_F(CoreExactlyOnce, would_block_stays_would_block_for_that_id) {
  const auto token = token_of(apply(request(ann, 1)).outcome);
  apply(request(bob, 1, Queue::skip));
  release(ann, token);

  EXPECT_EQ(code_of(apply(request(bob, 1, Queue::skip)).outcome), Errc::would_block);
  token_of(apply(request(bob, 2, Queue::skip)).outcome);
}

TEST_F(CoreExactlyOnce, a_retried_release_counts_down_once) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(ann, {lock("a")}, SelfConflict::reenter);
  const Release command{.lease = ann, .request = RequestId{50}, .what = token};

  EXPECT_EQ(apply(command).outcome, Outcome(Released{1}));
  EXPECT_EQ(apply(command).outcome, Outcome(Released{1}));
  EXPECT_EQ(holders_of("a"), Leases{ann});
}

TEST_F(CoreExactlyOnce, an_id_is_not_used_for_two_kinds_of_requests) {
  const auto token = token_of(apply(request(ann, 1)).outcome);

  EXPECT_EQ(code_of(apply(Release{.lease = ann, .request = RequestId{1}, .what = token}).outcome),
            Errc::invalid_argument);
  apply(Release{.lease = ann, .request = RequestId{2}, .what = token});
  EXPECT_EQ(code_of(apply(request(ann, 2)).outcome), Errc::invalid_argument);
}

// 002-B21: a command to leave the queue.
TEST_F(CoreExactlyOnce, an_abandoned_wait_is_never_granted) {
  const auto token = token_of(apply(request(ann, 1)).outcome);
  apply(request(bob, 1));
  apply(request(cid, 1));

  EXPECT_EQ(code_of(apply(Abandon{bob, RequestId{1}}).outcome), Errc::cancelled);
  EXPECT_EQ(event_types(), Types{EventType::abandoned});
  release(ann, token);

  EXPECT_EQ(granted_waiters(), Leases{cid});
  EXPECT_EQ(code_of(apply(request(bob, 1)).outcome), Errc::cancelled);
}

TEST_F(CoreExactlyOnce, an_abandoned_wait_unblocks_the_waiters_behind_it) {
  apply(Acquire{.lease = ann, .request = RequestId{1}, .items = {lock("a", LockMode::shared)}});
  apply(request(bob, 1));
  apply(Acquire{.lease = cid, .request = RequestId{1}, .items = {lock("a", LockMode::shared)}});

  apply(Abandon{bob, RequestId{1}});

  EXPECT_EQ(granted_waiters(), Leases{cid});
}

// lease rule L7: an acquire that times out leaves nothing behind, whichever arrives first.
TEST_F(CoreExactlyOnce, a_late_abandon_returns_the_grant_and_an_early_one_prevents_it) {
  const auto granted = apply(request(ann, 1)).outcome;
  EXPECT_EQ(apply(Abandon{ann, RequestId{1}}).outcome, granted);

  apply(Abandon{bob, RequestId{9}});
  EXPECT_EQ(code_of(apply(request(bob, 9)).outcome), Errc::cancelled);
}

TEST_F(CoreExactlyOnce, the_oldest_answers_are_forgotten_first_and_live_requests_never) {
  machine = StateMachine(Limits{.answers_per_lease_max = 3});
  grant_leases({ann, bob});
  const auto first = apply(request(ann, 1)).outcome;
  for (std::uint64_t id = 2; id <= 6; ++id) {
    apply(Abandon{ann, RequestId{id}});
  }

  EXPECT_EQ(apply(request(ann, 1)).outcome, first);
  const auto remembers = [&](std::uint64_t id) {
    return machine.state().leases.find(ann)->history.find(RequestId{id}).has_value();
  };
  EXPECT_FALSE(remembers(3));
  EXPECT_TRUE(remembers(4));
  release(ann, token_of(first));
  EXPECT_TRUE(remembers(1)) << "over, but the latest";
}

// A history that looks only for requests up to the newest would take the older one for a new one.
TEST_F(CoreExactlyOnce, retries_are_recognised_in_any_order_of_request_ids) {
  const auto later = token_of(apply(request(ann, 9)).outcome);
  release(ann, later);
  const auto earlier = token_of(apply(request(ann, 5)).outcome);

  EXPECT_EQ(token_of(apply(request(ann, 5)).outcome), earlier);
  EXPECT_EQ(token_of(apply(request(ann, 9)).outcome), later);
  EXPECT_EQ(holders_of("a"), Leases{ann});
}

// Refusals are kept apart from the other answers, and go with them.
TEST_F(CoreExactlyOnce, a_refusal_is_repeated_after_a_snapshot_until_it_is_forgotten) {
  acquire(ann, {lock("a")});
  apply(request(bob, 1, Queue::skip));
  machine = StateMachine(decode(encode(machine.state())).value());

  EXPECT_EQ(code_of(apply(request(bob, 1, Queue::skip)).outcome), Errc::would_block);

  auto limits = machine.state().limits;
  limits.answers_per_lease_max = 1;
  apply(SetLimits{limits});
  apply(request(bob, 2, Queue::skip));
  EXPECT_EQ(machine.state().leases.find(bob)->history.size(), 1U);
  EXPECT_TRUE(machine.state().leases.find(bob)->history.has_sound_index());
  EXPECT_TRUE(is_queued(apply(request(bob, 1)).outcome));
}

TEST_F(CoreExactlyOnce, answers_are_forgotten_with_the_lease) {
  apply(request(ann, 1));
  apply(RevokeLease{ann});
  grant_leases({ann});

  const auto token = token_of(apply(request(ann, 1)).outcome);

  EXPECT_EQ(token.get(), applied.revision.get()) << "a new grant";
}

}  // namespace
}  // namespace tenure::core
