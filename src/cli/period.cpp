#include "cli/period.hpp"

#include <utility>

namespace tenure::cli {

std::string period_name(const AcquireSpec& spec) {
  return spec.names.front() + "/started";
}

Result<void> begin_period(const Client& client, const AcquireSpec& spec,
                          std::chrono::milliseconds period) {
  auto started = client
                     .mutex(period_name(spec),
                            {.ttl = spec.ttl, .hold_at_least = period, .metadata = spec.metadata})
                     .try_lock();
  // The unlock leaves the lock held until the end of the period.
  return started ? started->unlock() : std::unexpected(std::move(started).error());
}

}  // namespace tenure::cli
