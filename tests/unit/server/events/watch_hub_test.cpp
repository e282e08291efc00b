#include "server/events/watch_hub.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/state_machine.hpp"

namespace tenure::server {
namespace {

/// A state that retains more events than one part of a replay copies.
class WatchReplay : public testing::Test {
 protected:
  static constexpr std::size_t events = (2 * WatchHub::replay_max) + 100;

  void SetUp() override {
    apply(core::GrantLease{.id = core::LeaseId{1}, .ttl = std::chrono::seconds(10)});
    while (machine_.state().events.all().size() < events) {
      happens();
    }
  }

  void apply(const core::Command& command) {
    const auto applied = machine_.apply(command, {});
    hub_.applied(applied, machine_.state());
    hub_.settled();
  }
  /// Takes or releases a lock.
  void happens() {
    is_held_ = !is_held_;
    if (is_held_) {
      apply(core::Acquire{.lease = core::LeaseId{1},
                          .request = core::RequestId{++request_},
                          .items = {{.name = "n", .claim = core::Whole{}}}});
    } else {
      apply(core::Release{.lease = core::LeaseId{1}, .what = core::Target{"n"}});
    }
  }
  [[nodiscard]] std::shared_ptr<Watch> watch() {
    return *hub_.add({.key = "n", .start = core::Revision{1}, .buffer_events_max = 10},
                     machine_.state(), [this] { ++ready_; });
  }
  [[nodiscard]] static std::vector<core::Revision> take(Watch& watch) {
    std::vector<core::Revision> revisions;
    for (const auto& event : watch.take(2 * events)) {
      revisions.push_back(event->revision);
    }
    return revisions;
  }
  /// The rest of the replay, part by part.
  void replay(Watch& watch, std::vector<core::Revision>& revisions) {
    while (watch.is_replaying()) {
      hub_.replay(watch, machine_.state());
      const auto part = take(watch);
      EXPECT_LE(part.size(), WatchHub::replay_max + 1);
      revisions.insert(revisions.end(), part.begin(), part.end());
    }
  }
  [[nodiscard]] std::vector<core::Revision> remembered() const {
    std::vector<core::Revision> revisions;
    for (const auto& event : machine_.state().events.all().in_order()) {
      revisions.push_back(event.revision);
    }
    return revisions;
  }

  core::StateMachine machine_{core::Limits{.events_max = 2 * events}};
  WatchHub hub_;
  std::uint64_t request_ = 0;
  bool is_held_ = false;
  int ready_ = 0;
};

// A replay runs on the thread of the store, and limits.events_max may be 100 million.
TEST_F(WatchReplay, a_long_replay_is_copied_in_parts) {
  const auto watch = this->watch();
  auto revisions = take(*watch);
  EXPECT_EQ(revisions.size(), WatchHub::replay_max);
  EXPECT_TRUE(watch->is_replaying());

  replay(*watch, revisions);

  EXPECT_EQ(revisions, remembered());
}

TEST_F(WatchReplay, events_during_a_replay_come_once_and_in_order) {
  const auto watch = this->watch();
  auto revisions = take(*watch);
  happens();
  EXPECT_FALSE(watch->has_events()) << "live events follow the replay";

  replay(*watch, revisions);
  happens();

  EXPECT_EQ(ready_, 1);
  const auto last = take(*watch);
  revisions.insert(revisions.end(), last.begin(), last.end());
  EXPECT_EQ(revisions, remembered());
}

TEST_F(WatchReplay, a_replay_of_compacted_events_is_cancelled_with_its_resume_revision) {
  const auto watch = this->watch();
  const auto taken = take(*watch);
  apply(core::Compact{.revision = machine_.state().revision});

  hub_.replay(*watch, machine_.state());

  EXPECT_FALSE(watch->is_replaying());
  ASSERT_TRUE(watch->cancelled_at());
  EXPECT_EQ(*watch->cancelled_at(), core::Revision{taken.back().get() + 1});
  EXPECT_EQ(hub_.cancelled_total(), 1U);
}

}  // namespace
}  // namespace tenure::server
