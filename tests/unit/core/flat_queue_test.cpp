#include "core/flat_queue.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tenure::core {
namespace {

bool is_equal(const auto& left, const auto& right) {
  return std::ranges::equal(left, right) && left.size() == right.size() &&
         left.empty() == right.empty();
}

// Catches every wrong move of the shorter side, and a gap that is closed too early or late.
TEST(FlatQueue, a_flat_queue_behaves_as_a_sequence) {
  const bool holds = rc::check([] {
    FlatQueue<std::string> queue;
    std::deque<std::string> model;
    // Long enough that a gap at the front comes and goes.
    for (int i = 0; i < 60; ++i) {
      queue.push_back(std::to_string(i));
      model.push_back(std::to_string(i));
    }
    for (int i = *rc::gen::inRange(0, 40); i > 0; --i) {
      queue.pop_front();
      model.pop_front();
    }
    const auto steps = *rc::gen::container<std::vector<std::pair<int, std::size_t>>>(
        rc::gen::pair(rc::gen::inRange(0, 6), rc::gen::arbitrary<std::size_t>()));
    for (const auto& [kind, number] : steps) {
      const auto at = static_cast<std::ptrdiff_t>(number % (model.size() + 1));
      const auto value = std::to_string(number);
      if (kind < 3) {
        queue.push_back(value);
        model.push_back(value);
      } else if (kind == 3) {
        queue.insert(queue.begin() + at, value);
        model.insert(model.begin() + at, value);
      } else if (model.empty()) {
        continue;
      } else if (kind == 4 || at == static_cast<std::ptrdiff_t>(model.size())) {
        queue.pop_front();
        model.pop_front();
      } else {
        queue.erase(queue.begin() + at);
        model.erase(model.begin() + at);
      }
      RC_ASSERT(is_equal(queue, model));
      RC_ASSERT(model.empty() || (queue.front() == model.front() && queue.back() == model.back()));
    }
  });
  EXPECT_TRUE(holds);
}

// The gap at the front grows and closes many times.
TEST(FlatQueue, a_queue_that_is_always_in_use_keeps_its_order) {
  FlatQueue<int> queue;
  int first = 0;
  for (int next = 0; next < 10'000; ++next) {
    queue.push_back(next);
    if (queue.size() > 100) {
      ASSERT_EQ(queue.front(), first++);
      queue.pop_front();
    }
  }
  EXPECT_EQ(queue.size(), 100U);
  EXPECT_EQ(queue[99], 9'999);
}

TEST(SortedQueue, a_sorted_queue_behaves_as_a_set) {
  const bool holds = rc::check([] {
    SortedQueue<int> queue;
    std::set<int> model;
    const auto steps = *rc::gen::container<std::vector<std::pair<bool, int>>>(
        rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange(0, 40)));
    for (const auto& [joins, value] : steps) {
      if (joins) {
        queue.insert(value);
        model.insert(value);
      } else {
        queue.erase(value);
        model.erase(value);
      }
      RC_ASSERT(is_equal(queue, model));
      RC_ASSERT(queue.contains(value) == joins);
      const auto before = std::distance(model.begin(), model.lower_bound(value));
      RC_ASSERT(queue.count_before(value) == static_cast<std::size_t>(before));
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tenure::core
