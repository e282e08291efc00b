#include <chrono>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "server/raft/versions.hpp"

namespace tenure::server::raft {
namespace {

using core::version_1;
using core::version_2;
using std::chrono::milliseconds;

const std::vector<MemberVersions> upgraded{
    {.announced = Versions{.newest = version_2, .wanted = version_2}}};
const std::vector<MemberVersions> content{
    {.announced = Versions{.newest = version_2, .wanted = version_1}}};

class RaftVersionAgreement : public ::testing::Test {
 protected:
  Time now{std::chrono::seconds(1000)};
  VersionAgreement agreement{milliseconds(10)};
};

TEST_F(RaftVersionAgreement, a_version_that_all_members_want_is_proposed_once) {
  ASSERT_TRUE(agreement.may_choose(now));
  ASSERT_TRUE(agreement.choose(version_1, upgraded));
  EXPECT_FALSE(agreement.may_choose(now)) << "a version is chosen already";

  EXPECT_EQ(agreement.begin_proposal(now), version_2);

  EXPECT_TRUE(agreement.is_in_flight());
  EXPECT_FALSE(agreement.has_chosen());
  EXPECT_FALSE(agreement.may_choose(now + milliseconds(20))) << "one is in flight";
}

TEST_F(RaftVersionAgreement, the_present_version_stays_if_no_member_wants_another) {
  EXPECT_FALSE(agreement.choose(version_1, content));
  EXPECT_FALSE(agreement.has_chosen());
}

// The state machine refuses a version while it holds something that the version cannot express.
TEST_F(RaftVersionAgreement, the_next_proposal_waits_for_the_pause) {
  static_cast<void>(agreement.choose(version_1, upgraded));
  static_cast<void>(agreement.begin_proposal(now));
  agreement.end_proposal();

  EXPECT_FALSE(agreement.may_choose(now + milliseconds(9)));
  EXPECT_TRUE(agreement.may_choose(now + milliseconds(10)));
}

TEST_F(RaftVersionAgreement, a_member_that_ceases_to_lead_forgets_its_choice) {
  static_cast<void>(agreement.choose(version_1, upgraded));

  agreement.cease_to_lead();

  EXPECT_FALSE(agreement.has_chosen());
  EXPECT_TRUE(agreement.may_choose(now));
}

TEST_F(RaftVersionAgreement, a_member_without_a_connection_does_not_count_as_too_old) {
  EXPECT_FALSE(is_too_old(std::nullopt, version_2));
  EXPECT_TRUE(is_too_old(Versions{.newest = version_1, .wanted = version_1}, version_2));
  EXPECT_FALSE(is_too_old(Versions{.newest = version_2, .wanted = version_1}, version_2));
}

}  // namespace
}  // namespace tenure::server::raft
