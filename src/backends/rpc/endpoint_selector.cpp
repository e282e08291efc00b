#include "backends/rpc/endpoint_selector.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tenure::backends {
namespace {

constexpr std::size_t recent_failures_max = 16;
/// Maximum length of a host name (RFC 1035).
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
  const bool is_wildcard = host == "0.0.0.0" || host == "::";
  if (host.empty() || host.size() > host_bytes_max || !is_plain || is_wildcard) {
    return std::nullopt;
  }
  return Endpoint{.host = std::string(host), .port = port};
}

EndpointSelector::Attempt EndpointSelector::next() {
  if (redirect_target_) {
    return {.server = *std::exchange(redirect_target_, std::nullopt)};
  }
  Attempt attempt{.server = at(next_index_++ % size())};
  if (attempts_ >= size() && attempts_ % size() == 0) {
    round_delay_ = backoff_.next();
  }
  if (attempts_++ >= size()) {
    attempt.delay = round_delay_;
    redirects_ = 0;
  }
  return attempt;
}

// Expired failures are dropped here, where they are evaluated.
bool EndpointSelector::redirect_to(const Endpoint& leader, Clock::time_point now) {
  std::erase_if(recent_failures_,
                [&](const Failure& one) { return now - one.since >= failure_cooldown; });
  const bool failed_recently = std::ranges::any_of(
      recent_failures_, [&](const Failure& one) { return one.server == leader; });
  if (failed_recently || redirects_ >= redirects_max) {
    return false;
  }
  ++redirects_;
  redirect_target_ = leader;
  return true;
}

void EndpointSelector::mark_failed(const Endpoint& server, Clock::time_point now) {
  std::erase_if(recent_failures_, [&](const Failure& one) { return one.server == server; });
  if (recent_failures_.size() < recent_failures_max) {
    recent_failures_.push_back({.server = server, .since = now});
  }
}

void EndpointSelector::mark_healthy(const Endpoint& server) {
  if (attempts_ == 0 && redirects_ == 0) {
    return;  // Common case: called for every reply.
  }
  attempts_ = 0;
  redirects_ = 0;
  backoff_.reset();
  std::erase_if(recent_failures_, [&](const Failure& one) { return one.server == server; });
  std::erase(learned_, server);
  if (std::ranges::find(listed_, server) != listed_.end()) {
    return;
  }
  // A former leader may lead again when all servers of the URL are gone.
  if (learned_.size() == learned_max) {
    learned_.erase(learned_.begin());
  }
  learned_.push_back(server);
}

}  // namespace tenure::backends
