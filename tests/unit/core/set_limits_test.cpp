#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreSetLimits : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob, cid}); }

  /// What it complains about, or nothing.
  std::string set(const Limits& limits) {
    const auto outcome = apply(SetLimits{limits}).outcome;
    const auto* refused = std::get_if<Refused>(&outcome);
    EXPECT_TRUE(refused == nullptr || refused->error == Errc::invalid_argument);
    return refused == nullptr ? "" : refused->error.detail;
  }
};

TEST_F(CoreSetLimits, new_limits_count_for_new_requests) {
  EXPECT_EQ(set({.name_bytes_max = 2}), "");

  EXPECT_EQ(code_of(acquire(ann, {lock("abc")})), Errc::invalid_argument);
  token_of(acquire(ann, {lock("ab")}));
}

TEST_F(CoreSetLimits, existing_records_stay_when_limits_shrink) {
  const auto token = token_of(acquire(ann, {lock("a"), lock("b")}));
  acquire(bob, {lock("a")});
  acquire(cid, {lock("a")});

  EXPECT_EQ(
      set({.items_max = 1, .leases_max = 1, .items_per_lease_max = 1, .waiters_per_lock_max = 1}),
      "");

  EXPECT_EQ(machine.state().leases.all().size(), 3U);
  EXPECT_EQ(machine.state().locks.waits().size(), 2U);
  EXPECT_TRUE(decode(encode(machine.state())).has_value());
  EXPECT_EQ(code_of(acquire(ann, {lock("c")})), Errc::resource_exhausted);
  release(ann, token);
  EXPECT_EQ(granted_waiters(), Leases{bob});
}

TEST_F(CoreSetLimits, events_and_answers_beyond_the_new_limits_are_forgotten) {
  for (int i = 0; i < 5; ++i) {
    try_acquire(ann, {lock("a" + std::to_string(i))});
    release(ann, "a" + std::to_string(i));
  }

  EXPECT_EQ(set({.answers_per_lease_max = 2, .events_max = 3}), "");

  EXPECT_EQ(machine.state().events.all().size(), 3U);
  EXPECT_EQ(machine.state().leases.find(ann)->history.finished(), 2U);
}

TEST_F(CoreSetLimits, limits_are_part_of_the_snapshot) {
  set({.name_bytes_max = 7});

  EXPECT_EQ(decode(encode(machine.state()))->limits, machine.state().limits);
}

// A wrong configuration must not stop a cluster: it is refused and the old one stays.
TEST_F(CoreSetLimits, nonsense_is_refused_by_name) {
  EXPECT_EQ(set({.name_bytes_max = 0}), "name_bytes_max: at least 1, at most 1048576");
  EXPECT_EQ(set({.leases_max = 0}), "leases_max: at least 1, at most 1073741824");
  EXPECT_EQ(set({.reentries_max = 0}), "reentries_max: at least 1, at most 1073741824");
  EXPECT_EQ(set({.events_max = ~std::size_t{0}}), "events_max: at least 1, at most 1073741824");
  EXPECT_EQ(set({.ttl_min = seconds(2), .ttl_max = seconds(1)}), "ttl_min: at most ttl_max");
  EXPECT_EQ(set({.ttl_min = ClusterTime{-1}}).substr(0, 23), "ttl_min in microseconds");
  EXPECT_EQ(set({.ttl_max = ClusterTime::max()}).substr(0, 23), "ttl_max in microseconds");
  EXPECT_EQ(machine.state().limits, Limits{});
}

TEST_F(CoreSetLimits, every_limit_has_a_lower_and_an_upper_bound) {
  Limits probe;
  int limits = 0;
  for_each_limit(probe, [&](std::string name, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    const auto good = value;
    ++limits;
    value = Value{};
    EXPECT_EQ(set(probe).substr(0, name.size()), name);
    value = std::numeric_limits<Value>::max();
    if constexpr (std::is_same_v<Value, ClusterTime>) {
      value = ClusterTime::max();
    }
    EXPECT_EQ(set(probe).substr(0, name.size()), name);
    value = good;
  });
  EXPECT_GT(limits, 15);
}

}  // namespace
}  // namespace tenure::core
