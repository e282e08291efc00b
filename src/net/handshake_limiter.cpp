#include "net/handshake_limiter.hpp"

namespace tenure::net {

std::optional<Shares::Share> HandshakeLimiter::admit(const std::string& network,
                                                     Clock::time_point now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    begun_ = 0;
    begun_by_network_.clear();
  }
  const auto begun = begun_by_network_.find(network);
  if (begun_ >= limits_.per_second.total_max ||
      (begun != begun_by_network_.end() && begun->second >= limits_.per_second.each_max)) {
    return std::nullopt;
  }
  auto slot = in_progress_.take(network);
  if (slot) {
    ++begun_;
    ++begun_by_network_[network];
  }
  return slot;
}

}  // namespace tenure::net
