#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreLimits : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob, cid}); }

  void begin(const Limits& limits) {
    machine = StateMachine(limits);
    grant_leases({ann, bob, cid});
  }
  std::optional<Errc> refusal(const Command& command) { return code_of(apply(command).outcome); }
};

TEST_F(CoreLimits, names_have_1_to_1024_bytes) {
  EXPECT_EQ(code_of(acquire(ann, {lock("")})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {lock(std::string(1025, 'a'))})), Errc::invalid_argument);
  token_of(acquire(ann, {lock(std::string(1024, 'a'))}));
}

// Names and owners are shown on terminals and in logs. Other bytes are the user's alphabet.
TEST_F(CoreLimits, control_characters_in_names_owners_and_clients_are_refused) {
  const auto detail_of = [this](const Command& command) {
    return std::get<Refused>(apply(command).outcome).error.detail;
  };
  const auto asks = [&](Item item, std::string owner) {
    return Acquire{.lease = ann, .request = fresh(), .items = {item}, .owner = std::move(owner)};
  };

  EXPECT_EQ(detail_of(asks(lock("ab\n"), "")), "a name has a control character: byte 0x0a at 2");
  EXPECT_EQ(detail_of(asks(lock(std::string("\0", 1)), "")),
            "a name has a control character: byte 0x00 at 0");
  EXPECT_EQ(detail_of(asks(keys("s\x7F", "a", "b"), "")),
            "a name has a control character: byte 0x7f at 1");
  EXPECT_EQ(detail_of(asks(lock("a"), "\x1B[2J")),
            "the owner has a control character: byte 0x1b at 0");
  EXPECT_EQ(detail_of(GrantLease{.ttl = seconds(1), .client = "c\x1F"}),
            "the client has a control character: byte 0x1f at 1");
}

TEST_F(CoreLimits, names_have_any_other_bytes_and_keys_and_metadata_all) {
  Acquire command{.lease = ann,
                  .request = fresh(),
                  .items = {lock("schlo\xC3\x9F \x80\xFF"), keys("s", std::string("\0\n", 2), "b")},
                  .owner = "\xE9",
                  .metadata = std::string("\0\x7F", 2)};

  token_of(apply(command).outcome);
}

TEST_F(CoreLimits, keys_have_a_length) {
  const std::string longest(1025, 'k');

  token_of(acquire(ann, {keys("s", "a", longest)}));
  EXPECT_EQ(code_of(acquire(ann, {keys("t", "a", longest + "k")})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {keys("t", longest + "k", "l")})), Errc::invalid_argument);
}

// 002.008
TEST_F(CoreLimits, metadata_and_owner_have_a_size) {
  Acquire command{.lease = ann, .request = RequestId{1}, .items = {lock("a")}};
  command.metadata = std::string(4097, 'm');
  EXPECT_EQ(refusal(command), Errc::invalid_argument);
  command.metadata = std::string(4096, 'm');
  command.owner = std::string(257, 'o');
  EXPECT_EQ(refusal(command), Errc::invalid_argument);
  command.owner = std::string(256, 'o');
  token_of(apply(command).outcome);
}

TEST_F(CoreLimits, a_request_has_1_to_64_different_items) {
  std::vector<Item> items;
  for (int i = 0; i < 65; ++i) {
    items.push_back(lock("lock " + std::to_string(i)));
  }

  EXPECT_EQ(code_of(acquire(ann, {})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, items)), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {lock("a"), lock("a")})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {keys("a", "a", "c"), keys("a", "b", "d")})),
            Errc::invalid_argument);
  items.pop_back();
  token_of(acquire(ann, items));
}

TEST_F(CoreLimits, an_acquisition_needs_an_id) {
  EXPECT_EQ(refusal(Acquire{.lease = ann, .items = {lock("a")}}), Errc::invalid_argument);
  EXPECT_EQ(refusal(Abandon{.lease = ann}), Errc::invalid_argument);
}

