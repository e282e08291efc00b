#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "server/http/records.hpp"
#include "server/metrics/metrics.hpp"

namespace tenure::server::http {

/// A quantile of what was observed between two looks at a histogram, in seconds, by a straight line
/// within its bucket; nothing if nothing was observed. `quantile` from 0 to 1.
[[nodiscard]] std::optional<double> quantile_between(const Totals::Buckets& before,
                                                     const Totals::Buckets& after, double quantile);

/// What the last minutes were like: rates, numbers and latencies, a value of each for each
/// interval, so that a chart is full when it is opened. At home.
class History {
 public:
  static constexpr std::size_t samples_max = 300;
  static constexpr std::chrono::milliseconds interval{2'000};

  /// To be called once in each interval with what was counted since the start of the process.
  void add(const Totals& totals, const StatusRecord& status,
           std::chrono::steady_clock::time_point when);

  /// As JSON: what came after the sample of this number, a column for each series.
  [[nodiscard]] std::string write(std::uint64_t after) const;

 private:
  using Value = std::optional<double>;
  struct Sample {
    std::uint64_t number = 0;
    std::vector<Value> values{};  ///< As the columns are named.
  };

  std::deque<Sample> samples_;
  std::uint64_t last_number_ = 0;
  std::optional<Totals> before_;
  std::chrono::steady_clock::time_point when_before_{};
};

}  // namespace tenure::server::http
