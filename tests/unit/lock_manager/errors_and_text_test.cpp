#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/tenure.hpp>

#include "support/lock_manager/locks.hpp"

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
TEST(Errors, would_block_has_the_alias_conflict_and_its_message) {
  static_assert(Errc::conflict == Errc::would_block);

  EXPECT_EQ(message(Errc::conflict), "lock request conflicts with an existing lock");
}

// 004.073: users of networked locks read it too, so it names neither transaction nor resource.
TEST(Errors, not_held_has_a_message_for_every_kind_of_lock) {
  EXPECT_EQ(message(Errc::not_held), "the caller does not hold the lock");
}

// 004.074, 004-B23: timeout, cancellation and deadlock have codes from the start.
TEST(Errors, every_code_has_a_name_and_a_message_of_its_own) {
  for (const Errc one : all_codes) {
    EXPECT_NE(to_string(one), "unknown");
    EXPECT_NE(message(one), "unknown error");
    for (const Errc other : all_codes) {
      EXPECT_EQ(to_string(one) == to_string(other), one == other);
      EXPECT_EQ(message(one) == message(other), one == other);
    }
  }
}

// 004.074: a program that was compiled with an older header may receive a newer code.
TEST(Errors, an_unknown_code_has_a_name_and_a_message) {
  EXPECT_EQ(to_string(static_cast<Errc>(9999)), "unknown");
  EXPECT_EQ(message(static_cast<Errc>(9999)), "unknown error");
}

// 004.072
TEST(Errors, an_error_prints_its_code_and_its_detail_or_message) {
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

// Code that expects std::error_code needs the conversion, and the conditions that std defines.
TEST(Errors, a_code_converts_to_a_std_error_code) {
  const std::error_code code = Errc::timed_out;

  EXPECT_EQ(code.category().name(), std::string_view("tenure"));
  EXPECT_EQ(code.message(), message(Errc::timed_out));
  EXPECT_TRUE(code == Errc::timed_out);
  EXPECT_TRUE(code == std::errc::timed_out);
  EXPECT_FALSE(code == std::errc::operation_canceled);
}

// Each code without a counterpart in std::errc must equal itself only.
TEST(Errors, no_two_codes_have_the_same_condition) {
  for (const Errc one : all_codes) {
    for (const Errc other : all_codes) {
      EXPECT_EQ(make_error_code(one).default_error_condition() ==
                    make_error_code(other).default_error_condition(),
                one == other)
          << one << ' ' << other;
    }
  }
}

TEST(Errors, a_code_and_an_error_are_written_to_streams) {
  std::ostringstream text;
  text << Errc::deadlock << ", " << Error{.code = Errc::not_held, .detail = "unlocked before"};

  EXPECT_EQ(text.str(), "deadlock, not_held: unlocked before");
}

#if defined(__cpp_lib_format)
TEST(Errors, codes_errors_and_ids_are_formatted) {
  EXPECT_EQ(std::format("{:>9}|{}|{}|{:x}", Errc::deadlock,
                        Error{.code = Errc::not_held, .detail = "x"}, TxnId{42}, FencingToken{255}),
            " deadlock|not_held: x|42|ff");
}
#endif

// A program without handlers prints what(), so it has to contain the detail.
TEST(Results, or_throw_throws_the_full_error) {
  const Result<int> failed = fail(Errc::lease_lost, "the lease ended before unlock()");

  try {
    static_cast<void>(failed.or_throw());
    FAIL() << "no exception";
  } catch (const Exception& exception) {
    EXPECT_STREQ(exception.what(), "lease_lost: the lease ended before unlock()");
    EXPECT_EQ(exception.error(), failed.error());
    EXPECT_EQ(exception.code(), make_error_code(Errc::lease_lost));
  }
}

TEST(Results, the_exception_is_a_std_system_error) {
  EXPECT_THROW(Result<void>(fail(Errc::timed_out)).or_throw(), std::system_error);
}

TEST(Results, or_throw_returns_the_value) {
  Result<std::string> kept("a");
  kept.or_throw() += "b";

  EXPECT_EQ(kept.or_throw(), "ab");
  EXPECT_EQ(std::move(kept).or_throw(), "ab");
  EXPECT_NO_THROW(Result<void>().or_throw());
}

// std::expected::and_then() does not accept a function that returns a Result.
TEST(Results, and_then_and_or_else_chain_functions_that_return_a_result) {
  const auto half = [](int number) -> Result<int> {
    if (number % 2 != 0) {
      return fail(Errc::invalid_argument, "odd");
    }
    return number / 2;
  };

  EXPECT_EQ(Result<int>(4).and_then(half).and_then(half), 1);
  EXPECT_EQ(Result<int>(6).and_then(half).and_then(half), fail(Errc::invalid_argument, "odd"));
  EXPECT_EQ(Result<void>().and_then([] { return Result<int>(1); }), 1);
  EXPECT_EQ(Result<int>(3).and_then(half).or_else([](const Error&) -> Result<int> { return 7; }),
            7);
  EXPECT_EQ(Result<int>(3).or_else([](const Error&) -> Result<int> { return 7; }), 3);
}

// The copy of a failed Result<bool> must not take the operator bool of the original for a value.
TEST(Results, a_copied_result_keeps_its_error) {
  Result<bool> failed = fail(Errc::timed_out);
  const auto copy = failed;

  EXPECT_EQ(copy, failed);
  EXPECT_FALSE(copy.has_value());
}

// A timeout in hours, in fractions of seconds or without end must not overflow nanoseconds.
TEST(Timeouts, durations_are_rounded_up_and_saturate) {
  using namespace std::chrono_literals;
  using detail::to_nanoseconds;

  EXPECT_EQ(to_nanoseconds(2h), 7'200'000'000'000ns);
  EXPECT_EQ(to_nanoseconds(std::chrono::duration<double>(0.5)), 500ms);
  EXPECT_EQ(to_nanoseconds(std::chrono::duration<double, std::nano>(0.5)), 1ns);
  EXPECT_EQ(to_nanoseconds(std::chrono::hours::max()), std::chrono::nanoseconds::max());
  EXPECT_EQ(to_nanoseconds(std::chrono::hours::min()), std::chrono::nanoseconds::min());
  EXPECT_EQ(to_nanoseconds(std::chrono::duration<double>(std::numeric_limits<double>::infinity())),
            std::chrono::nanoseconds::max());
}

TEST(Timeouts, deadlines_of_other_clocks_are_converted) {
  using namespace std::chrono_literals;
  const auto before = std::chrono::steady_clock::now();
  const auto deadline = detail::steady_deadline(std::chrono::system_clock::now() + 1h);

  EXPECT_GE(deadline, before + 59min);
  EXPECT_LE(deadline, std::chrono::steady_clock::now() + 61min);
  EXPECT_EQ(detail::steady_deadline(before), before);
  EXPECT_EQ(detail::time_until(std::chrono::system_clock::time_point::min()), 0ns);
}

// 004.077
TEST(Text, a_parsed_mode_equals_the_printed_one) {
  for (const LockMode mode : all_lock_modes) {
    EXPECT_EQ(parse<LockMode>(to_string(mode)).value(), mode);
  }
}

// 004.077
TEST(Text, a_parsed_policy_equals_the_printed_one) {
  for (const VictimPolicy policy : all_policies) {
    EXPECT_EQ(parse<VictimPolicy>(to_string(policy)).value(), policy);
  }
}

// 004.077
TEST(Text, a_parsed_code_equals_the_printed_one) {
  for (const Errc code : all_codes) {
    EXPECT_EQ(parse<Errc>(to_string(code)).value(), code);
  }
}

// 004.077
TEST(Text, a_parsed_id_equals_the_printed_one) {
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{42}, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_EQ(parse<TxnId>(to_string(TxnId{number})).value(), TxnId{number});
    EXPECT_EQ(parse<ResourceId>(to_string(ResourceId{number})).value(), ResourceId{number});
  }
}

