#include <gtest/gtest.h>

#include "core/bytes.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreSnapshot : public CoreTest {
 protected:
  /// One of everything a snapshot can hold.
  void SetUp() override {
    grant_leases({ann, bob, cid});
    acquire(ann, {lock("a"), keys("s", "k", "m", LockMode::shared), permits("p", 2, 3)});
    acquire(bob, {lock("r", LockMode::shared)});
    acquire(cid, {lock("r", LockMode::shared)});
    acquire(bob, {lock("r", LockMode::update)}, SelfConflict::reenter);
    acquire(cid, {lock("a"), lock("free")});
    acquire(bob, {keys("s", "a", "z")});
    try_acquire(bob, {lock("a")});
    acquire(ann, {lock("r")});
    acquire(ann, {lock("a")}, SelfConflict::wait);
    acquire(cid, {Item{.name = "t", .claim = Keys{.range = BytesRange::at_least("x")}}});
    release(bob, "nothing");
    apply(GrantLease{.id = LeaseId{99}, .request = RequestId{7}, .ttl = seconds(1)});
    apply(RevokeLease{LeaseId{99}});
  }

  static std::string detail_of(std::string_view bytes) {
    const auto state = decode(bytes);
    EXPECT_FALSE(state.has_value());
    EXPECT_TRUE(state.has_value() || state.error() == Errc::invalid_argument ||
                state.error() == Errc::unsupported);
    return state.has_value() ? "" : state.error().detail;
  }
  static void seal(std::string& bytes) {
    bytes.resize(bytes.size() - 4);
    ByteWriter tail;
    tail.fixed32(crc32c(bytes));
    bytes += tail.bytes();
  }
};

// 002.107, 002.108, 002-B35
TEST_F(CoreSnapshot, a_round_trip_gives_the_same_state_and_the_same_bytes) {
  const auto bytes = encode(machine.state());

  const auto state = decode(bytes);

  ASSERT_TRUE(state.has_value()) << state.error().detail;
  EXPECT_EQ(encode(*state), bytes);
  EXPECT_EQ(state->locks.holds(), machine.state().locks.holds());
  EXPECT_EQ(state->locks.waits(), machine.state().locks.waits());
  EXPECT_EQ(state->limits, machine.state().limits);
  EXPECT_EQ(state->leases.ended(), machine.state().leases.ended());
  EXPECT_EQ(state->leases.ended().size(), 1U);
}

TEST_F(CoreSnapshot, an_empty_store_has_a_snapshot) {
  const auto state = decode(encode(State{}));

  ASSERT_TRUE(state.has_value()) << state.error().detail;
  EXPECT_EQ(state->revision, Revision{});
}

// 002.108: the token after a restore is greater than all before.
TEST_F(CoreSnapshot, tokens_go_on_after_a_restore) {
  const auto last = machine.state().revision;
  machine = StateMachine(decode(encode(machine.state())).value());

  EXPECT_GT(token_of(acquire(cid, {lock("new")})).get(), last.get());
}

TEST_F(CoreSnapshot, every_truncation_is_refused) {
  const auto bytes = encode(machine.state());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(detail_of(std::string_view(bytes).substr(0, size)), "");
  }
  EXPECT_NE(detail_of(bytes + '\0'), "");
}

TEST_F(CoreSnapshot, every_changed_byte_is_refused) {
  const auto bytes = encode(machine.state());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      auto changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      EXPECT_NE(detail_of(changed), "") << "byte " << i;
    }
  }
}

// With a checksum that fits, what is wrong must be found by reading. Nothing may crash, and what is
// accepted must be sound.
TEST_F(CoreSnapshot, changes_with_a_right_checksum_never_crash) {
  const auto bytes = encode(machine.state());
  int refused = 0;
  int total = 0;
  for (std::size_t i = 20; i + 4 < bytes.size(); ++i) {
    for (const int change : {0x01, 0x02, 0x10, 0x7F, 0x80, 0xFF}) {
      auto changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      seal(changed);
      const auto state = decode(changed);
      ++total;
      if (!state) {
        ++refused;
        continue;
      }
      EXPECT_EQ(invariants::check(*state), std::vector<std::string>{});
      EXPECT_EQ(encode(*state), changed) << "two ways to write one state";
      StateMachine restored(*state);
      restored.apply(Tick{}, {.time = seconds(100)});
    }
  }
  EXPECT_GT(refused, total / 3);
}

