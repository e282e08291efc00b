#include "support/store/memory_store.hpp"

#include <atomic>
#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// Listener that records its notifications in order.
struct Diary : server::Listener {
  void applied(const core::Applied& what, const core::State&) override {
    for (const auto& event : what.events) {
      types.push_back(event.type);
    }
  }
  void role_changed(const server::LogPosition& log) override { leads = log.is_leader; }

  std::vector<core::EventType> types;
  bool leads = false;
};

core::Acquire lock(std::uint64_t lease, std::uint64_t request) {
  return {
      .lease = core::LeaseId{lease}, .request = core::RequestId{request}, .items = {{.name = "a"}}};
}

TEST(MemoryStore, applies_commands_to_the_state_machine_and_notifies_listeners) {
  Diary diary;
  MemoryStore store;
  store.listen(diary);
  store.start();
  ASSERT_TRUE(store.ask(core::GrantLease{.id = core::LeaseId{7}, .ttl = 10s}));

  const auto decided = store.ask(lock(7, 1));

  ASSERT_TRUE(decided);
  EXPECT_TRUE(std::holds_alternative<core::Granted>(decided->outcome));
  EXPECT_TRUE(diary.leads);
  EXPECT_EQ(diary.types, std::vector{core::EventType::granted});
  store.look([](const server::View& view) {
    EXPECT_EQ(view.state.locks.locks().size(), 1U);
    EXPECT_EQ(view.log.applied_index, 2U);
  });
}

TEST(MemoryStore, leases_expire_when_the_test_advances_the_clock) {
  Diary diary;
  MemoryStore store;
  store.listen(diary);
  store.start();
  ASSERT_TRUE(store.ask(core::GrantLease{.id = core::LeaseId{7}, .ttl = 10s}));
  ASSERT_TRUE(store.ask(lock(7, 1)));

  store.advance(10s);

  EXPECT_EQ(diary.types.back(), core::EventType::expired);
}

TEST(MemoryStore, leases_expire_without_further_operations) {
  MemoryStore store({.time = Time::real});
  std::promise<void> expired;
  struct ExpiryListener : server::Listener {
    explicit ExpiryListener(std::promise<void>& expired) : expired_(expired) {}
    void applied(const core::Applied& what, const core::State&) override {
      if (!what.events.empty() && what.events[0].type == core::EventType::expired) {
        expired_.set_value();
      }
    }
    std::promise<void>& expired_;
  } listener(expired);
  store.listen(listener);
  store.start();
  ASSERT_TRUE(store.ask(core::GrantLease{.id = core::LeaseId{7}, .ttl = 100ms}));
  ASSERT_TRUE(store.ask(lock(7, 1)));

  EXPECT_EQ(expired.get_future().wait_for(30s), std::future_status::ready);
}

TEST(MemoryStore, a_paused_store_applies_nothing_until_it_is_resumed_or_stopped) {
  MemoryStore store;
  store.start();
  std::atomic<int> decided = 0;
  std::atomic<int> lost = 0;
  const auto count = [&](const Result<server::Decided>& result) { ++(result ? decided : lost); };

  store.pause();
  store.propose(core::Tick{}, count);
  store.look([&](const server::View&) { EXPECT_EQ(decided, 0); });
  store.resume();
  EXPECT_EQ(decided, 1);
  store.pause();
  store.propose(core::Tick{}, count);
  store.stop();

  EXPECT_EQ(decided, 1);
  EXPECT_EQ(lost, 1);
}

TEST(MemoryStore, a_follower_and_a_full_disk_reject_commands) {
  MemoryStore store;
  store.start();

  store.set_space(false);
  EXPECT_EQ(store.ask(core::Tick{}).error(), Errc::resource_exhausted);
  store.lead(false);
  EXPECT_EQ(store.ask(core::Tick{}).error(), Errc::unavailable);
}

}  // namespace
}  // namespace tenure::test
