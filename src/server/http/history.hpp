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

/// Time series of the last minutes: rates, counts and latencies, one value per interval, so that a
/// dashboard chart is filled when it opens. HTTP thread only.
///
/// Ring of 300 samples at 2 s: ten minutes. Rates are differences of counters, so the first call
/// only sets the baseline. A client passes the number of its last sample and gets only newer ones.
class History {
 public:
  static constexpr std::size_t samples_max = 300;
  static constexpr std::chrono::milliseconds interval{2'000};

  /// Adds a sample. Called once per interval with the totals since the start of the process. `when`
  /// is the actual time of the sample: rates divide by the measured interval, because a busy store
  /// may delay a sample.
  void add(const Totals& totals, const StatusRecord& status,
           std::chrono::steady_clock::time_point when);

  /// JSON with the samples after this number, one column per series.
  [[nodiscard]] std::string write(std::uint64_t after) const;

 private:
  using Value = std::optional<double>;
  struct Sample {
    std::uint64_t number = 0;
    std::vector<Value> values{};  ///< Values in the order of the columns.
  };

  std::deque<Sample> samples_;
  /// Number of the latest sample. Never reused, so a client detects samples that it has missed.
  std::uint64_t last_number_ = 0;
  /// Totals of the sample before; nullopt: none yet.
  std::optional<Totals> before_;
  std::chrono::steady_clock::time_point when_before_{};
};

}  // namespace tenure::server::http
