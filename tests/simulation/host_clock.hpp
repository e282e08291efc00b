#pragma once

#include <chrono>
#include <cstdint>

#include "simulation/world.hpp"

namespace tenure::simulation {

/// Clock of one machine with a constant drift and forward jumps. Monotonic.
class HostClock {
 public:
  using Local = std::chrono::nanoseconds;

  /// `ppm`: drift in parts per million; positive: fast.
  HostClock(Local offset, std::int64_t ppm) : offset_(offset), ppm_(ppm) {}

  [[nodiscard]] Local local(VirtualTime real) const {
    return offset_ + Local(real.count() * (1'000'000 + ppm_) / 1000);
  }
  /// Earliest real time at which the clock shows `local`, without a jump in between.
  [[nodiscard]] VirtualTime real(Local local) const {
    const auto wanted = (local - offset_).count() * 1000;
    const auto rate = 1'000'000 + ppm_;
    return VirtualTime(wanted <= 0 ? 0 : (wanted + rate - 1) / rate);
  }
  void jump(Local ahead) { offset_ += ahead; }

 private:
  Local offset_;
  std::int64_t ppm_;
};

}  // namespace tenure::simulation
