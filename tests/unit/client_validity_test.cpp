#include <chrono>

#include <gtest/gtest.h>

#include "client/lease_record.hpp"
#include "client/validity.hpp"

namespace tenure::detail {
namespace {

using namespace std::chrono_literals;
using sys::BootTime;

constexpr BootTime start{std::chrono::hours(5)};

// 003-B7: one percent and the constant.
TEST(Validity, the_margin_is_one_percent_and_two_milliseconds) {
  EXPECT_EQ(drift_margin(30s), 302ms);
  EXPECT_EQ(drift_margin(100ms), 3ms);
}

// Who counted from the answer would believe longer than the service does.
TEST(Validity, it_counts_from_before_the_request_left) {
  EXPECT_EQ(valid_until(start, 10s), start + 10s - 102ms);
}

// 000.013, 002.099
TEST(Validity, a_third_of_the_ttl_lies_between_renewals_and_a_third_after_the_warning) {
  EXPECT_EQ(renewal_interval(30s, 3), 10s);
  EXPECT_EQ(at_risk_from(start, 30s), start + 20s);
  EXPECT_LT(at_risk_from(start, 100ms), valid_until(start, 100ms));
}

TEST(LeaseRecord, a_confirmation_moves_the_end_and_never_back) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 10s, .renewals_per_ttl = 3}, start);

  lease.confirm(start + 5s);
  lease.confirm(start + 3s);  // an answer that was overtaken

  EXPECT_EQ(lease.valid_until(), valid_until(start + 5s, 10s));
  EXPECT_TRUE(lease.is_valid(start + 14s));
  EXPECT_FALSE(lease.is_valid(start + 15s));
}

// 000-B6: lost never flips back.
TEST(LeaseRecord, what_is_lost_stays_lost) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 10s, .renewals_per_ttl = 3}, start);

  static_cast<void>(lease.lose());
  lease.confirm(start + 1s);

  EXPECT_TRUE(lease.is_lost());
  EXPECT_FALSE(lease.is_valid(start + 1s));
  EXPECT_FALSE(lease.end());
}

// 000-B9: doubt is another state than loss.
TEST(LeaseRecord, doubt_is_a_risk_that_a_confirmation_ends) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);
  EXPECT_FALSE(lease.is_at_risk(start + 19s));
  EXPECT_TRUE(lease.is_at_risk(start + 20s));

  lease.doubt();
  EXPECT_TRUE(lease.is_at_risk(start + 1s));
  EXPECT_TRUE(lease.shall_warn());
  EXPECT_FALSE(lease.shall_warn());
  lease.confirm(start + 2s);

  EXPECT_FALSE(lease.is_at_risk(start + 3s));
  EXPECT_TRUE(lease.shall_warn());
}

}  // namespace
}  // namespace tenure::detail
