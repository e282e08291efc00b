#include "core/interval_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <tenure/key_range.hpp>

namespace tenure::detail {
namespace {

/// A KeyRange that counts how often a search compares an end with a start.
struct CountedRange {
  KeyRange keys;

  [[nodiscard]] std::uint64_t start() const { return keys.start(); }
  [[nodiscard]] std::uint64_t end() const { return keys.end(); }

  static inline std::size_t compared = 0;
};

}  // namespace

template <>
struct IntervalEnds<CountedRange> : IntervalEnds<KeyRange> {
  [[nodiscard]] static bool reaches(std::uint64_t end, std::uint64_t start) noexcept {
    ++CountedRange::compared;
    return IntervalEnds<KeyRange>::reaches(end, start);
  }
};

namespace {

constexpr std::uint64_t last_key = std::numeric_limits<std::uint64_t>::max();

template <class Range, std::size_t slots = 32>
using Tree = IntervalTree<Range, int, slots>;

template <class Range>
using Entry = std::pair<Range, int>;

template <class Range, std::size_t slots>
std::vector<int> overlapping(const Tree<Range, slots>& tree, const Range& range) {
  std::vector<int> found;
  EXPECT_TRUE(tree.visit_overlapping(range, [&](int value) {
    found.push_back(value);
    return true;
  }));
  return found;
}

template <class Range, std::size_t slots>
std::vector<int> all(const Tree<Range, slots>& tree) {
  std::vector<int> found;
  EXPECT_TRUE(tree.visit_all([&](int value) {
    found.push_back(value);
    return true;
  }));
  return found;
}

/// What the tree should be: a vector, searched from end to end.
template <class Range>
class Model {
 public:
  void insert(const Range& range, int value) { entries_.emplace_back(range, value); }

  bool erase(const Range& range, int value) {
    return std::erase(entries_, Entry<Range>(range, value)) > 0;
  }

  [[nodiscard]] bool has_start(const Range& range, int value) const {
    return std::ranges::any_of(entries_, [&](const Entry<Range>& entry) {
      return entry.first.start() == range.start() && entry.second == value;
    });
  }

  [[nodiscard]] std::vector<int> overlapping(const Range& range) const {
    std::vector<Entry<Range>> found;
    std::ranges::copy_if(entries_, std::back_inserter(found),
                         [&](const Entry<Range>& entry) { return entry.first.overlaps(range); });
    std::ranges::sort(found, {}, [](const Entry<Range>& entry) {
      return std::tuple(entry.first.start(), entry.second);
    });
    std::vector<int> values;
    std::ranges::transform(found, std::back_inserter(values), &Entry<Range>::second);
    return values;
  }

  [[nodiscard]] const std::vector<Entry<Range>>& entries() const { return entries_; }

 private:
  std::vector<Entry<Range>> entries_;
};

/// Few different keys, so that ranges meet often; both ends of the key space among them.
rc::Gen<std::uint64_t> arbitrary_key() {
  return rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 200),
                        rc::gen::element<std::uint64_t>(0, 1, last_key - 1, last_key));
}

rc::Gen<KeyRange> arbitrary_range(const KeyRange* /*kind*/) {
  return rc::gen::map(rc::gen::pair(arbitrary_key(), arbitrary_key()), [](const auto& keys) {
    return *KeyRange::of(std::min(keys.first, keys.second), std::max(keys.first, keys.second));
  });
}

rc::Gen<std::string> arbitrary_text() {
  return rc::gen::apply(
      [](std::size_t length, const std::string& text) { return text.substr(0, length); },
      rc::gen::inRange<std::size_t>(0, 4),
      rc::gen::container<std::string>(3, rc::gen::element('\0', 'a', 'b', 'c', '\xFF')));
}

rc::Gen<BytesRange> arbitrary_range(const BytesRange* /*kind*/) {
  return rc::gen::apply(
      [](int shape, const std::string& left, const std::string& right) {
        switch (shape) {
          case 0: return BytesRange::at_least(left);
          case 1: return BytesRange::prefix(left);
          case 2: return BytesRange::all();
          default: return *BytesRange::of(std::min(left, right), std::max(left, right));
        }
      },
      rc::gen::inRange(0, 12), arbitrary_text(), arbitrary_text());
}

