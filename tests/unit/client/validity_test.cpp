#include "client/validity.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "client/lease_record.hpp"

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

// A client that counts from the reply would trust a lease longer than the service keeps it.
TEST(Validity, a_lease_counts_from_before_the_request_is_sent) {
  EXPECT_EQ(valid_until(start, 10s), start + 10s - 102ms);
}

// A shorter one would let the client itself end a hold before LockOptions::hold_at_least.
TEST(Validity, the_ttl_for_a_length_covers_the_length_and_no_more_than_needed) {
  for (const auto length : {0ms, 1ms, 97ms, 98ms, 99ms, 700ms, 30'000ms, 600'001ms, 86'400'000ms}) {
    EXPECT_GE(valid_until(start, ttl_for(length)), start + length) << length.count();
    EXPECT_LT(valid_until(start, ttl_for(length) - 2ms), start + length) << length.count();
  }
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
TEST(LeaseRecord, loss_is_final) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 10s, .renewals_per_ttl = 3}, start);

  static_cast<void>(lease.lose());
  lease.confirm(start + 1s);

  EXPECT_TRUE(lease.is_lost());
  EXPECT_FALSE(lease.is_valid(start + 1s));
  EXPECT_FALSE(lease.end());
}

// 000-B9: risk and loss are different states.
TEST(LeaseRecord, a_failed_renewal_is_a_risk_until_a_confirmation) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);
  EXPECT_FALSE(lease.is_at_risk(start + 19s));
  EXPECT_TRUE(lease.is_at_risk(start + 20s));

  lease.mark_suspect();
  EXPECT_TRUE(lease.is_at_risk(start + 1s));
  EXPECT_TRUE(lease.should_warn());
  EXPECT_FALSE(lease.should_warn());
  lease.confirm(start + 2s);

  EXPECT_FALSE(lease.is_at_risk(start + 3s));
  EXPECT_TRUE(lease.should_warn());
}

// 003.006: until the reply, the service may count the old or the new TTL.
TEST(LeaseRecord, a_shorter_ttl_counts_from_before_it_is_sent) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);

  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 9s, .ttl = 1s}));

  EXPECT_EQ(lease.valid_until(), valid_until(start + 9s, 1s));
  EXPECT_TRUE(lease.is_valid(start + 9s)) << "more than the new ttl since the last renewal";
  EXPECT_FALSE(lease.is_at_risk(start + 9s));
  lease.confirm_ttl();
  EXPECT_EQ(lease.term(), (Term{.sent = start + 9s, .ttl = 1s}));
  EXPECT_TRUE(lease.is_ttl_known());
}

// The change may arrive after the end of the old term.
TEST(LeaseRecord, a_shorter_ttl_does_not_extend_the_old_term) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);

  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 29s, .ttl = 20s}));

  EXPECT_EQ(lease.valid_until(), valid_until(start, 30s));
  lease.confirm_ttl();
  EXPECT_EQ(lease.valid_until(), valid_until(start + 29s, 20s));
}

TEST(LeaseRecord, a_longer_ttl_counts_when_it_is_confirmed_from_when_it_was_sent) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 10s, .renewals_per_ttl = 3}, start);

  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 1s, .ttl = 60s}));
  EXPECT_EQ(lease.valid_until(), valid_until(start, 10s));
  lease.confirm(start + 2s);  // a renewal that was sent after it, and answered before
  EXPECT_EQ(lease.valid_until(), valid_until(start + 2s, 10s));
  lease.confirm_ttl();

  EXPECT_EQ(lease.valid_until(), valid_until(start + 2s, 60s));
  lease.confirm(start + 3s);
  EXPECT_EQ(lease.valid_until(), valid_until(start + 3s, 60s));
}

// The reply to a renewal does not state which TTL the service counts.
TEST(LeaseRecord, a_pending_renewal_does_not_restore_the_longer_ttl) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);

  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 11s, .ttl = 2s}));
  lease.confirm(start + 10s);

  EXPECT_EQ(lease.valid_until(), valid_until(start + 11s, 2s));
  lease.confirm(start + 12s);
  EXPECT_EQ(lease.valid_until(), valid_until(start + 12s, 2s));
}

TEST(LeaseRecord, a_rejected_ttl_changes_nothing) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);
  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 9s, .ttl = 1s}));
  lease.confirm(start + 8s);

  lease.reject_ttl();

  EXPECT_EQ(lease.term(), (Term{.sent = start + 8s, .ttl = 30s}));
  EXPECT_TRUE(lease.is_ttl_known());
}

// An unacknowledged request may still be delivered, even after a later one that was confirmed.
TEST(LeaseRecord, an_unacknowledged_ttl_limits_all_later_ones) {
  LeaseRecord lease({.id = LeaseId{1}, .ttl = 30s, .renewals_per_ttl = 3}, start);
  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 1s, .ttl = 5s}));
  EXPECT_FALSE(lease.begin_ttl_change({.sent = start + 1s, .ttl = 60s})) << "one at a time";

  lease.mark_ttl_unknown();
  EXPECT_TRUE(lease.is_at_risk(start + 1s));
  EXPECT_TRUE(lease.begin_ttl_change({.sent = start + 2s, .ttl = 60s}));
  lease.confirm_ttl();

  EXPECT_EQ(lease.valid_until(), valid_until(start + 2s, 5s));
  EXPECT_FALSE(lease.is_at_risk(start + 3s));
  EXPECT_FALSE(lease.is_ttl_known()) << "the pool must not reuse the lease";
}

}  // namespace
}  // namespace tenure::detail
