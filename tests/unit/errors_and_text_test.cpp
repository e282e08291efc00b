#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>

#include <tenure/tenure.hpp>

#include "support/locks.hpp"

namespace tenure::test {
namespace {

constexpr std::array all_codes{
    Errc::would_block, Errc::timed_out,         Errc::cancelled,          Errc::deadlock,
    Errc::not_held,    Errc::invalid_argument,  Errc::resource_exhausted, Errc::lease_lost,
    Errc::unavailable, Errc::permission_denied, Errc::unsupported,
};

constexpr std::array all_policies{
    VictimPolicy::youngest,   VictimPolicy::oldest,     VictimPolicy::fewest_locks,
    VictimPolicy::most_locks, VictimPolicy::least_work, VictimPolicy::lowest_priority,
};

// 004.072
TEST(Errors, a_conflict_says_what_the_document_says) {
  static_assert(Errc::conflict == Errc::would_block);

  EXPECT_EQ(message(Errc::conflict), "lock request conflicts with an existing lock");
}

// 004.073
TEST(Errors, not_held_says_what_the_document_says) {
  EXPECT_EQ(message(Errc::not_held), "no lock held for this transaction and resource");
}

// 004.074, 004-B23: timeout, cancellation and victim are there from the start.
TEST(Errors, every_code_has_a_name_and_a_sentence_of_its_own) {
  for (const Errc one : all_codes) {
    EXPECT_NE(to_string(one), "unknown");
    EXPECT_NE(message(one), "unknown error");
    for (const Errc other : all_codes) {
      EXPECT_EQ(to_string(one) == to_string(other), one == other);
      EXPECT_EQ(message(one) == message(other), one == other);
    }
  }
}

// 004.074: a program built against an older header meets a newer code.
TEST(Errors, an_unknown_code_is_text_too) {
  EXPECT_EQ(to_string(static_cast<Errc>(9999)), "unknown");
  EXPECT_EQ(message(static_cast<Errc>(9999)), "unknown error");
}

// 004.072
TEST(Errors, an_error_prints_its_code_and_its_detail_or_the_sentence) {
  EXPECT_EQ(to_string(Error{.code = Errc::would_block}),
            "would_block: lock request conflicts with an existing lock");
  EXPECT_EQ(to_string(Error{.code = Errc::invalid_argument, .detail = "name is empty"}),
            "invalid_argument: name is empty");
}

TEST(Errors, an_error_compares_with_its_code) {
  const Error error{.code = Errc::timed_out, .detail = "after 5 ms"};

  EXPECT_TRUE(error == Errc::timed_out);
  EXPECT_FALSE(error == Errc::cancelled);
  EXPECT_FALSE(error == Error{.code = Errc::timed_out});
}

// 004.077
TEST(Text, every_mode_is_read_as_it_was_written) {
  for (const LockMode mode : all_lock_modes) {
    EXPECT_EQ(parse<LockMode>(to_string(mode)).value(), mode);
  }
}

// 004.077
TEST(Text, every_policy_is_read_as_it_was_written) {
  for (const VictimPolicy policy : all_policies) {
    EXPECT_EQ(parse<VictimPolicy>(to_string(policy)).value(), policy);
  }
}

// 004.077
TEST(Text, every_code_is_read_as_it_was_written) {
  for (const Errc code : all_codes) {
    EXPECT_EQ(parse<Errc>(to_string(code)).value(), code);
  }
}

// 004.077
TEST(Text, ids_are_read_as_they_were_written) {
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{42}, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_EQ(parse<TxnId>(to_string(TxnId{number})).value(), TxnId{number});
    EXPECT_EQ(parse<ResourceId>(to_string(ResourceId{number})).value(), ResourceId{number});
  }
}

// 004.077
TEST(Text, ranges_are_read_as_they_were_written) {
  EXPECT_EQ(to_string(KeyRange::of(1, 9).value()), "[1, 9]");
  for (const KeyRange& range : {KeyRange::of(1, 9).value(), KeyRange::point(0), KeyRange::all()}) {
    EXPECT_EQ(parse<KeyRange>(to_string(range)).value(), range);
  }
}

// 004.077: a range that is empty, a number too large or a sign must not slip through a parser.
TEST(Text, anything_else_is_an_invalid_argument) {
  for (const std::string_view text : {"", "x", "XX", "SIXX", " X"}) {
    EXPECT_TRUE(refused(parse<LockMode>(text), Errc::invalid_argument)) << text;
  }
  for (const std::string_view text : {"", "-1", "+1", "1 ", " 1", "0x1", "18446744073709551616"}) {
    EXPECT_TRUE(refused(parse<TxnId>(text), Errc::invalid_argument)) << text;
    EXPECT_TRUE(refused(parse<ResourceId>(text), Errc::invalid_argument)) << text;
  }
  for (const std::string_view text : {"", "[9, 1]", "[1, 9", "1, 9]", "[1 9]", "[1, 9] ", "[,]"}) {
    EXPECT_TRUE(refused(parse<KeyRange>(text), Errc::invalid_argument)) << text;
  }
  EXPECT_TRUE(refused(parse<VictimPolicy>("eldest"), Errc::invalid_argument));
  EXPECT_TRUE(refused(parse<Errc>("unknown"), Errc::invalid_argument));
}

// 004.077
TEST(Text, the_detail_names_the_text_that_could_not_be_read) {
  const auto parsed = parse<LockMode>("EXCLUSIV");

  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().detail.find("EXCLUSIV"), std::string::npos) << parsed.error().detail;
}

TEST(Text, a_target_is_written_as_people_say_it) {
  EXPECT_EQ(to_string(Target(ResourceId{7})), "resource 7");
  EXPECT_EQ(to_string(Target("db/users")), "\"db/users\"");
  EXPECT_EQ(to_string(Target(keys(ResourceId{3}, 1, 9))), "keys [1, 9] of space 3");
  EXPECT_EQ(to_string(Target(
                BytesOf{.space = ResourceId{3}, .range = BytesRange::half_open("a", "b").value()})),
            "keys [\"a\", \"b\") of space 3");
}

// 004.009, 004.010, 004.076: modes, ranges, ids and codes own nothing and need nothing at run
// time, so a kernel or a wire format can use them without the manager.
TEST(Build, the_values_are_constexpr_and_own_nothing) {
  static_assert(std::is_trivially_copyable_v<LockMode> && std::is_trivially_copyable_v<Errc>);
  static_assert(std::is_trivially_copyable_v<KeyRange> && std::is_trivially_copyable_v<TxnId>);
  static_assert(noexcept(compatible_with(shared, shared)) && noexcept(KeyRange::of(1, 2)));
  static_assert(message(Errc::not_held).size() > 10);
  static_assert(TxnId{1} < TxnId{2} && KeyRange::all().contains(TxnId{1}.get()));
  SUCCEED();
}

// 004.075, 004.076: this file includes nothing else of ours but helpers built on it.
TEST(Build, one_header_gives_everything) {
  const LockManager locks;
  const WaitForGraph graph;
  const Deadlock deadlock{.victim = t1, .cycle = {t1, t2}};

  EXPECT_TRUE(locks.request(t1, row_a, shared).is_granted());
  EXPECT_EQ(WaitForGraph::pick_victim(deadlock.cycle, VictimPolicy::oldest), t1);
  EXPECT_TRUE(graph.is_empty());
}

}  // namespace
}  // namespace tenure::test
