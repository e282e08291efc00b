#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/contract/queue.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(LossContract);

// 000.091, 000.092, 000.094, 000.096, 000-B6, 000-B8
TEST_P(LossContract, a_force_released_lock_stays_lost) {
  auto guard = ann.mutex("a").lock().value();
  std::atomic<bool> is_notified = false;
  const std::stop_callback on_lost(guard.lost(), [&] { is_notified = true; });

  ASSERT_TRUE(service->force_release("a"));

  EXPECT_TRUE(eventually([&] { return is_notified.load(); }));
  EXPECT_EQ(guard.state(), GuardState::lost);
  EXPECT_FALSE(guard.owns_lock());
  EXPECT_EQ(guard.extend().error(), Errc::lease_lost);
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
  EXPECT_EQ(guard.unlock().error(), Errc::not_held);
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

TEST_P(LossContract, lost_does_not_fire_for_a_lock_that_was_unlocked) {
  auto guard = ann.mutex("a").lock().value();
  const auto lost = guard.lost();

  EXPECT_TRUE(guard.unlock());
  EXPECT_FALSE(service->force_release("a"));

  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(guard.state(), GuardState::released);
}

// 000.089, 000.093, 002.099: a lease is renewed for as long as its guard lives.
TEST_P(LossContract, a_guard_outlives_its_ttl_while_it_is_renewed) {
  // Two thirds of it are for a machine that is busy.
  auto guard = ann.mutex("a", {.ttl = 900ms}).lock().value();
  const auto first_end = guard.valid_until();

  EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > first_end + 50ms; }));

  EXPECT_TRUE(guard.owns_lock());
  EXPECT_FALSE(bob.mutex("a").try_lock());
  EXPECT_TRUE(guard.unlock());
}

// 000-B7, 000.099, 003-B12: first a warning, then loss by our own clock, before the service.
TEST_P(LossContract, a_silent_network_is_a_risk_first_and_then_a_loss) {
  const auto network = std::make_shared<Network>();
  const auto cut = connect({.owner = "cut"}, network);
  std::atomic<bool> is_warned = false;
  auto guard = cut.mutex("a", {.ttl = 900ms,
                               .on_at_risk =
                                   [&](const AtRisk& risk) {
                                     EXPECT_EQ(risk.name, "a");
                                     EXPECT_GT(risk.left, 0ms);
                                     is_warned = true;
                                   }})
                   .lock()
                   .value();
  std::atomic<bool> is_notified = false;
  const std::stop_callback on_lost(guard.lost(), [&] { is_notified = true; });

  network->is_silent = true;

  EXPECT_TRUE(eventually([&] { return is_notified.load(); }));
  EXPECT_TRUE(is_warned);
  EXPECT_EQ(guard.state(), GuardState::lost);
  // Never later than the service: it gives the lock to others only afterwards.
  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
  EXPECT_EQ(guard.unlock().error(), Errc::lease_lost);
}

// 000.091, 000.092: doubt is not loss.
TEST_P(LossContract, a_renewal_that_succeeds_late_but_in_time_prevents_the_loss) {
  const auto network = std::make_shared<Network>();
  const auto cut = connect({.owner = "cut"}, network);
  std::atomic<bool> is_warned = false;
  auto guard =
      // A third of it is left after the warning; enough for a machine that is busy.
      cut.mutex("a", {.ttl = 2s, .on_at_risk = [&](const AtRisk&) { is_warned = true; }})
          .lock()
          .value();

  network->is_silent = true;
  EXPECT_TRUE(eventually([&] { return is_warned.load(); }));
  network->is_silent = false;

  EXPECT_TRUE(eventually([&] { return guard.state() != GuardState::at_risk; }));
  EXPECT_EQ(guard.state(), GuardState::held);
  EXPECT_FALSE(guard.lost().stop_requested());
}

// 000.019, 003.009: the lease is not renewed, so it expires.
TEST_P(LossContract, a_lock_without_renewal_ends_with_its_ttl) {
  auto guard = ann.mutex("a", {.ttl = 500ms, .renewals_per_ttl = 0}).lock().value();

  const auto next = bob.mutex("a").lock();

  ASSERT_TRUE(next);
  EXPECT_EQ(guard.state(), GuardState::lost);
  EXPECT_TRUE(guard.lost().stop_requested());
  if (supports(backends::Capability::fencing)) {
    EXPECT_GT(next->token(), guard.token());
  }
}