TEST_F(CoreLimits, only_a_single_lock_can_be_entered_again) {
  EXPECT_EQ(code_of(acquire(ann, {lock("a"), lock("b")}, SelfConflict::reenter)),
            Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {permits("s", 1, 2)}, SelfConflict::reenter)),
            Errc::invalid_argument);
}

TEST_F(CoreLimits, permits_are_between_one_and_the_capacity) {
  EXPECT_EQ(code_of(acquire(ann, {permits("s", 0, 2)})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {permits("s", 3, 2)})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {permits("s", 0, 0)})), Errc::invalid_argument);
  EXPECT_EQ(code_of(acquire(ann, {permits("s", 1, 1'000'001)})), Errc::invalid_argument);
  token_of(acquire(ann, {permits("s", 1'000'000, 1'000'000)}));
}

// 002.010, 002.098
TEST_F(CoreLimits, a_ttl_has_bounds) {
  EXPECT_EQ(refusal(GrantLease{.ttl = ClusterTime{-1}}), Errc::invalid_argument);
  EXPECT_EQ(refusal(GrantLease{.ttl = milliseconds(99)}), Errc::invalid_argument);
  EXPECT_EQ(refusal(GrantLease{.ttl = ClusterTime::max()}), Errc::invalid_argument);
  EXPECT_EQ(refusal(GrantLease{.ttl = seconds(30)}), std::nullopt);
  EXPECT_EQ(refusal(GrantLease{.ttl = seconds(30), .client = std::string(257, 'c')}),
            Errc::invalid_argument);
  EXPECT_EQ(refusal(GrantLease{.ttl = seconds(30), .address = std::string(257, 'a')}),
            Errc::invalid_argument);
}

