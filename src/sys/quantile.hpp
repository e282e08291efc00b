#pragma once

#include <cstddef>
#include <optional>

namespace tenure::sys {

/// Quantile of the observations between two readings of a cumulative histogram, in the unit of its
/// bounds, by linear interpolation within the bucket; nothing if there were none. `quantile` is
/// from 0 to 1. A bucket has a `bound` and the `count` of all observations up to it; the last has
/// no bound.
template <class Buckets>
[[nodiscard]] std::optional<double> quantile_between(const Buckets& before, const Buckets& after,
                                                     double quantile) {
  const auto count_to = [&](std::size_t i) {
    const auto earlier = i < before.size() ? before[i].count : 0;
    return static_cast<double>(after[i].count) - static_cast<double>(earlier);
  };
  if (after.empty() || count_to(after.size() - 1) <= 0) {
    return std::nullopt;
  }
  const auto wanted = quantile * count_to(after.size() - 1);
  double lower = 0;
  double counted = 0;
  for (std::size_t i = 0; i + 1 < after.size(); ++i) {
    const auto total = count_to(i);
    if (total >= wanted && total > counted) {
      return lower + (after[i].bound - lower) * (wanted - counted) / (total - counted);
    }
    lower = after[i].bound;
    counted = total;
  }
  // In the last bucket: the largest bound is a lower bound of the quantile.
  return lower;
}

}  // namespace tenure::sys