// 000.100: unknown is not refused.
TEST_P(LossContract, a_service_that_does_not_answer_is_unavailable) {
  const auto network = std::make_shared<Network>();
  const auto cut = connect({.owner = "cut", .request_timeout = 20ms}, network);
  auto held = cut.mutex("b").lock().value();
  network->is_silent = true;

  EXPECT_EQ(cut.mutex("a").try_lock_for(10ms).error(), Errc::unavailable);
  EXPECT_EQ(cut.lease().error(), Errc::unavailable);
  EXPECT_EQ(cut.holders("a").error(), Errc::unavailable);
  EXPECT_EQ(held.extend().error(), Errc::unavailable);
  EXPECT_EQ(held.unlock().error(), Errc::unavailable);
  EXPECT_EQ(held.state(), GuardState::released);
}

// 000-B13, 000-B22: a grant without a receiver must not hold the lock for ever.
TEST_P(LossContract, an_abandoned_wait_does_not_delay_other_waiters) {
  const auto network = std::make_shared<Network>();
  const auto cut = connect({.owner = "cut", .request_timeout = 10ms}, network);
  auto guard = ann.mutex("a").lock().value();
  QueueEvents queue(*service, ann, "a");
  std::optional<Errc> end;
  {
    const std::jthread waiter([&] {
      // Long enough to be seen in the queue.
      const auto mine = cut.mutex("a", {.ttl = 1500ms}).try_lock_for(1500ms);
      end = mine ? std::nullopt : std::optional(mine.error().code);
    });
    ASSERT_TRUE(queue.one_joins());
    network->is_silent = true;
  }
  EXPECT_TRUE(end == Errc::unavailable || end == Errc::lease_lost);
  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(bob.mutex("a").try_lock_for(test_timeout));
}

// 000.063, 000-B18: a wait keeps its place for longer than its ttl, without polling.
TEST_P(LossContract, a_wait_outlives_its_ttl) {
  auto guard = ann.mutex("a").lock().value();
  std::optional<AcquisitionReport> report;
  {
    QueueEvents queue(*service, ann, "a");
    const std::jthread waiter([&] {
      const auto mine = bob.mutex("a", {.ttl = 300ms}).lock();
      report = mine ? std::optional(mine->report()) : std::nullopt;
    });
    ASSERT_TRUE(queue.one_joins());
    const auto over = std::chrono::steady_clock::now() + 450ms;
    EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > over; }));
    EXPECT_TRUE(guard.unlock());
  }

  ASSERT_TRUE(report);
  EXPECT_GE(report->waited, 450ms);
}

// Destroying the last handle releases everything at once, waits included.
TEST_P(LossContract, a_destroyed_client_leaves_no_locks) {
  {
    const auto short_lived = connect({.owner = "cid"});
    const auto guard = short_lived.mutex("a").lock().value();
  }

  auto next = bob.mutex("a").try_lock_for(test_timeout);
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_TRUE(next->unlock());
  EXPECT_TRUE(bob.holders("a").value().empty());
}

// What a process that dies held comes free.
TEST_P(LossContract, locks_of_a_killed_process_expire) {
  if (!supports(backends::Capability::outlives_process)) {
    // Declared: the service dies with the process, so no other can meet it.
    EXPECT_EQ(service->url(), "");
    return;
  }
#ifdef TENURE_HOLDER
  ASSERT_NE(service->url(), "");
  int out[2] = {};
  ASSERT_EQ(::pipe(out), 0);
  const auto holder = ::fork();
  if (holder == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::execl(TENURE_HOLDER, TENURE_HOLDER, service->url().c_str(), "a", nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  char letter = 0;
  ASSERT_EQ(::read(out[0], &letter, 1), 1);  // It holds.
  ::close(out[0]);
  EXPECT_EQ(ann.mutex("a").try_lock().error(), Errc::would_block);

  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);

  EXPECT_TRUE(ann.mutex("a").try_lock_for(test_timeout));
#else
  FAIL() << "which program is to be killed?";
#endif
}

}  // namespace
}  // namespace tenure::test
