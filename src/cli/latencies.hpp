#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenure::cli {

/// How long things took, in buckets that are at most 1/64 wide: any number of them in a few
/// kilobytes, and every percentile to within 1.6 %. Longer than half an hour counts as that.
class Latencies {
 public:
  void add(std::chrono::nanoseconds time) noexcept;
  void add(const Latencies& others) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::chrono::nanoseconds longest() const noexcept { return longest_; }
  /// So many of all took no longer: 0.99. Zero if there are none.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const noexcept;

  /// For a histogram: ranges that grow by a half, or double, from the shortest to the longest.
  struct Range {
    std::chrono::nanoseconds from{};
    std::chrono::nanoseconds to{};
    std::uint64_t count = 0;
  };
  [[nodiscard]] std::vector<Range> ranges() const;

 private:
  static constexpr unsigned part_bits = 6;
  static constexpr std::uint64_t parts = 1U << part_bits;
  static constexpr std::uint64_t most = (std::uint64_t{1} << 41U) - 1;
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t nanoseconds) noexcept;
  [[nodiscard]] static std::uint64_t begin_of(std::size_t bucket) noexcept;

  /// As many as bucket_of(most) needs.
  std::array<std::uint64_t, (41 - part_bits + 1) * parts> buckets_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds longest_{};
};

/// "850 ns", "1.24 ms", with three digits that count.
[[nodiscard]] std::string spoken_briefly(std::chrono::nanoseconds time);
/// "12,345".
[[nodiscard]] std::string grouped(std::uint64_t number);

}  // namespace tenure::cli
