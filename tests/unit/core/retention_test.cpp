#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreRetention : public CoreTest {
 protected:
  CoreRetention() { machine = StateMachine({}, version_2); }

  [[nodiscard]] std::size_t finished(LeaseId lease) const {
    return machine.state().leases.find(lease)->history.finished();
  }
  Outcome release_again(RequestId request, FencingToken token, ClusterTime after = {}) {
    return apply(Release{.lease = ann, .request = request, .what = token}, after).outcome;
  }
  Outcome grant(LeaseId id, RequestId request, ClusterTime after = {}) {
    return apply(GrantLease{.id = id, .request = request, .ttl = seconds(3600)}, after).outcome;
  }
};

TEST_F(CoreRetention, a_retry_is_recognised_for_ten_minutes) {
  grant(ann, RequestId{1});
  const auto token = token_of(acquire(ann, {lock("x")}));
  const RequestId request{7};
  EXPECT_EQ(release_again(request, token), Outcome(Released{}));

  EXPECT_EQ(release_again(request, token, std::chrono::minutes(9)), Outcome(Released{}));
}

TEST_F(CoreRetention, answers_are_forgotten_after_ten_minutes) {
  grant(ann, RequestId{1});
  for (int i = 0; i < 10; ++i) {
    release(ann, FencingToken{99});
  }
  EXPECT_EQ(finished(ann), 10U);

  apply(Tick{}, std::chrono::minutes(11));
  release(ann, FencingToken{99});
  // A few in each step.
  EXPECT_EQ(finished(ann), 7U);
  apply(RenewLeases{{ann}});
  EXPECT_EQ(finished(ann), 3U);
  apply(RenewLeases{{ann}});
  EXPECT_EQ(finished(ann), 1U);
  EXPECT_EQ(applied.answers_dropped, 0U);
}

TEST_F(CoreRetention, answers_that_are_forgotten_before_their_time_are_counted) {
  apply(SetLimits{{.answers_per_lease_max = 2}});
  grant(ann, RequestId{1});
  release(ann, FencingToken{99});
  release(ann, FencingToken{99});
  EXPECT_EQ(applied.answers_dropped, 0U);

  release(ann, FencingToken{99});

  EXPECT_EQ(finished(ann), 2U);
  EXPECT_EQ(applied.answers_dropped, 1U);
}

// A late copy of the request must not make the lease again.
TEST_F(CoreRetention, ended_leases_are_remembered_for_ten_minutes_however_many_end) {
  const RequestId request{5};
  for (std::uint64_t id = 1; id <= 2 * LeaseTable::ended_max_1; ++id) {
    grant(LeaseId{id}, request);
    apply(RevokeLease{LeaseId{id}});
  }
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(grant(ann, request, std::chrono::minutes(9))));

  apply(Tick{}, std::chrono::minutes(2));
  for (std::uint64_t id = 1; id <= LeaseTable::ended_max_1; ++id) {
    grant(LeaseId{1'000'000 + id}, request);
    apply(RevokeLease{LeaseId{1'000'000 + id}});
  }

  EXPECT_EQ(machine.state().leases.ended().size(), LeaseTable::ended_max_1);
  EXPECT_TRUE(std::holds_alternative<LeaseGranted>(grant(ann, request)));
}

TEST_F(CoreRetention, version_1_keeps_a_number_of_ended_leases) {
  const RequestId request{5};
  for (std::uint64_t id = 1; id <= LeaseTable::ended_max_1 + 10; ++id) {
    grant(LeaseId{id}, request);
    apply(RevokeLease{LeaseId{id}});
  }

  apply(SetClusterVersion{version_1});

  EXPECT_EQ(machine.state().leases.ended().size(), LeaseTable::ended_max_1);
  EXPECT_TRUE(decode(encode(machine.state())).has_value());
}

}  // namespace
}  // namespace tenure::core
