#include "cli/latencies.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tenure::cli {

using std::chrono::nanoseconds;

// Below 2 * parts each value has its own bucket; above, each power of two has `parts` buckets.
std::size_t Latencies::bucket_of(std::uint64_t value) noexcept {
  const auto limited = std::min(value, most);
  const auto width = static_cast<unsigned>(std::bit_width(limited));
  // Keeps the part_bits + 1 most significant bits; the first of them is always 1 if the value is
  // shifted, so 64 values remain for each shift.
  const auto shift = width > part_bits + 1 ? width - part_bits - 1 : 0;
  return (shift * parts) + (limited >> shift);
}

std::uint64_t Latencies::begin_of(std::size_t bucket) noexcept {
  if (bucket < 2 * parts) {
    return bucket;
  }
  const auto shift = (bucket / parts) - 1;
  return (bucket % parts + parts) << shift;
}

void Latencies::add(nanoseconds time) noexcept {
  const auto limited = std::max(time, nanoseconds::zero());
  ++buckets_[bucket_of(static_cast<std::uint64_t>(limited.count()))];
  ++count_;
  longest_ = std::max(longest_, limited);
}

void Latencies::add(const Latencies& others) noexcept {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    buckets_[bucket] += others.buckets_[bucket];
  }
  count_ += others.count_;
  longest_ = std::max(longest_, others.longest_);
}

nanoseconds Latencies::quantile(double part) const noexcept {
  // Nearest-rank method: the smallest value that at least this number of samples do not exceed.
  const auto wanted = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count_)));
  std::uint64_t counted = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    counted += buckets_[bucket];
    if (buckets_[bucket] > 0 && counted >= wanted) {
      // The upper end of the bucket, so that quantiles are never too small.
      const auto end = static_cast<std::int64_t>(begin_of(bucket + 1) - 1);
      return std::min(nanoseconds(end), longest_);
    }
  }
  return longest_;
}

std::vector<Latencies::Range> Latencies::ranges() const {
  std::vector<Range> made;
  // 1, 2, 5, 10, 20, 50 …
  constexpr std::array<std::int64_t, 3> steps{2, 5, 10};
  std::int64_t decade = 1;
  std::size_t step = 0;
  Range range{.to = nanoseconds(decade)};
  const auto finish = [&] {
    // Empty ranges before the first sample are left out; those in the middle show the gap.
    if (range.count > 0 || !made.empty()) {
      made.push_back(range);
    }
    const auto end = decade * steps[step];
    range = {.from = range.to, .to = nanoseconds(end)};
    step = (step + 1) % steps.size();
    decade = step == 0 ? decade * 10 : decade;
  };
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (buckets_[bucket] == 0) {
      continue;
    }
    while (begin_of(bucket) >= static_cast<std::uint64_t>(range.to.count())) {
      finish();
    }
    range.count += buckets_[bucket];
  }
  if (range.count > 0) {
    made.push_back(range);
  }
  return made;
}

std::string format_short(nanoseconds time) {
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array<Unit, 4> units{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};
  const auto count = static_cast<double>(time.count());
  const auto* unit =
      std::ranges::find_if(units, [&](const Unit& one) { return count >= one.size; });
  unit = unit == units.end() ? &units.back() : unit;
  const auto number = count / unit->size;
  // The limits are those of rounding: 9.995 would be printed as "10.00", with four digits.
  const int digits = unit->size == 1 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", digits, number, unit->name);
  return text.data();
}

std::string grouped(std::uint64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace tenure::cli
