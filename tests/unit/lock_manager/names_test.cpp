#include "lock_manager/names.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::detail {
namespace {

using namespace std::string_view_literals;

// Catches a comparison by the hash only, by the length only, or up to a zero byte.
// 004-B19
TEST(NameTable, different_names_have_different_numbers_and_equal_names_the_same) {
  NameTable names;
  std::set<std::uint64_t> numbers;
  for (int number = 0; number < 10'000; ++number) {
    numbers.insert(names.intern("db/users/" + std::to_string(number)));
  }
  numbers.insert(names.intern(""sv));
  numbers.insert(names.intern("a\0b"sv));
  numbers.insert(names.intern("a\0c"sv));
  numbers.insert(names.intern("a"sv));

  EXPECT_EQ(numbers.size(), 10'004U);
  EXPECT_EQ(names.size(), 10'004U);
  EXPECT_EQ(names.intern("a\0c"sv), names.find("a\0c"sv));
  EXPECT_EQ(names.size(), 10'004U);
}

// Catches an id that leads to another shard than its name.
TEST(NameTable, a_number_leads_back_to_its_name) {
  NameTable names;
  for (int number = 0; number < 1'000; ++number) {
    const std::string name(static_cast<std::size_t>(number), 'x');

    EXPECT_EQ(names.text(names.intern(name)), name);
  }
}

// Catches a name that is forgotten while it is needed, or kept for ever.
TEST(NameTable, a_name_is_forgotten_with_its_last_reference) {
  NameTable names;
  const std::uint64_t id = names.intern("a name longer than a short string");
  ASSERT_EQ(names.intern("a name longer than a short string"), id);

  names.drop_reference(id);
  EXPECT_EQ(names.find("a name longer than a short string"), id);
  names.drop_reference(id);

  EXPECT_EQ(names.find("a name longer than a short string"), std::nullopt);
  EXPECT_EQ(names.text(id), "");
  EXPECT_EQ(names.size(), 0U);
}

// Catches a stale number that means another name now.
TEST(NameTable, a_forgotten_name_comes_back_with_a_larger_number) {
  NameTable names;
  std::uint64_t last = names.intern("a");
  for (int round = 0; round < 100; ++round) {
    names.drop_reference(last);
    const std::uint64_t next = names.intern("a");

    ASSERT_GT(next, last);
    last = next;
  }
}

// Catches find and text that create, and numbers out of the blue that lead astray.
TEST(NameTable, a_lookup_of_an_unknown_name_changes_nothing) {
  NameTable names;

  EXPECT_EQ(names.find("a"), std::nullopt);
  EXPECT_EQ(names.text(0), "");
  EXPECT_EQ(names.text(std::numeric_limits<std::uint64_t>::max()), "");
  EXPECT_EQ(names.size(), 0U);
}

/// Interns a few names over and over; false if a number did not mean its name while it was held.
bool intern_and_drop(NameTable& names, std::size_t first) {
  constexpr std::size_t rounds = 20'000;
  bool is_right = true;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::string name = "shared name number " + std::to_string((first + round) % 7);
    const std::uint64_t id = names.intern(name);
    is_right = is_right && names.text(id) == name && names.find(name) == id;
    names.drop_reference(id);
  }
  return is_right;
}

// Catches a reference that is lost between two threads: the name would change its number while
// it is referenced, and two transactions would hold "the same" lock.
// 004-B19
TEST(NameTable, many_threads_agree_on_the_number_of_a_name_while_any_of_them_holds_it) {
  constexpr std::size_t thread_count = 8;
  NameTable names;
  std::vector<char> is_right(thread_count, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t index = 0; index < thread_count; ++index) {
      threads.emplace_back([&, index] { is_right[index] = intern_and_drop(names, index); });
    }
  }

  EXPECT_EQ(is_right, std::vector<char>(thread_count, 1));
  EXPECT_EQ(names.size(), 0U);
}

}  // namespace
}  // namespace tenure::detail
