#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/state_machine.hpp"
#include "server/events/watch_hub.hpp"

namespace tenure::server {
namespace {

using namespace std::chrono_literals;

/// A follower that lags, and the leader whose snapshot it installs.
class Restored : public testing::Test {
 protected:
  /// Acquires or releases the lock "n": at the leader alone, or with a notification of the hub.
  void change_lock(bool is_notified) {
    const core::Command command =
        is_held_
            ? core::Command(core::Release{.lease = core::LeaseId{1}, .what = core::Target{"n"}})
            : core::Command(core::Acquire{.lease = core::LeaseId{1},
                                          .request = core::RequestId{++request_},
                                          .items = {{.name = "n", .claim = core::Whole{}}}});
    is_held_ = !is_held_;
    const auto applied = leader_.apply(command, {.time = 1ms});
    if (is_notified) {
      hub_.applied(applied, leader_.state());
      hub_.settled();
    }
  }
  [[nodiscard]] std::shared_ptr<Watch> watch() {
    return *hub_.add({.key = "n"}, leader_.state(), [this] { ++notifications_; });
  }
  static std::vector<core::Revision> revisions(Watch& watch) {
    std::vector<core::Revision> found;
    for (const auto& event : watch.take(100)) {
      found.push_back(event->revision);
    }
    return found;
  }
  void SetUp() override {
    leader_.apply(core::GrantLease{.id = core::LeaseId{1}, .ttl = 10s}, {.time = 1ms});
  }

  core::StateMachine leader_{core::Limits{.events_max = 4}};
  WatchHub hub_;
  std::uint64_t request_ = 0;
  bool is_held_ = false;
  int notifications_ = 0;
};

// 002.086
// A follower that installs a snapshot instead of entries must not skip their events.
TEST_F(Restored, a_watch_receives_the_events_before_the_snapshot) {
  const auto watch = this->watch();
  change_lock(true);
  change_lock(false);
  change_lock(false);

  hub_.restored(leader_.state());
  change_lock(true);

  EXPECT_EQ(revisions(*watch), (std::vector{core::Revision{2}, core::Revision{3}, core::Revision{4},
                                            core::Revision{5}}));
  EXPECT_FALSE(watch->cancelled_at().has_value());
}

TEST_F(Restored, a_watch_is_cancelled_if_the_snapshot_lacks_its_events) {
  const auto watch = this->watch();
  change_lock(true);
  const auto taken = revisions(*watch);
  for (int i = 0; i < 6; ++i) {
    change_lock(false);
  }
  notifications_ = 0;

  hub_.restored(leader_.state());

  EXPECT_EQ(notifications_, 1);
  EXPECT_EQ(watch->cancelled_at(), core::Revision{3}) << "the watch has delivered revision 2";
}

}  // namespace
}  // namespace tenure::server
