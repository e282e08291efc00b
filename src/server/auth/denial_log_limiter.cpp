#include "server/auth/denial_log_limiter.hpp"

namespace tenure::server::auth {

std::string_view host_of(std::string_view address) noexcept {
  const auto last = address.rfind(':');
  // Several colons without brackets: an IPv6 address without a port.
  const bool is_bare_v6 = !address.starts_with('[') && address.find(':') != last;
  const bool ends_in_port = !is_bare_v6 && !address.ends_with(']');
  return ends_in_port ? address.substr(0, last) : address;
}

std::optional<DenialLogLimiter::Entry> DenialLogLimiter::admit(std::string_view principal,
                                                               std::string_view action,
                                                               Clock::time_point now) {
  std::pair key{std::string(principal), std::string(action)};
  if (!entries_.contains(key) && entries_.size() >= entries_max) {
    // Only when the table is full; the scan is bounded by entries_max.
    evict_expired(now);
    if (entries_.size() >= entries_max) {
      key.first = "others";
    }
  }
  const auto [it, is_new] = entries_.try_emplace(key, State{.at = now});
  auto& state = it->second;
  if (!is_new && now - state.at < interval) {
    ++state.suppressed;
    return std::nullopt;
  }
  state.at = now;
  return Entry{.principal = key.first, .suppressed = std::exchange(state.suppressed, 0)};
}

void DenialLogLimiter::evict_expired(Clock::time_point now) {
  std::erase_if(entries_, [now](const auto& entry) { return now - entry.second.at >= interval; });
}

}  // namespace tenure::server::auth
