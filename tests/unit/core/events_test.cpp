#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreEvents : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob}); }
  const EventRing& ring() const { return machine.state().events; }
};

// 002-B20: acquire, queue and release are events with holder and token.
TEST_F(CoreEvents, every_change_is_an_event_with_holder_and_token) {
  apply(Acquire{.lease = ann,
                .request = RequestId{1},
                .items = {lock("a")},
                .owner = "ann",
                .metadata = "why"});

  ASSERT_EQ(applied.events.size(), 1U);
  const auto& event = applied.events.front();
  EXPECT_EQ(event.type, EventType::granted);
  EXPECT_EQ(event.item, lock("a"));
  EXPECT_EQ(event.lease, ann);
  EXPECT_EQ(event.request, RequestId{1});
  EXPECT_EQ(event.token, token_of(applied.outcome));
  EXPECT_EQ(event.owner, "ann");
  EXPECT_EQ(event.metadata, "why");
  EXPECT_EQ(event.revision, applied.revision);
  acquire(bob, {lock("a")});
  EXPECT_EQ(event_types(), Types{EventType::queued});
}

// 002.085, 002.086, 002.101
TEST_F(CoreEvents, the_ring_replays_from_a_revision) {
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a")});
  const auto start = machine.state().revision;
  release(ann, token);

  const auto events = ring().since(start);

  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].type, EventType::queued);
  EXPECT_EQ(events[1].type, EventType::released);
  EXPECT_EQ(events[2].type, EventType::granted);
}

// 002.085, 002.090: bounded; what is dropped is dropped by whole revisions.
TEST_F(CoreEvents, the_ring_is_bounded_and_reports_its_compact_revision) {
  machine = StateMachine(Limits{.events_max = 3});
  grant_leases({ann});
  acquire(ann, {lock("a"), lock("b")});
  const auto first = applied.revision;
  acquire(ann, {lock("c")});
  EXPECT_EQ(ring().all().size(), 3U);

  acquire(ann, {lock("d")});

  EXPECT_EQ(ring().all().size(), 2U);
  EXPECT_EQ(ring().compact_revision(), first);
}

// 002.090, 002.035
TEST_F(CoreEvents, compaction_forgets_up_to_a_revision_but_not_the_future) {
  acquire(ann, {lock("a")});
  const auto first = applied.revision;
  acquire(ann, {lock("b")});

  apply(Compact{first});
  EXPECT_EQ(ring().compact_revision(), first);
  EXPECT_EQ(ring().all().size(), 1U);

  apply(Compact{Revision{1'000'000}});
  EXPECT_LT(ring().compact_revision(), applied.revision);
  acquire(ann, {lock("c")});
  EXPECT_EQ(ring().all().size(), 1U);
}

// What expires in the same step as a compaction is older than the command, and goes with it.
TEST_F(CoreEvents, a_compaction_in_the_step_of_an_expiry_is_consistent) {
  acquire(ann, {lock("a")});

  apply(Compact{Revision{1'000'000}}, seconds(30));

  EXPECT_EQ(event_types(), Types{EventType::expired});
  EXPECT_EQ(ring().all().size(), 0U);
}

}  // namespace
}  // namespace tenure::core
