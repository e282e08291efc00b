#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreSetTtl : public CoreTest {
 protected:
  CoreSetTtl() { grant_leases({ann}); }

  Outcome set_ttl(LeaseId lease, ClusterTime ttl, ClusterTime after = {}) {
    return apply(SetTtl{.lease = lease, .request = fresh(), .ttl = ttl}, after).outcome;
  }
  [[nodiscard]] ClusterTime deadline() const { return machine.state().leases.find(ann)->deadline; }
};

Outcome set_to(LeaseId lease, std::optional<ClusterTime> ttl) {
  return Renewed{{{.id = lease, .ttl = ttl}}};
}

// 003.006
TEST_F(CoreSetTtl, a_new_ttl_applies_at_once_and_to_later_renewals) {
  EXPECT_EQ(set_ttl(ann, seconds(60), seconds(10)), set_to(ann, seconds(60)));
  EXPECT_EQ(deadline(), seconds(70));

  apply(RenewLeases{{ann}}, seconds(20));

  EXPECT_EQ(applied.outcome, set_to(ann, seconds(60)));
  EXPECT_EQ(deadline(), seconds(90));
  EXPECT_EQ(machine.state().leases.find(ann)->last_seen, seconds(30));
}

// 003.006: a holder can shorten its ttl, so that the next waiter waits less if the holder dies.
TEST_F(CoreSetTtl, a_shorter_ttl_ends_the_lease_sooner) {
  grant_leases({bob}, seconds(60));
  acquire(ann, {lock("a")});
  acquire(bob, {lock("a")});

  set_ttl(ann, seconds(1), seconds(5));
  EXPECT_EQ(machine.next_deadline(), seconds(6));
  apply(Tick{}, seconds(1));

  EXPECT_EQ(holders_of("a"), Leases{bob});
}

TEST_F(CoreSetTtl, a_new_ttl_for_a_lost_lease_is_answered_like_a_renewal) {
  EXPECT_EQ(set_ttl(LeaseId{99}, seconds(1)), set_to(LeaseId{99}, std::nullopt));
  EXPECT_EQ(set_ttl(ann, seconds(60), seconds(30)), set_to(ann, std::nullopt));
}

TEST_F(CoreSetTtl, a_ttl_beyond_the_limits_is_refused_and_changes_nothing) {
  const auto& limits = machine.state().limits;

  EXPECT_EQ(code_of(set_ttl(ann, limits.ttl_min - ClusterTime{1}, seconds(1))),
            Errc::invalid_argument);
  EXPECT_EQ(code_of(set_ttl(ann, limits.ttl_max + ClusterTime{1})), Errc::invalid_argument);
  EXPECT_EQ(code_of(set_ttl(ann, ClusterTime{-1})), Errc::invalid_argument);
  EXPECT_EQ(deadline(), seconds(30));
  EXPECT_EQ(set_ttl(ann, limits.ttl_min), set_to(ann, limits.ttl_min));
  EXPECT_EQ(set_ttl(ann, limits.ttl_max), set_to(ann, limits.ttl_max));
}

// A delayed copy must not shorten a ttl that was extended since: the holder would rely on the lease
// after the service let it expire.
TEST_F(CoreSetTtl, a_copy_that_comes_late_changes_nothing) {
  const SetTtl shorter{.lease = ann, .request = RequestId{50}, .ttl = seconds(1)};
  EXPECT_EQ(apply(shorter).outcome, set_to(ann, seconds(1)));
  set_ttl(ann, seconds(60));

  EXPECT_EQ(apply(shorter).outcome, set_to(ann, seconds(1)));

  EXPECT_EQ(deadline(), seconds(60));
  EXPECT_EQ(machine.state().leases.find(ann)->ttl, seconds(60));
}

TEST_F(CoreSetTtl, an_id_is_not_used_for_another_kind_of_request) {
  apply(SetTtl{.lease = ann, .request = RequestId{50}, .ttl = seconds(1)});

  apply(Release{.lease = ann, .request = RequestId{50}, .what = FencingToken{1}});
  EXPECT_EQ(code_of(applied.outcome), Errc::invalid_argument);
  apply(Acquire{.lease = ann, .request = RequestId{51}, .items = {lock("a")}});
  apply(SetTtl{.lease = ann, .request = RequestId{51}, .ttl = seconds(2)});
  EXPECT_EQ(code_of(applied.outcome), Errc::invalid_argument);
  EXPECT_EQ(machine.state().leases.find(ann)->ttl, seconds(1));
}

// The kind of the remembered answer is newer than the format.
TEST_F(CoreSetTtl, the_snapshot_has_the_ttl_and_the_answer) {
  const SetTtl command{.lease = ann, .request = RequestId{50}, .ttl = seconds(7)};
  apply(command);

  const auto restored = decode(encode(machine.state()));

  ASSERT_TRUE(restored.has_value()) << restored.error().detail;
  EXPECT_EQ(encode(*restored), encode(machine.state()));
  EXPECT_EQ(restored->leases.find(ann)->ttl, seconds(7));
  StateMachine again(*restored);
  EXPECT_EQ(again.apply(command, {}).outcome, set_to(ann, seconds(7)));
}

// Byte by byte, as in docs/reference/snapshot_format.md: logs of today are read tomorrow.
TEST_F(CoreSetTtl, the_log_encodes_a_new_ttl_as_kind_eleven) {
  const Batch batch{
      .commands = {SetTtl{.lease = LeaseId{3}, .request = RequestId{4}, .ttl = ClusterTime{5}}}};

  EXPECT_EQ(encode(batch), std::string("\x01\x00\x00\x01\x0B\x03\x04\x05", 8));
  EXPECT_EQ(decode_batch(encode(batch)).value(), batch);
}

}  // namespace
}  // namespace tenure::core