TEST_F(CoreLimits, a_renewal_has_a_size) {
  EXPECT_EQ(refusal(RenewLeases{std::vector<LeaseId>(10'001, ann)}), Errc::invalid_argument);
  EXPECT_EQ(refusal(RenewLeases{std::vector<LeaseId>(10'000, ann)}), std::nullopt);
}

TEST_F(CoreLimits, leases_are_counted) {
  begin({.leases_max = 3});

  EXPECT_EQ(refusal(GrantLease{.ttl = seconds(1)}), Errc::resource_exhausted);
  apply(RevokeLease{cid});
  EXPECT_EQ(refusal(GrantLease{.ttl = seconds(1)}), std::nullopt);
}

TEST_F(CoreLimits, locks_of_a_lease_are_counted) {
  begin({.items_per_lease_max = 2});
  const auto token = token_of(acquire(ann, {lock("a")}));

  EXPECT_EQ(code_of(acquire(ann, {lock("b"), lock("c")})), Errc::resource_exhausted);
  token_of(acquire(ann, {lock("b")}));
  EXPECT_EQ(code_of(acquire(ann, {lock("c")})), Errc::resource_exhausted);
  release(ann, token);
  token_of(acquire(ann, {lock("c")}));
}

TEST_F(CoreLimits, waiters_of_a_lock_are_counted) {
  begin({.waiters_per_lock_max = 1});
  acquire(ann, {lock("a")});
  acquire(bob, {lock("a")});

  EXPECT_EQ(code_of(acquire(cid, {lock("a")})), Errc::resource_exhausted);
  EXPECT_EQ(code_of(acquire(cid, {lock("b"), lock("a")})), Errc::resource_exhausted);
  EXPECT_EQ(holders_of("b"), Leases{});
}

TEST_F(CoreLimits, waits_of_a_lease_are_counted) {
  begin({.waits_per_lease_max = 1});
  acquire(ann, {lock("a")});
  acquire(ann, {lock("b")});
  acquire(bob, {lock("a")});

  EXPECT_EQ(code_of(acquire(bob, {lock("b")})), Errc::resource_exhausted);
}

TEST_F(CoreLimits, entering_again_is_counted) {
  begin({.reentries_max = 2});
  acquire(ann, {lock("a")});
  token_of(acquire(ann, {lock("a")}, SelfConflict::reenter));

  EXPECT_EQ(code_of(acquire(ann, {lock("a")}, SelfConflict::reenter)), Errc::resource_exhausted);
}

// Operators raise the limit that a metric names, so the name has to be that of the setting.
TEST_F(CoreLimits, a_refused_command_names_the_limit) {
  const auto limit_of = [this](const Limits& limits, LeaseId lease, std::vector<Item> items) {
    begin(limits);
    acquire(ann, {lock("a")});
    acquire(ann, {lock("b")});
    acquire(bob, {lock("a")});
    return apply(Acquire{.lease = lease, .request = fresh(), .items = std::move(items)})
        .reached_limit;
  };

  EXPECT_EQ(limit_of({.items_per_lease_max = 2}, bob, {lock("c"), lock("d")}),
            "items_per_lease_max");
  EXPECT_EQ(limit_of({.waits_per_lease_max = 1}, bob, {lock("b")}), "waits_per_lease_max");
  EXPECT_EQ(limit_of({.waits_per_client_max = 1}, bob, {lock("b")}), "waits_per_client_max");
  EXPECT_EQ(limit_of({.waiters_per_lock_max = 1}, cid, {lock("a")}), "waiters_per_lock_max");
  EXPECT_EQ(limit_of({}, bob, {lock("c")}), "") << "granted";
  EXPECT_EQ(limit_of({}, bob, {lock("")}), "") << "an invalid argument";
}

TEST_F(CoreLimits, a_refused_reentry_or_lease_names_the_limit) {
  begin({.leases_max = 3, .reentries_max = 1});
  acquire(ann, {lock("a")});

  EXPECT_EQ(apply(Acquire{.lease = ann,
                          .request = fresh(),
                          .items = {lock("a")},
                          .self_conflict = SelfConflict::reenter})
                .reached_limit,
            "reentries_max");
  EXPECT_EQ(apply(GrantLease{.ttl = seconds(1)}).reached_limit, "leases_max");
  begin({.leases_per_client_max = 1});
  apply(GrantLease{.ttl = seconds(1), .client = "c"});
  EXPECT_EQ(apply(GrantLease{.ttl = seconds(1), .client = "c"}).reached_limit,
            "leases_per_client_max");
}

// What was refused for its size or number is not remembered: later the same id may succeed.
TEST_F(CoreLimits, a_request_beyond_a_limit_can_be_tried_again) {
  begin({.items_per_lease_max = 1});
  const auto token = token_of(acquire(ann, {lock("a")}));
  const Acquire command{.lease = ann, .request = RequestId{77}, .items = {lock("b")}};
  EXPECT_EQ(refusal(command), Errc::resource_exhausted);

  release(ann, token);

  token_of(apply(command).outcome);
}

// 10,000 waiters on one lock: each hand-over looks at the front only.
TEST_F(CoreLimits, ten_thousand_waiters_are_served_in_order) {
  constexpr std::uint64_t waiters = 10'000;
  StateMachine big;
  for (std::uint64_t i = 1; i <= waiters + 2; ++i) {
    big.apply(GrantLease{.id = LeaseId{i}, .ttl = seconds(30)}, {});
  }
  const auto ask = [&](std::uint64_t i) {
    return big.apply(Acquire{.lease = LeaseId{i}, .request = RequestId{1}, .items = {lock("a")}},
                     {});
  };
  auto token = token_of(ask(1).outcome);
  for (std::uint64_t i = 2; i <= waiters + 1; ++i) {
    EXPECT_EQ(std::get<Queued>(ask(i).outcome).position, i - 1);
  }
  EXPECT_EQ(code_of(ask(waiters + 2).outcome), Errc::resource_exhausted);

  for (std::uint64_t i = 1; i <= waiters; ++i) {
    const auto done = big.apply(Release{.lease = LeaseId{i}, .request = {}, .what = token}, {});
    ASSERT_EQ(done.notices.size(), 1U);
    EXPECT_EQ(done.notices.front().lease, LeaseId{i + 1});
    token = std::get<Granted>(done.notices.front().end).token;
  }
}

}  // namespace
}  // namespace tenure::core
