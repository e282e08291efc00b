#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tenure/ids.hpp>

namespace tenure::bench {

/// How many different resources the random rows choose from.
inline constexpr std::uint64_t resource_count = 1'000'000;

/// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014): about a
/// nanosecond a number and the same sequence for every contender.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) noexcept : state_(seed) {}

  /// REQUIRES: 0 < bound < 2^32.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept {
    state_ += 0x9E37'79B9'7F4A'7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58'476D'1CE4'E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D0'49BB'1331'11EBU;
    return ((mixed >> 32U) * bound) >> 32U;
  }

 private:
  std::uint64_t state_;
};

/// The four nodes from the database down to one row.
using Levels = std::array<ResourceId, 4>;

/// One row of a database of 8 tables with 1,000 pages each; the numbers of the levels never meet.
[[nodiscard]] inline Levels draw_levels(Draw& draw) noexcept {
  constexpr std::uint64_t level = std::uint64_t{1} << 40U;
  const std::uint64_t table = draw.below(8);
  const std::uint64_t page = (table << 32U) + draw.below(1'000);
  return {ResourceId{level}, ResourceId{(2 * level) + table}, ResourceId{(3 * level) + page},
          ResourceId{(4 * level) + (page * 1'000) + draw.below(1'000)}};
}

/// `db/users/0123456`, rewritten in place: no allocation, and the same few nanoseconds for all.
class RowName {
 public:
  [[nodiscard]] std::string_view of(std::uint64_t row) noexcept {
    for (std::size_t at = text_.size(); at > prefix.size(); --at) {
      text_[at - 1] = static_cast<char>('0' + static_cast<char>(row % 10));
      row /= 10;
    }
    return {text_.data(), text_.size()};
  }

 private:
  static constexpr std::string_view prefix = "db/users/";

  std::array<char, 16> text_{'d', 'b', '/', 'u', 's', 'e', 'r', 's', '/'};
};

}  // namespace tenure::bench
