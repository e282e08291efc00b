#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenure::cli {

/// Latency histogram with logarithmic buckets of at most 1/64 relative width: a few kilobytes for
/// any number of samples, and every percentile to within 1.6 %. Values are capped at half an hour.
///
/// The memory is constant, so a run of an hour costs no more than one of a second. Not thread safe.
class Latencies {
 public:
  /// Adds a sample. Negative ones count as zero.
  void add(std::chrono::nanoseconds time) noexcept;
  /// Adds all samples of another histogram, for example of another thread.
  void add(const Latencies& others) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Exact maximum, also above the cap of the buckets.
  [[nodiscard]] std::chrono::nanoseconds longest() const noexcept { return longest_; }
  /// Quantile, such as 0.99. Zero without samples.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const noexcept;

  /// Ranges for a histogram, each 2 or 2.5 times as wide as the last, from the minimum to the
  /// maximum.
  struct Range {
    std::chrono::nanoseconds from{};
    std::chrono::nanoseconds to{};
    std::uint64_t count = 0;
  };
  [[nodiscard]] std::vector<Range> ranges() const;

 private:
  /// 2^6 = 64 buckets for each power of two.
  static constexpr unsigned part_bits = 6;
  static constexpr std::uint64_t parts = 1U << part_bits;
  /// Largest value with a bucket of its own: 2^41 ns, about 37 minutes.
  static constexpr std::uint64_t most = (std::uint64_t{1} << 41U) - 1;
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t nanoseconds) noexcept;
  /// Smallest value of a bucket; the inverse of bucket_of().
  [[nodiscard]] static std::uint64_t begin_of(std::size_t bucket) noexcept;

  /// Number of buckets: bucket_of(most) + 1.
  std::array<std::uint64_t, (41 - part_bits + 1) * parts> buckets_{};
  /// Number of samples.
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds longest_{};
};

/// "850 ns", "1.24 ms": three significant digits.
[[nodiscard]] std::string format_short(std::chrono::nanoseconds time);
/// "12,345": thousands separators.
[[nodiscard]] std::string grouped(std::uint64_t number);

}  // namespace tenure::cli
