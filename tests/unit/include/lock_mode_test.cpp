#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_mode.hpp>

namespace tenure::test {
namespace {

using enum LockMode;

/// Is `low` <= `high` in the order of the documentation, written out by hand?
bool is_below(LockMode low, LockMode high) {
  switch (high) {
    case intention_shared: return low == intention_shared;
    case intention_exclusive: return low == intention_shared || low == intention_exclusive;
    case shared: return low == intention_shared || low == shared;
    case update: return low == intention_shared || low == shared || low == update;
    case shared_intention_exclusive: return low != exclusive;
    case exclusive: return true;
  }
  return false;
}

// 004.056
TEST(LockModes, the_modes_are_the_five_of_the_literature_and_update) {
  const std::vector<LockMode> modes(all_lock_modes.begin(), all_lock_modes.end());

  EXPECT_EQ(modes, (std::vector{intention_shared, intention_exclusive, shared, update,
                                shared_intention_exclusive, exclusive}));
}

// 004.057, 004-B25: the table whose cells the document lost, and U.
TEST(LockModes, the_compatibility_matrix_is_that_of_the_literature) {
  constexpr std::array<std::string_view, 6> rows{
      "yyyyy-",  // IS with IS IX S U SIX
      "yy----",  // IX with IS IX
      "y-yy--",  // S with IS S U
      "y-y---",  // U with IS S
      "y-----",  // SIX with IS
      "------",  // X with none
  };

  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < rows.size(); ++column) {
      const LockMode a = all_lock_modes[row];
      const LockMode b = all_lock_modes[column];
      EXPECT_EQ(compatible_with(a, b), rows[row][column] == 'y')
          << to_string(a) << ' ' << to_string(b);
    }
  }
}

// 004.058
TEST(LockModes, compatibility_is_symmetric) {
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      EXPECT_EQ(compatible_with(a, b), compatible_with(b, a));
    }
  }
}

// 004.059
TEST(LockModes, join_is_symmetric) {
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      EXPECT_EQ(join(a, b), join(b, a));
    }
  }
}

// 004.059
TEST(LockModes, join_is_associative) {
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      for (const LockMode c : all_lock_modes) {
        EXPECT_EQ(join(join(a, b), c), join(a, join(b, c)));
      }
    }
  }
}

// 004.059
TEST(LockModes, join_is_idempotent) {
  for (const LockMode a : all_lock_modes) {
    EXPECT_EQ(join(a, a), a);
  }
}

// 004.059: an upper bound that is not the least would lock out more than was asked for.
TEST(LockModes, join_is_the_least_upper_bound) {
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      const LockMode joined = join(a, b);

      EXPECT_TRUE(is_below(a, joined) && is_below(b, joined));
      for (const LockMode bound : all_lock_modes) {
        if (is_below(a, bound) && is_below(b, bound)) {
          EXPECT_TRUE(is_below(joined, bound));
        }
      }
    }
  }
}

// 004.019, 004.059
TEST(LockModes, a_reader_that_intends_to_write_below_holds_six) {
  EXPECT_EQ(join(shared, intention_exclusive), shared_intention_exclusive);
  EXPECT_EQ(join(update, intention_exclusive), shared_intention_exclusive);
}

// 004-B24: what makes it right to decide an upgrade by the joined mode, with U as without.
TEST(LockModes, a_mode_goes_with_a_join_exactly_if_it_goes_with_both) {
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      for (const LockMode other : all_lock_modes) {
        EXPECT_EQ(compatible_with(other, join(a, b)),
                  compatible_with(other, a) && compatible_with(other, b));
      }
    }
  }
}

// 004.060
TEST(LockModes, a_mode_covers_another_exactly_if_their_join_is_the_first) {
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      EXPECT_EQ(covers(a, b), join(a, b) == a);
      EXPECT_EQ(covers(a, b), is_below(b, a));
    }
  }
}

// 004.060
TEST(LockModes, every_mode_covers_itself_and_x_covers_all) {
  for (const LockMode mode : all_lock_modes) {
    EXPECT_TRUE(covers(mode, mode));
    EXPECT_TRUE(covers(exclusive, mode));
  }
}

// 004.060
TEST(LockModes, six_covers_s_and_ix_but_s_does_not_cover_ix) {
  EXPECT_TRUE(covers(shared_intention_exclusive, shared));
  EXPECT_TRUE(covers(shared_intention_exclusive, intention_exclusive));
  EXPECT_FALSE(covers(shared, intention_exclusive));
}

// A stronger mode that let in more than a weaker one would break every upgrade.
TEST(LockModes, a_covered_mode_is_compatible_with_at_least_as_many_modes) {
  for (const LockMode strong : all_lock_modes) {
    for (const LockMode weak : all_lock_modes) {
      for (const LockMode other : all_lock_modes) {
        if (covers(strong, weak) && compatible_with(strong, other)) {
          EXPECT_TRUE(compatible_with(weak, other));
        }
      }
    }
  }
}

// 004.061
TEST(LockModes, only_x_is_exclusive) {
  for (const LockMode mode : all_lock_modes) {
    EXPECT_EQ(is_exclusive(mode), mode == exclusive);
  }
}

// 004.062
TEST(LockModes, is_ix_and_six_are_intentions) {
  EXPECT_TRUE(is_intention(intention_shared));
  EXPECT_TRUE(is_intention(intention_exclusive));
  EXPECT_TRUE(is_intention(shared_intention_exclusive));
  EXPECT_FALSE(is_intention(shared));
  EXPECT_FALSE(is_intention(update));
  EXPECT_FALSE(is_intention(exclusive));
}

// 004.079
TEST(LockModes, readers_need_is_above_them_and_writers_ix) {
  EXPECT_EQ(ancestor_mode(intention_shared), intention_shared);
  EXPECT_EQ(ancestor_mode(shared), intention_shared);
  EXPECT_EQ(ancestor_mode(intention_exclusive), intention_exclusive);
  EXPECT_EQ(ancestor_mode(update), intention_exclusive);
  EXPECT_EQ(ancestor_mode(shared_intention_exclusive), intention_exclusive);
  EXPECT_EQ(ancestor_mode(exclusive), intention_exclusive);
}

// 004.063
TEST(LockModes, all_queries_are_constant_expressions) {
  static_assert(compatible_with(intention_shared, intention_exclusive));
  static_assert(join(shared, intention_exclusive) == shared_intention_exclusive);
  static_assert(covers(exclusive, shared));
  static_assert(is_exclusive(exclusive) && !is_exclusive(shared));
  static_assert(is_intention(intention_shared) && !is_intention(shared));
  static_assert(ancestor_mode(exclusive) == intention_exclusive);
  static_assert(to_string(shared_intention_exclusive) == "SIX");
  SUCCEED();
}

TEST(LockModes, the_names_of_the_modes_are_those_of_the_literature) {
  std::vector<std::string_view> names;

  std::ranges::transform(all_lock_modes, std::back_inserter(names),
                         [](LockMode mode) { return to_string(mode); });

  EXPECT_EQ(names, (std::vector<std::string_view>{"IS", "IX", "S", "U", "SIX", "X"}));
}

}  // namespace
}  // namespace tenure::test