// 004.077
TEST(Text, a_parsed_range_equals_the_printed_one) {
  EXPECT_EQ(to_string(KeyRange::of(1, 9).value()), "[1, 9]");
  for (const KeyRange& range : {KeyRange::of(1, 9).value(), KeyRange::point(0), KeyRange::all()}) {
    EXPECT_EQ(parse<KeyRange>(to_string(range)).value(), range);
  }
}

// 004.077: a range that is empty, a number too large or a sign must not slip through a parser.
TEST(Text, malformed_text_is_an_invalid_argument) {
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
TEST(Text, the_detail_quotes_the_malformed_text) {
  const auto parsed = parse<LockMode>("EXCLUSIV");

  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().detail.find("EXCLUSIV"), std::string::npos) << parsed.error().detail;
}

TEST(Text, a_target_is_printed_with_its_kind) {
  EXPECT_EQ(to_string(Target(ResourceId{7})), "resource 7");
  EXPECT_EQ(to_string(Target("db/users")), "\"db/users\"");
  EXPECT_EQ(to_string(Target(keys(ResourceId{3}, 1, 9))), "keys [1, 9] of space 3");
  EXPECT_EQ(to_string(Target(
                BytesOf{.space = ResourceId{3}, .range = BytesRange::half_open("a", "b").value()})),
            "keys [\"a\", \"b\") of space 3");
}

// 004.009, 004.010, 004.076: modes, ranges, ids and codes are trivial values, so a wire format can
// use them without the manager.
TEST(Build, modes_ranges_ids_and_codes_are_trivial_values) {
  static_assert(std::is_trivially_copyable_v<LockMode> && std::is_trivially_copyable_v<Errc>);
  static_assert(std::is_trivially_copyable_v<KeyRange> && std::is_trivially_copyable_v<TxnId>);
  static_assert(noexcept(compatible_with(shared, shared)) && noexcept(KeyRange::of(1, 2)));
  static_assert(message(Errc::not_held).size() > 10);
  static_assert(TxnId{1} < TxnId{2} && KeyRange::all().contains(TxnId{1}.get()));
  SUCCEED();
}

// 004.075, 004.076: this file includes no other public header.
TEST(Build, a_single_header_contains_the_whole_interface) {
  const LockManager locks;
  const WaitForGraph graph;
  const Deadlock deadlock{.victim = t1, .cycle = {t1, t2}};

  EXPECT_TRUE(locks.request(t1, row_a, shared).is_granted());
  EXPECT_EQ(WaitForGraph::pick_victim(deadlock.cycle, VictimPolicy::oldest), t1);
  EXPECT_TRUE(graph.is_empty());
}

}  // namespace
}  // namespace tenure::test
