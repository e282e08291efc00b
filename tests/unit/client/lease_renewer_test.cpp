#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "backends/memory/backend.hpp"
#include "client/factory.hpp"
#include "client/session.hpp"
#include "support/manual_clock.hpp"
#include "support/silent_backend.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// Memory backend that calls a function after each acquire, before the reply is processed.
class GrantingBackend : public backends::MemoryBackend {
 public:
  using Then = std::function<void(backends::Listener&, LeaseId, backends::RequestId)>;

  GrantingBackend(std::shared_ptr<backends::MemoryStore> store, Then then)
      : MemoryBackend(std::move(store)), then_(std::move(then)) {}
  void start(backends::Listener& listener) override {
    listener_ = &listener;
    MemoryBackend::start(listener);
  }
  void acquire(backends::AcquireRequest request, Done<backends::Granted> done) override {
    const auto lease = request.lease;
    const auto id = request.request;
    MemoryBackend::acquire(std::move(request), std::move(done));
    then_(*listener_, lease, id);
  }

 private:
  Then then_;
  backends::Listener* listener_ = nullptr;
};

/// Memory backend whose answers to renewals lack the result of the last lease.
class TruncatingBackend : public backends::MemoryBackend {
 public:
  using MemoryBackend::MemoryBackend;
  void renew_leases(std::vector<LeaseId> leases, Done<backends::Renewed> done) override {
    leases.pop_back();
    MemoryBackend::renew_leases(std::move(leases), std::move(done));
  }
};

/// Client with a manual clock and a service with the real one: a loss in these tests is found by
/// the client's clock alone.
class LeaseRenewal : public ::testing::Test {
 protected:
  Client open(ConnectOptions options = {}) {
    session = std::make_shared<detail::Session>(
        std::make_unique<SilentBackend>(std::make_unique<backends::MemoryBackend>(store), network),
        std::move(options), clock);
    return detail::Factory::make<Client>(session);
  }

  ManualClock clock;
  std::shared_ptr<backends::MemoryStore> store = std::make_shared<backends::MemoryStore>();
  std::shared_ptr<SilentBackend::Network> network = std::make_shared<SilentBackend::Network>();
  std::shared_ptr<detail::Session> session;
};

// 000.089, 000.090, 000.093
TEST_F(LeaseRenewal, a_lease_is_renewed_after_a_third_of_its_ttl) {
  const auto client = open();
  auto guard = client.mutex("a", {.ttl = 30s}).lock().value();
  const auto before = guard.valid_until();

  clock.advance(10s);

  EXPECT_TRUE(eventually([&] { return guard.valid_until() > before - 1s; }));
  clock.advance(15s);
  EXPECT_TRUE(guard.owns_lock());
}

TEST_F(LeaseRenewal, after_a_pause_longer_than_its_lease_no_call_of_a_holder_succeeds) {
  const auto client = open();
  auto guard = client.mutex("a", {.ttl = 30s}).lock().value();
  auto other = client.mutex("b", {.ttl = 30s}).lock().value();
  auto third = client.mutex("c", {.ttl = 30s}).lock().value();

  // As after SIGSTOP and SIGCONT: time has passed, and the renewal thread may or may not have run.
  clock.advance(31s);

  EXPECT_TRUE(guard.lost().stop_requested());
  EXPECT_FALSE(guard.owns_lock());
  EXPECT_EQ(other.unlock().error(), Errc::lease_lost);
  EXPECT_EQ(third.extend().error(), Errc::lease_lost);
}

// The service granted the lease in time, but it expired in the pool before its next use.
TEST_F(LeaseRenewal, an_idle_lease_that_has_expired_is_not_reused) {
  const auto client = open();
  EXPECT_TRUE(client.mutex("a", {.ttl = 30s}).lock());
  clock.advance(31s);

  const auto guard = client.mutex("a", {.ttl = 30s}).lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_TRUE(guard->owns_lock());
}

TEST_F(LeaseRenewal, a_risk_is_reported_once_before_the_loss) {
  const auto client = open();
  std::atomic<int> warnings = 0;
  std::atomic<int> losses = 0;
  auto guard = client
                   .mutex("a", {.ttl = 30s,
                                .on_at_risk =
                                    [&](const AtRisk& risk) {
                                      EXPECT_EQ(risk.name, "a");
                                      ++warnings;
                                    }})
                   .lock()
                   .value();
  const std::stop_callback on_lost(guard.lost(), [&] { ++losses; });
  network->is_silent = true;

  clock.advance(20s);
  EXPECT_TRUE(eventually([&] { return warnings == 1; }));
  EXPECT_EQ(guard.state(), GuardState::at_risk);
  EXPECT_TRUE(guard.owns_lock());
  clock.advance(4s);
  EXPECT_EQ(losses, 0);
  clock.advance(6s);

  EXPECT_TRUE(eventually([&] { return losses == 1; }));
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(guard.state(), GuardState::lost);
}

// After a partition the service may have granted a lost lock to another owner.
TEST_F(LeaseRenewal, a_late_confirmation_does_not_revive_a_lost_lease) {
  const auto client = open();
  auto guard = client.mutex("a", {.ttl = 30s}).lock().value();
  network->is_silent = true;
  clock.advance(30s);
  EXPECT_EQ(guard.state(), GuardState::lost);

  network->is_silent = false;

  EXPECT_EQ(guard.extend().error(), Errc::lease_lost);
  EXPECT_EQ(guard.state(), GuardState::lost);
}

