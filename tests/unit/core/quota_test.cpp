#include <gtest/gtest.h>

#include "core/usage.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreQuota : public CoreTest {
 protected:
  CoreQuota() { machine = StateMachine({}, version_2); }

  void set_limits(const Limits& limits) {
    EXPECT_TRUE(std::holds_alternative<Done>(apply(SetLimits{limits}).outcome));
  }
  Outcome grant_lease(LeaseId id, std::string user = {}) {
    return apply(GrantLease{.id = id, .ttl = seconds(30), .user = std::move(user)}).outcome;
  }
  [[nodiscard]] const Usage& usage() const { return machine.state().leases.usage(); }
  /// Acquires other names until it is refused, and returns how.
  std::optional<Errc> fill(LeaseId lease) {
    for (int i = 0; i < 200; ++i) {
      const auto outcome =
          acquire(lease, {lock(std::to_string(lease.get()) + "/" + std::to_string(i))});
      if (!std::holds_alternative<Granted>(outcome)) {
        return code_of(outcome);
      }
    }
    return std::nullopt;
  }
};

TEST_F(CoreQuota, an_empty_state_takes_no_bytes) {
  EXPECT_EQ(usage().total(), Bytes{});
}

TEST_F(CoreQuota, every_record_counts_a_constant_and_its_strings) {
  grant_lease(ann, "anna");
  EXPECT_EQ(usage().total().records, bytes_per_lease + 4);

  const auto token = token_of(acquire(ann, {lock("name")}));
  const auto hold = bytes_per_hold + bytes_per_name +
                    std::string(
                        "name"
                        "owner 1")
                        .size();
  EXPECT_EQ(usage().total().records, bytes_per_lease + 4 + hold);
  EXPECT_EQ(usage().of_user("anna"), usage().total());

  release(ann, token);
  EXPECT_EQ(usage().total().records, bytes_per_lease + 4);
  // The acquisition and the release.
  EXPECT_EQ(usage().total().answers, 2 * bytes_per_answer);

  apply(RevokeLease{ann});
  EXPECT_EQ(usage(), Usage{});
}

TEST_F(CoreQuota, a_range_counts_its_keys_in_the_index_too) {
  grant_lease(ann);
  const auto before = usage().total().records;

  acquire(ann, {keys("s", "aa", "bbb")});

  EXPECT_EQ(usage().total().records - before,
            bytes_per_hold + bytes_per_range + 1 + 2 * 5 + std::string("owner 1").size());
}

TEST_F(CoreQuota, a_full_state_refuses_acquisitions_and_leases_until_something_is_released) {
  set_limits({.state_bytes_max = 16 << 10});
  grant_lease(ann);
  EXPECT_EQ(fill(ann), Errc::resource_exhausted);
  EXPECT_LE(usage().total().records, Quota{16 << 10}.records_max());

  EXPECT_EQ(code_of(grant_lease(bob)), Errc::resource_exhausted);
  EXPECT_TRUE(std::holds_alternative<Renewed>(apply(RenewLeases{{ann}}).outcome));
  EXPECT_TRUE(std::holds_alternative<Released>(release(ann, "1/0")));
  EXPECT_TRUE(std::holds_alternative<Released>(release(ann, "1/1")));

  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(ann, {lock("again")})));
}

TEST_F(CoreQuota, a_user_is_refused_beyond_its_share_and_others_are_not) {
  set_limits({.state_bytes_per_user_max = 16 << 10});
  grant_lease(ann, "anna");
  grant_lease(bob, "bert");
  grant_lease(cid);
  EXPECT_EQ(fill(ann), Errc::resource_exhausted);

  EXPECT_EQ(code_of(grant_lease(LeaseId{9}, "anna")), Errc::resource_exhausted);
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(bob, {lock("b")})));
  EXPECT_EQ(fill(cid), std::nullopt);
}

// A full state must still admit waiters: their records are counted already.
TEST_F(CoreQuota, a_grant_to_a_waiter_needs_no_room) {
  set_limits({.state_bytes_max = 16 << 10});
  grant_lease(ann);
  grant_lease(bob);
  const auto token = token_of(acquire(ann, {lock("x")}));
  EXPECT_TRUE(is_queued(acquire(bob, {lock("x")})));
  EXPECT_EQ(fill(ann), Errc::resource_exhausted);

  release(ann, token);

  EXPECT_EQ(holders_of("x"), Leases{bob});
}

TEST_F(CoreQuota, version_1_has_no_quota) {
  machine = StateMachine({}, version_1);
  grant_lease(ann, "anna");
  EXPECT_EQ(usage().of_user("anna"), Bytes{});
  EXPECT_EQ(code_of(acquire(ann, {lock("x")})), std::nullopt);
}

TEST_F(CoreQuota, a_restored_state_counts_the_same) {
  grant_lease(ann, "anna");
  grant_lease(bob, "bert");
  acquire(ann, {lock("x")});
  acquire(bob, {lock("x")});
  try_acquire(bob, {lock("x")});
  acquire(ann, {keys("s", "a", "b"), permits("p", 1, 3)});

  const auto restored = decode(encode(machine.state())).value();

  EXPECT_EQ(restored.leases.usage(), usage());
}

// Releases always work, and are remembered: without this rule a client could fill the memory with
// answers.
TEST_F(CoreQuota, answers_beyond_their_quota_are_forgotten_except_the_last_of_each_lease) {
  set_limits({.state_bytes_max = 64 << 10});
  grant_lease(ann);
  for (int i = 0; i < 400; ++i) {
    release(ann, FencingToken{1});
  }

  const auto& history = machine.state().leases.find(ann)->history;
  EXPECT_GE(history.finished(), Quota::answers_kept);
  EXPECT_LT(usage().total().answers, Quota{64 << 10}.answers_max() + 1024);
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(ann, {lock("x")})));
}

}  // namespace
}  // namespace tenure::core
