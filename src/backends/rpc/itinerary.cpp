#include "backends/rpc/itinerary.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tenure::backends {
namespace {

constexpr std::size_t grudges_max = 16;
/// Of a host name, RFC 1035.
constexpr std::size_t host_bytes_max = 253;

}  // namespace

std::optional<Endpoint> endpoint_from(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port == 0) {
    return std::nullopt;
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  const bool is_plain = std::ranges::all_of(host, [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-' || byte == ':' || byte == '%';
  });
  const bool is_anywhere = host == "0.0.0.0" || host == "::";
  if (host.empty() || host.size() > host_bytes_max || !is_plain || is_anywhere) {
    return std::nullopt;
  }
  return Endpoint{.host = std::string(host), .port = port};
}

Itinerary::Stop Itinerary::next() {
  if (named_) {
    return {.server = *std::exchange(named_, std::nullopt)};
  }
  Stop stop{.server = at(turn_++ % size())};
  if (tries_ >= size() && tries_ % size() == 0) {
    round_pause_ = backoff_.next();
  }
  if (tries_++ >= size()) {
    stop.pause = round_pause_;
    hops_ = 0;
  }
  return stop;
}

bool Itinerary::follow(const Endpoint& leader, Clock::time_point now) {
  std::erase_if(grudges_, [&](const Grudge& one) { return now - one.since >= grudge; });
  const bool is_resented =
      std::ranges::any_of(grudges_, [&](const Grudge& one) { return one.server == leader; });
  if (is_resented || hops_ >= hops_max) {
    return false;
  }
  ++hops_;
  named_ = leader;
  return true;
}

void Itinerary::failed(const Endpoint& server, Clock::time_point now) {
  std::erase_if(grudges_, [&](const Grudge& one) { return one.server == server; });
  if (grudges_.size() < grudges_max) {
    grudges_.push_back({.server = server, .since = now});
  }
}

void Itinerary::arrived(const Endpoint& server) {
  if (tries_ == 0 && hops_ == 0) {
    return;  // As before, which is with every answer.
  }
  tries_ = 0;
  hops_ = 0;
  backoff_.reset();
  std::erase_if(grudges_, [&](const Grudge& one) { return one.server == server; });
  std::erase(learned_, server);
  if (std::ranges::find(listed_, server) != listed_.end()) {
    return;
  }
  // It may lead again when all that the URL names are gone.
  if (learned_.size() == learned_max) {
    learned_.erase(learned_.begin());
  }
  learned_.push_back(server);
}

}  // namespace tenure::backends
