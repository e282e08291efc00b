#include "backends/tenured/known_holds.hpp"

#include <gtest/gtest.h>

namespace tenure::backends::tenured {
namespace {

using Tokens = std::vector<std::uint64_t>;

v1::Acquire acquire_of(const std::string& name) {
  v1::Acquire acquire;
  acquire.set_lease_id(1);
  acquire.add_items()->set_name(name);
  return acquire;
}

v1::Granted granted_by(std::uint64_t token, std::uint32_t count = 1) {
  v1::Granted granted;
  granted.set_fencing_token(token);
  granted.set_count(count);
  return granted;
}

v1::Release release_of(std::uint64_t token) {
  v1::Release release;
  release.set_lease_id(1);
  release.set_fencing_token(token);
  return release;
}

TEST(KnownHolds, a_hold_is_known_from_its_grant_until_its_last_release) {
  KnownHolds holds;
  holds.granted(acquire_of("a"), granted_by(5));
  holds.granted(acquire_of("b"), granted_by(6));
  EXPECT_EQ(holds.tokens(1), (Tokens{5, 6}));
  EXPECT_EQ(holds.tokens(2), Tokens{});

  holds.released(release_of(5));

  EXPECT_EQ(holds.tokens(1), Tokens{6});
}

TEST(KnownHolds, a_reentrant_hold_must_be_released_as_often_as_acquired) {
  KnownHolds holds;
  holds.granted(acquire_of("a"), granted_by(5));
  holds.granted(acquire_of("a"), granted_by(5, 2));
  EXPECT_EQ(holds.tokens(1), (Tokens{5, 5}));

  holds.released(release_of(5));
  EXPECT_EQ(holds.tokens(1), Tokens{5});
  holds.released(release_of(5));
  EXPECT_EQ(holds.tokens(1), Tokens{});
}

// A restored cluster that has the token of before would keep a hold that no caller releases.
TEST(KnownHolds, an_upgrade_replaces_the_token) {
  KnownHolds holds;
  holds.granted(acquire_of("a"), granted_by(5));
  holds.granted(acquire_of("b"), granted_by(6));

  holds.granted(acquire_of("b"), granted_by(9, 2));

  EXPECT_EQ(holds.tokens(1), (Tokens{5, 9, 9}));
}

TEST(KnownHolds, a_force_released_or_expired_hold_is_forgotten) {
  KnownHolds holds;
  holds.granted(acquire_of("a"), granted_by(5));
  holds.granted(acquire_of("b"), granted_by(6));

  holds.force_released(1, 5);
  EXPECT_EQ(holds.tokens(1), Tokens{6});
  holds.lease_ended(1);
  EXPECT_EQ(holds.tokens(1), Tokens{});
}

}  // namespace
}  // namespace tenure::backends::tenured
