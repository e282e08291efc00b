#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/service.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {

/// Lock with a long queue, or held for long.
struct HotLock {
  std::string name{};
  bool is_space = false;
  std::string owner{};
  std::string mode{};
  v1::Item item{};  ///< Mode or permits of the first holder; unused without a token.
  std::string metadata{};
  std::uint64_t token = 0;
  std::uint64_t holders = 0;
  std::uint64_t waiters = 0;
  std::chrono::milliseconds held{};
  std::chrono::milliseconds longest_wait{};
  std::optional<double>
      grants{};  ///< Grants per second; unknown without an earlier sample of this lock.
};

/// Rates per second between two samples. Computed by the client: the service reports counters and
/// keeps no history for its clients.
struct TopRates {
  double granted = 0;
  double released = 0;
  double expired = 0;
  double forced = 0;
  double deadlocks = 0;
  double renewed = 0;
  double commands = 0;
  std::optional<double> acquire_p50{};  ///< Latencies in seconds.
  std::optional<double> acquire_p99{};
  std::optional<double> commit_p50{};
  std::optional<double> commit_p99{};
};

/// Sample: one reply of the service, and the values derived from it.
struct TopSample {
  v1::TopResponse reply{};
  std::vector<HotLock> locks{};
  std::optional<TopRates> rates{};  ///< None in the first sample.
};

/// Sort key of the list of locks. Numbers are sorted in descending order.
enum class TopOrder : std::uint8_t { waiters, longest_wait, held, grants, name };

/// Polls the service and computes rates from the previous reply. Not thread safe.
class TopSampler {
 public:
  TopSampler(Service service, std::string prefix)
      : service_(std::move(service)), prefix_(std::move(prefix)) {}

  /// Requests a sample. After an error the next call computes rates over the longer interval.
  [[nodiscard]] Result<TopSample> ask();

 private:
  using Clock = std::chrono::steady_clock;

  /// Rates since the previous reply. REQUIRES: `before_` is set and `seconds` is positive.
  [[nodiscard]] TopRates rates(const v1::Counters& now, double seconds) const;
  /// Row of a lock; its rate is known if the previous reply contained it.
  [[nodiscard]] HotLock hot(const v1::BusyLock& lock, double seconds) const;

  Service service_;
  std::string prefix_;
  /// Previous reply of the same member.
  std::optional<v1::TopResponse> before_;
  Clock::time_point when_before_{};
};

/// Locks whose name or owner contains `filter`, sorted in this order.
[[nodiscard]] std::vector<HotLock> sorted(std::vector<HotLock> locks, TopOrder order,
                                          std::string_view filter);
/// Filter of all lists; case-sensitive, as names are. An empty filter matches everything.
[[nodiscard]] bool contains(std::string_view text, std::string_view filter);

/// Short number for rates: "12", "1.5".
[[nodiscard]] std::string brief(double number);

/// Tab-separated text for pipes; each line starts with its kind.
[[nodiscard]] std::string text_of(const TopSample& sample, TopOrder order);
/// One JSON object with a newline.
[[nodiscard]] std::string json_of(const TopSample& sample, TopOrder order);

}  // namespace tenure::cli
