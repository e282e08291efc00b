#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(WatchContract);

TEST_P(WatchContract, a_watch_reports_events_in_order) {
  auto watch = ann.watch("jobs/", {.scope = WatchScope::prefix});
  if (!supports(backends::Capability::watches)) {
    EXPECT_EQ(watch.error(), Errc::unsupported);
    return;
  }
  ASSERT_TRUE(watch);
  auto guard = bob.mutex("jobs/1", {.metadata = "nightly"}).lock().value();
  EXPECT_TRUE(bob.mutex("other").lock());
  EXPECT_TRUE(guard.unlock());

  const auto granted = watch->next_for(test_timeout).value();
  const auto released = watch->next_for(test_timeout).value();

  EXPECT_EQ(granted.type, LockEventType::granted);
  EXPECT_EQ(granted.name, "jobs/1");
  EXPECT_EQ(granted.owner, "bob");
  EXPECT_EQ(granted.metadata, "nightly");
  EXPECT_EQ(granted.token, guard.token());
  EXPECT_EQ(released.type, LockEventType::released);
  EXPECT_EQ(released.token, guard.token());
  EXPECT_GT(released.revision, granted.revision);
  EXPECT_EQ(watch->next_for(0ms).error(), Errc::timed_out);
}

// The hold is older than the watch; its end must still be reported with the token of the holder.
TEST_P(WatchContract, the_end_of_an_older_hold_is_reported_with_its_token) {
  if (!supports(backends::Capability::watches)) {
    return;
  }
  auto guard = bob.mutex("a").lock().value();
  auto watch = ann.watch("a").value();
  EXPECT_EQ(ann.holders("a").value().front().token, guard.token());

  EXPECT_TRUE(guard.unlock());

  const auto released = watch.next_for(test_timeout).value();
  EXPECT_EQ(released.type, LockEventType::released);
  EXPECT_EQ(released.token, guard.token());
}

TEST_P(WatchContract, a_watch_is_a_range_that_ends_when_it_is_stopped) {
  if (!supports(backends::Capability::watches)) {
    return;
  }
  auto watch = ann.watch("a").value();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(bob.mutex("a").lock());
  }
  std::vector<LockEventType> seen;

  for (const auto& event : watch) {
    seen.push_back(event.type);
    if (seen.size() == 4) {
      watch.stop();
    }
  }

  using enum LockEventType;
  EXPECT_EQ(seen, (std::vector{granted, released, granted, released}));
  EXPECT_FALSE(watch.error());
  EXPECT_EQ(watch.next().error(), Errc::cancelled);
}

TEST_P(WatchContract, a_blocked_read_of_a_watch_can_be_cancelled) {
  if (!supports(backends::Capability::watches)) {
    return;
  }
  auto watch = ann.watch("a").value();
  std::stop_source hurry;
  const std::jthread canceller([&] { hurry.request_stop(); });

  EXPECT_EQ(watch.next(hurry.get_token()).error(), Errc::cancelled);
}

TEST_P(WatchContract, a_slow_watch_is_closed_with_its_resume_revision) {
  if (!supports(backends::Capability::watches)) {
    return;
  }
  auto watch = ann.watch("a", {.events_max = 1}).value();
  EXPECT_TRUE(bob.mutex("a").lock());

  EXPECT_TRUE(eventually([&] { return ann.holders("a").value().empty(); }));
  EXPECT_TRUE(watch.next_for(test_timeout));
  const auto cut = watch.next_for(test_timeout);

  EXPECT_EQ(cut.error(), Errc::resource_exhausted);
  EXPECT_NE(cut.error().detail.find("from revision"), std::string::npos);
  EXPECT_EQ(ann.watch("a", {.events_max = 0}).error(), Errc::invalid_argument);
}

TEST_P(WatchContract, observers_see_the_leader_its_value_and_the_hand_over) {
  if (!supports(backends::Capability::watches)) {
    return;
  }
  const auto anns = ann.election("cluster/leader");
  const auto bobs = bob.election("cluster/leader");
  EXPECT_FALSE(bobs.leader().value());
  auto changes = bobs.observe().value();
  auto leadership = anns.campaign("10.0.0.1:80").value();

  EXPECT_EQ(bobs.leader().value()->metadata, "10.0.0.1:80");
  EXPECT_EQ(bobs.try_campaign("10.0.0.2:80").error(), Errc::would_block);
  EXPECT_EQ(changes.next_for(test_timeout).value().metadata, "10.0.0.1:80");
  EXPECT_TRUE(Election::resign(leadership));
  const auto successor = bobs.campaign("10.0.0.2:80").value();

  EXPECT_EQ(anns.leader().value()->owner, "bob");
  EXPECT_GT(successor.token(), leadership.token());
}

}  // namespace
}  // namespace tenure::test