// A lease without a result must not be taken for a renewed one.
TEST_F(LeaseRenewal, an_answer_without_the_result_of_a_lease_confirms_nothing) {
  session = std::make_shared<detail::Session>(std::make_unique<TruncatingBackend>(store),
                                              ConnectOptions{}, clock);
  const auto client = detail::Factory::make<Client>(session);
  auto guard = client.mutex("a", {.ttl = 30s}).lock().value();
  const auto before = guard.valid_until();
  clock.advance(15s);

  EXPECT_EQ(guard.extend().error(), Errc::unavailable);

  // A steady time point, which the advance of the manual clock brought 15 s closer.
  EXPECT_LT(guard.valid_until(), before - 14s);
  EXPECT_EQ(guard.state(), GuardState::at_risk);
}

// A pooled lease is reused by the next hold, and revoked if no hold needs it.
TEST_F(LeaseRenewal, an_unused_lease_is_revoked) {
  const auto client = open();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(client.mutex("a", {.ttl = 30s}).lock());
  }
  EXPECT_EQ(session->renewer().size(), 1U);

  EXPECT_TRUE(eventually([&] {
    clock.advance(10s);
    return session->renewer().size() == 0;
  }));

  EXPECT_TRUE(client.mutex("a", {.ttl = 30s}).lock());
}

// Batching: one request renews all leases.
TEST_F(LeaseRenewal, many_leases_are_renewed_in_one_request) {
  const auto client = open();
  std::vector<Guard> guards;
  for (int i = 0; i < 500; ++i) {
    guards.push_back(client.mutex("m/" + std::to_string(i), {.ttl = 30s}).lock().value());
  }
  for (int i = 0; i < 9; ++i) {
    clock.advance(10s);
    EXPECT_TRUE(eventually([&] {
      return guards.back().valid_until() > std::chrono::steady_clock::now() + 25s &&
             guards.front().valid_until() > std::chrono::steady_clock::now() + 25s;
    }));
  }

  EXPECT_TRUE(guards.front().owns_lock());
  EXPECT_TRUE(guards.back().owns_lock());
}

// Without a batch window, leases that started one after the other stay separate requests.
TEST_F(LeaseRenewal, leases_that_are_due_soon_are_renewed_together) {
  const auto client = open();
  const auto first = client.mutex("a", {.ttl = 30s}).lock().value();
  clock.advance(1s);
  const auto second = client.mutex("b", {.ttl = 30s}).lock().value();
  clock.advance(2s);
  const auto third = client.mutex("c", {.ttl = 30s}).lock().value();
  const auto is_fresh = [](const Guard& guard) {
    return guard.valid_until() > std::chrono::steady_clock::now() + 28s;
  };

  clock.advance(7s);

  EXPECT_TRUE(eventually([&] { return is_fresh(first) && is_fresh(second); }));
  EXPECT_FALSE(is_fresh(third));
}

// 003.006
TEST_F(LeaseRenewal, a_changed_ttl_changes_the_renewal_interval) {
  const auto client = open();
  auto guard = client.mutex("a", {.ttl = 600s}).lock().value();
  ASSERT_TRUE(guard.extend(30s));
  EXPECT_EQ(session->renewer().size(), 1U);

  for (int i = 0; i < 5; ++i) {
    clock.advance(10s);
    EXPECT_TRUE(
        eventually([&] { return guard.valid_until() > std::chrono::steady_clock::now() + 25s; }));
  }

  EXPECT_TRUE(guard.owns_lock());
  EXPECT_EQ(session->renewer().size(), 1U);
}

// 003.006: without a reply, the renewer must wake at the end of the shorter TTL.
TEST_F(LeaseRenewal, an_unconfirmed_shorter_ttl_ends_the_lease) {
  const auto client = open({.request_timeout = 1ms});
  std::atomic<bool> is_lost = false;
  auto guard = client.mutex("a", {.ttl = 600s, .renewals_per_ttl = 0}).lock().value();
  const std::stop_callback on_lost(guard.lost(), [&] { is_lost = true; });
  network->is_silent = true;
  EXPECT_EQ(guard.extend(30s).error(), Errc::unavailable);

  clock.advance(29s);
  EXPECT_TRUE(guard.owns_lock());
  clock.advance(1s);

  EXPECT_TRUE(eventually([&] { return is_lost.load(); }));
}

// An operator forces the release between the grant and its processing by the client.
TEST(Grants, a_forced_release_before_the_grant_arrives_makes_the_lock_lost) {
  const auto session = std::make_shared<detail::Session>(
      std::make_unique<GrantingBackend>(std::make_shared<backends::MemoryStore>(),
                                        [](auto& listener, auto lease, auto request) {
                                          listener.hold_force_released(lease, request);
                                        }),
      ConnectOptions{});

  auto guard = detail::Factory::make<Client>(session).mutex("a").lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_FALSE(guard->owns_lock());
  EXPECT_EQ(guard->state(), GuardState::lost);
  EXPECT_TRUE(guard->lost().stop_requested());
}

TEST_F(LeaseRenewal, a_rejected_lease_reports_the_cause) {
  const auto client = open();
  const detail::LeaseRecord::Terms too_short{.id = LeaseId{5}, .ttl = 1ms, .renewals_per_ttl = 3};
  std::optional<Errc> reported;

  const auto lease = session->new_lease(too_short, [&](const Result<void>& answer) {
    reported = answer ? std::nullopt : std::optional(answer.error().code);
  });

  EXPECT_EQ(reported, Errc::invalid_argument);
  EXPECT_TRUE(lease->is_lost());
  EXPECT_EQ(lease->refused()->code, Errc::invalid_argument);
}

}  // namespace
}  // namespace tenure::test
