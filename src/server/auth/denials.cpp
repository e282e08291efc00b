#include "server/auth/denials.hpp"

namespace tenure::server::auth {

std::string_view machine_of(std::string_view address) noexcept {
  const auto last = address.rfind(':');
  const bool is_bare_v6 = !address.starts_with('[') && address.find(':') != last;
  const bool ends_in_port = !is_bare_v6 && !address.ends_with(']');
  return ends_in_port ? address.substr(0, last) : address;
}

std::optional<Denials::Line> Denials::note(std::string_view who, std::string_view what,
                                           Clock::time_point now) {
  std::pair key{std::string(who), std::string(what)};
  if (!told_.contains(key) && told_.size() >= known_max) {
    forget_old(now);
    if (told_.size() >= known_max) {
      key.first = "others";
    }
  }
  const auto [it, is_new] = told_.try_emplace(key, Told{.at = now});
  auto& told = it->second;
  if (!is_new && now - told.at < quiet) {
    ++told.untold;
    return std::nullopt;
  }
  told.at = now;
  return Line{.who = key.first, .before = std::exchange(told.untold, 0)};
}

void Denials::forget_old(Clock::time_point now) {
  std::erase_if(told_, [now](const auto& entry) { return now - entry.second.at >= quiet; });
}

}  // namespace tenure::server::auth