/// Grows and shrinks a tree beside its model, looking at both all the time, down to nothing.
template <class Range, std::size_t slots = 32>
void behaves_like_a_vector() {
  const rc::Gen<Range> ranges = arbitrary_range(static_cast<const Range*>(nullptr));
  const std::size_t inserts = *rc::gen::inRange<std::size_t>(0, 400);
  const std::size_t erased_of_ten = *rc::gen::inRange<std::size_t>(0, 6);
  Tree<Range, slots> tree;
  Model<Range> model;
  const auto erase_one = [&] {
    const auto [range, value] =
        model.entries()[*rc::gen::inRange<std::size_t>(0, model.entries().size())];
    RC_ASSERT(model.erase(range, value));
    RC_ASSERT(tree.erase(range, value));
    RC_ASSERT(!tree.erase(range, value));
  };
  const auto look = [&] {
    const Range range = *ranges;
    RC_ASSERT(overlapping(tree, range) == model.overlapping(range));
    RC_ASSERT(tree.size() == model.entries().size());
    RC_ASSERT(tree.empty() == model.entries().empty());
  };

  for (std::size_t step = 0; step < inserts; ++step) {
    const Range range = *ranges;
    const int value = *rc::gen::inRange(0, 1'000);
    if (!model.has_start(range, value)) {
      model.insert(range, value);
      tree.insert(range, value);
    }
    if (*rc::gen::inRange<std::size_t>(0, 10) < erased_of_ten) {
      erase_one();
      look();
    }
  }
  look();
  while (!model.entries().empty()) {
    erase_one();
    look();
  }
  RC_ASSERT(all(tree).empty());
}

// Catches every disagreement with the obvious: order, ends of the key space, splits, freed nodes.
// 004.093
RC_GTEST_PROP(IntervalTree, finds_the_same_key_ranges_as_a_plain_vector, ()) {
  behaves_like_a_vector<KeyRange>();
}

// 004.093
RC_GTEST_PROP(IntervalTree, finds_the_same_byte_ranges_as_a_plain_vector, ()) {
  behaves_like_a_vector<BytesRange>();
}

// The smallest nodes there may be: many levels with few ranges.
RC_GTEST_PROP(IntervalTree, finds_the_same_with_small_nodes, ()) {
  behaves_like_a_vector<BytesRange, 4>();
}

// Catches a null root that is followed.
TEST(IntervalTree, an_empty_tree_overlaps_nothing) {
  Tree<KeyRange> tree;

  EXPECT_TRUE(overlapping(tree, KeyRange::all()).empty());
  EXPECT_TRUE(all(tree).empty());
  EXPECT_FALSE(tree.erase(KeyRange::all(), 1));
  EXPECT_TRUE(tree.empty());
}

// Catches ends taken as open, and a test for overlap that adds one to the largest key.
TEST(IntervalTree, the_largest_key_is_inside) {
  Tree<KeyRange> tree;
  tree.insert(KeyRange::point(last_key), 1);
  tree.insert(KeyRange::at_least(10), 2);
  tree.insert(KeyRange::all(), 3);

  EXPECT_EQ(overlapping(tree, KeyRange::point(last_key)), (std::vector{3, 2, 1}));
  EXPECT_EQ(overlapping(tree, KeyRange::at_most(9)), (std::vector{3}));
  EXPECT_EQ(overlapping(tree, KeyRange::at_most(10)), (std::vector{3, 2}));
}

// Catches an end that is taken as inside, and infinity that is taken as the smallest end.
TEST(IntervalTree, byte_ranges_end_before_their_end_or_never) {
  Tree<BytesRange> tree;
  tree.insert(*BytesRange::half_open("b", "d"), 1);
  tree.insert(BytesRange::at_least("c"), 2);

  EXPECT_EQ(overlapping(tree, BytesRange::point("d")), (std::vector{2}));
  EXPECT_EQ(overlapping(tree, BytesRange::point("\xFF\xFF")), (std::vector{2}));
  EXPECT_EQ(overlapping(tree, *BytesRange::half_open("a", "b")), (std::vector<int>{}));
  EXPECT_EQ(overlapping(tree, BytesRange::all()), (std::vector{1, 2}));
}

// Catches duplicates that are found in one node only, when they fill several.
TEST(IntervalTree, equal_ranges_with_different_values_are_all_found_in_order_of_value) {
  Tree<KeyRange> tree;
  const KeyRange range = *KeyRange::of(5, 9);
  std::vector<int> expected;
  for (int value = 0; value < 300; ++value) {
    tree.insert(range, (value * 7) % 300);
    expected.push_back(value);
  }

  EXPECT_EQ(overlapping(tree, KeyRange::point(7)), expected);
  EXPECT_TRUE(tree.erase(range, 150));
  EXPECT_FALSE(tree.erase(range, 150));
  expected.erase(expected.begin() + 150);
  EXPECT_EQ(overlapping(tree, KeyRange::point(9)), expected);
}

// Catches an erase that looks at start and value only.
TEST(IntervalTree, a_range_with_another_end_is_not_erased) {
  Tree<KeyRange> tree;
  tree.insert(*KeyRange::of(1, 5), 1);

  EXPECT_FALSE(tree.erase(*KeyRange::of(1, 6), 1));
  EXPECT_FALSE(tree.erase(*KeyRange::of(1, 5), 2));
  EXPECT_TRUE(tree.erase(*KeyRange::of(1, 5), 1));
}

// Catches a visit that continues in the next node after the visitor returned false.
TEST(IntervalTree, a_visit_ends_when_the_visitor_returns_false) {
  Tree<KeyRange> tree;
  for (int value = 0; value < 2'000; ++value) {
    tree.insert(KeyRange::all(), value);
  }
  int visited = 0;
  const auto up_to_100 = [&](int) { return ++visited < 100; };

  EXPECT_FALSE(tree.visit_overlapping(KeyRange::point(3), up_to_100));
  EXPECT_EQ(visited, 100);
  visited = 0;
  EXPECT_FALSE(tree.visit_all(up_to_100));
  EXPECT_EQ(visited, 100);
}

/// n disjoint ranges, inserted in a mixed order: [0, 4], [10, 14], ...
Tree<CountedRange> disjoint_ranges(std::uint64_t count) {
  Tree<CountedRange> tree;
  constexpr std::uint64_t stride = 61;  // coprime to the counts used below
  for (std::uint64_t step = 0; step < count; ++step) {
    const std::uint64_t number = step * stride % count;
    tree.insert({*KeyRange::of(number * 10, number * 10 + 4)}, static_cast<int>(number));
  }
  return tree;
}

// Four levels of 32 ends and 6 starts each, where a linear search compares up to 200,000 times.
constexpr std::size_t compared_max = 4 * (32 + 6);

// Catches a lock table that slows down with its size.
// 004-B5
TEST(IntervalTree, a_search_among_a_hundred_thousand_ranges_visits_few) {
  constexpr std::uint64_t count = 100'000;
  Tree<CountedRange> tree = disjoint_ranges(count);

  for (std::uint64_t number = 0; number < count; ++number) {
    CountedRange::compared = 0;
    ASSERT_TRUE(overlapping(tree, {KeyRange::point(number * 10 + 5)}).empty());
    ASSERT_LE(CountedRange::compared, compared_max);
    ASSERT_EQ(overlapping(tree, {KeyRange::point(number * 10 + 4)}),
              std::vector{static_cast<int>(number)});
  }
}

// Catches a largest end that goes while it is needed, or stays behind after its range has gone,
// so that later searches visit subtrees without a match.
// 004-B5
TEST(IntervalTree, a_long_range_is_found_far_from_its_start_and_leaves_no_trace) {
  Tree<CountedRange> tree = disjoint_ranges(100'000);
  for (std::uint64_t number = 0; number < 1'000; ++number) {
    const CountedRange wide{KeyRange::at_least(number * 1'000 + 5)};
    tree.insert(wide, -1);
    ASSERT_EQ(overlapping(tree, {KeyRange::point(999'995)}), (std::vector{-1}));
    ASSERT_TRUE(tree.erase(wide, -1));
  }

  CountedRange::compared = 0;
  EXPECT_TRUE(overlapping(tree, {KeyRange::point(999'995)}).empty());
  EXPECT_LE(CountedRange::compared, compared_max);
}

// Catches nodes that are lost or kept when they run empty.
TEST(IntervalTree, a_large_tree_shrinks_to_nothing_and_grows_again) {
  constexpr std::uint64_t count = 10'000;
  Tree<CountedRange> tree = disjoint_ranges(count);

  for (std::uint64_t number = 0; number < count; ++number) {
    const CountedRange range{*KeyRange::of(number * 10, number * 10 + 4)};
    ASSERT_TRUE(tree.erase(range, static_cast<int>(number)));
    ASSERT_EQ(tree.size(), count - number - 1);
  }
  EXPECT_TRUE(all(tree).empty());
  tree.insert({KeyRange::point(1)}, 1);
  EXPECT_EQ(all(tree), (std::vector{1}));
}

// Catches nodes that a copy shares with the original.
TEST(IntervalTree, a_copy_is_equal_and_independent) {
  Tree<KeyRange> tree;
  for (int i = 0; i < 3'000; ++i) {
    tree.insert(KeyRange::point(static_cast<std::uint64_t>(i)), i);
  }

  auto copy = tree;
  const auto before = all(copy);
  EXPECT_TRUE(tree.erase(KeyRange::point(7), 7));
  copy.insert(KeyRange::point(10'000), 10'000);

  EXPECT_EQ(before.size(), 3'000U);
  EXPECT_EQ(overlapping(copy, KeyRange::point(7)), std::vector{7});
  EXPECT_EQ(tree.size(), 2'999U);
  EXPECT_EQ(copy.size(), 3'001U);
  EXPECT_TRUE(all(Tree<KeyRange>(Tree<KeyRange>{})).empty());
}

// Catches a size that is left behind.
TEST(IntervalTree, a_tree_that_was_moved_from_is_empty_and_usable) {
  Tree<KeyRange> tree;
  for (int value = 0; value < 100; ++value) {
    tree.insert(KeyRange::all(), value);
  }

  Tree<KeyRange> other = std::move(tree);
  tree = Tree<KeyRange>();
  tree.insert(KeyRange::point(1), 1);

  EXPECT_EQ(other.size(), 100U);
  EXPECT_EQ(all(tree), (std::vector{1}));
}

}  // namespace
}  // namespace tenure::detail
