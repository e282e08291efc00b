#include "core/cow_map.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/shared_string.hpp"

namespace tenure::core {
namespace {

using Map = CowMap<std::uint64_t, SharedString>;
using Plain = std::map<std::uint64_t, std::string>;

bool is_same(const Map& map, const Plain& plain) {
  return map.size() == plain.size() &&
         std::ranges::equal(map, plain, [](const auto& left, const auto& right) {
           return left.first == right.first && left.second == right.second;
         });
}

/// Changes both maps in the same way some thousand times, and compares them at intervals.
class Pair {
 public:
  explicit Pair(std::uint64_t seed, std::uint64_t keys) : random_(seed), keys_(keys) {}

  void change(int times) {
    for (int i = 0; i < times; ++i) {
      const auto key = random_() % keys_;
      switch (random_() % 3) {
        case 0: EXPECT_EQ(map.erase(key), plain.erase(key) == 1); break;
        case 1:
          if (auto* value = map.edit(key)) {
            *value = "edited";
            plain.at(key) = "edited";
          } else {
            EXPECT_FALSE(plain.contains(key));
          }
          break;
        default: {
          const auto text = std::to_string(random_());
          map[key] = text;
          plain[key] = text;
        }
      }
    }
  }

  void look() {
    const auto key = random_() % keys_;
    const auto at_least = map.lower_bound(key);
    const auto behind = map.upper_bound(key);
    const auto expected = plain.lower_bound(key);
    const auto expected_behind = plain.upper_bound(key);
    ASSERT_EQ(at_least == map.end(), expected == plain.end());
    ASSERT_EQ(behind == map.end(), expected_behind == plain.end());
    if (expected != plain.end()) {
      EXPECT_EQ(at_least->first, expected->first);
    }
    if (expected_behind != plain.end()) {
      EXPECT_EQ(behind->first, expected_behind->first);
    }
    EXPECT_EQ(map.contains(key), plain.contains(key));
  }

  Map map;
  Plain plain;

 private:
  std::mt19937_64 random_;
  std::uint64_t keys_;
};

TEST(CowMap, a_map_of_any_size_behaves_as_std_map) {
  for (const std::uint64_t keys : {3U, 70U, 500U, 20'000U}) {
    Pair pair(keys, keys);
    for (int round = 0; round < 50; ++round) {
      pair.change(1000);
      pair.look();
    }
    EXPECT_TRUE(is_same(pair.map, pair.plain)) << keys << " keys";
  }
}

TEST(CowMap, a_map_can_be_emptied_from_either_end_and_refilled) {
  constexpr std::uint64_t count = 10'000;
  Map map;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t key = 0; key < count; ++key) {
      map[key] = "value";
    }
    EXPECT_EQ(std::distance(map.begin(), map.end()), static_cast<std::ptrdiff_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      EXPECT_TRUE(map.erase(round == 0 ? i : count - 1 - i));
    }
    EXPECT_TRUE(map.empty());
    EXPECT_EQ(map.begin(), map.end());
  }
}

// What a snapshot is written from.
TEST(CowMap, a_copy_is_not_affected_by_changes_to_the_original) {
  Pair pair(7, 5'000);
  std::vector<std::pair<Map, Plain>> copies;
  for (int round = 0; round < 20; ++round) {
    copies.emplace_back(pair.map, pair.plain);
    pair.change(2'000);
  }

  for (const auto& [map, plain] : copies) {
    EXPECT_TRUE(is_same(map, plain));
  }
  EXPECT_TRUE(is_same(pair.map, pair.plain));
}

// For the thread sanitizer: a copy is read and dropped while the original changes.
TEST(CowMap, a_copy_may_be_read_and_dropped_by_another_thread) {
  Pair pair(11, 2'000);
  pair.change(10'000);

  for (int round = 0; round < 10; ++round) {
    std::thread reader([copy = pair.map, plain = pair.plain]() mutable {
      EXPECT_TRUE(is_same(copy, plain));
      copy = {};
    });
    pair.change(5'000);
    reader.join();
  }

  EXPECT_TRUE(is_same(pair.map, pair.plain));
}

}  // namespace
}  // namespace tenure::core
