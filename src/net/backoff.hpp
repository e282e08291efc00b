#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sys/jitter.hpp"

namespace tenure::net {

/// Exponential backoff with jitter: the delays between the attempts of one operation.
///
///   next()    upper bound of the delay
///   1st       min
///   n-th      min * 2^(n-1), at most max
///
/// Guarantees
///   - A delay is in [bound / 2, bound] with equal jitter, in [0, bound] with full jitter.
///   - The same random source yields the same delays.
///
/// Not thread safe.
class Backoff {
 public:
  using Delay = std::chrono::microseconds;

  struct Options {
    /// Upper bound of the first delay.
    Delay min{std::chrono::milliseconds(20)};
    /// Upper bound of every delay, also of the first.
    Delay max{std::chrono::milliseconds(1000)};
    /// Equal jitter guarantees a pause; full jitter spreads many clients further.
    sys::Jitter jitter = sys::Jitter::equal;
  };

  explicit Backoff(Options options, sys::RandomSource random = sys::random_id)
      : options_(options), random_(random) {}

  /// Delay before the next attempt. `limit` is an upper bound for this delay alone.
  [[nodiscard]] Delay next(Delay limit = Delay::max()) {
    const auto bound = std::min(options_.max, options_.min * (std::int64_t{1} << doublings_));
    if (bound < options_.max) {
      ++doublings_;
    }
    return sys::with_jitter(std::min(bound, limit), options_.jitter, random_);
  }

  /// The operation has succeeded: the next delay is the first again.
  void reset() noexcept { doublings_ = 0; }

 private:
  Options options_;
  sys::RandomSource random_;
  /// INVARIANT: min * 2^doublings_ < 2 * max, so that the product cannot overflow.
  std::uint8_t doublings_ = 0;
};

}  // namespace tenure::net