TEST_F(CoreSnapshot, bodies_that_are_cut_with_a_right_checksum_are_refused) {
  const auto bytes = encode(machine.state());
  for (std::size_t size = 0; size < bytes.size() - 24; ++size) {
    ByteWriter cut;
    cut.raw(bytes.substr(0, 12));
    cut.fixed64(size);
    cut.raw(bytes.substr(20, size));
    cut.fixed32(crc32c(cut.bytes()));
    EXPECT_NE(detail_of(cut.bytes()), "");
  }
}

TEST_F(CoreSnapshot, the_error_names_the_cause_and_the_offset) {
  auto bytes = encode(machine.state());
  EXPECT_EQ(detail_of(""), "snapshot: too short to be one");
  EXPECT_EQ(detail_of(std::string(100, 'x')), "snapshot: it does not begin with TENURESN");
  auto newer = bytes;
  newer[8] = 7;
  EXPECT_EQ(detail_of(newer),
            "snapshot: version 7 is not known here; this program reads versions 1 to 3");
  EXPECT_NE(detail_of(bytes.substr(0, bytes.size() - 1)).find("cut off"), std::string::npos);
  bytes[30] = static_cast<char>(bytes[30] ^ 1);
  EXPECT_NE(detail_of(bytes).find("checksum"), std::string::npos);
}

// Found by the fuzz target core_snapshot: the index of ranges asserts that a range is added once.
TEST_F(CoreSnapshot, a_hold_that_has_one_range_twice_is_rejected) {
  StateMachine forged(machine.state().limits);
  forged.apply(GrantLease{.id = ann, .request = fresh(), .ttl = seconds(30)}, {});
  forged.apply(Acquire{.lease = ann,
                       .request = fresh(),
                       .items = {keys("q", "aa", "bb"), keys("q", "cc", "dd")}},
               {});
  auto bytes = encode(forged.state());
  ASSERT_TRUE(decode(bytes).has_value());
  for (const auto& [from, to] : {std::pair{"cc", "aa"}, std::pair{"dd", "bb"}}) {
    for (auto at = bytes.find(from); at != std::string::npos; at = bytes.find(from)) {
      bytes.replace(at, 2, to);
    }
  }
  seal(bytes);

  EXPECT_NE(detail_of(bytes).find("two items of a request overlap"), std::string::npos)
      << detail_of(bytes);
}

// No later step would end the deadlock: a step searches for cycles through its own lease only.
TEST_F(CoreSnapshot, a_snapshot_that_contains_a_deadlock_is_rejected) {
  StateMachine forged(machine.state().limits);
  const auto want = [&](LeaseId lease, const char* name) {
    forged.apply(Acquire{.lease = lease, .request = fresh(), .items = {lock(name)}}, {});
  };
  for (const auto lease : {ann, bob, cid}) {
    forged.apply(GrantLease{.id = lease, .ttl = seconds(30)}, {});
  }
  want(ann, "a");
  want(bob, "b");
  want(cid, "c");
  want(ann, "b");
  want(bob, "c");
  ASSERT_TRUE(decode(encode(forged.state())).has_value());
  // bob waits for "a" instead of "c", which closes a cycle with ann.
  auto state = forged.state();
  auto wait = state.locks.remove(*state.locks.owned(bob).waits.begin());
  wait.items = {lock("a")};
  state.locks.add(std::move(wait));

  EXPECT_EQ(detail_of(encode(state)), "snapshot: it contains a deadlock: lease 1 can never go on");
}

// RFC 3720, appendix B.4
TEST(CoreBytes, the_checksum_is_crc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
}

TEST(CoreBytes, numbers_are_written_in_one_way_only) {
  for (const std::uint64_t value : {0ULL, 1ULL, 127ULL, 128ULL, 300ULL, 1ULL << 63, ~0ULL}) {
    ByteWriter out;
    out.number(value);
    ByteReader in(out.bytes());
    EXPECT_EQ(in.number(), value);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.left(), 0U);
  }
  for (const std::string_view bad :
       {std::string_view("\x80\x00", 2), std::string_view("\x80"),
        std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"), std::string_view("")}) {
    ByteReader in(bad);
    EXPECT_EQ(in.number(), 0U);
    EXPECT_FALSE(in.ok());
  }
}

}  // namespace
}  // namespace tenure::core
