#include "backends/redlock/servers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace tenure::backends::redlock {
namespace {

using std::chrono::milliseconds;

constexpr std::uint16_t default_port = 6379;
constexpr milliseconds longest{std::chrono::hours(24)};

/// `50ms`, `2s`, `1m`.
std::optional<milliseconds> time_from(std::string_view text) {
  std::int64_t count = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const std::int64_t factor = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : 0;
  if (error != std::errc{} || factor == 0 || count < 0 || count > longest.count() / factor) {
    return std::nullopt;
  }
  return milliseconds(count * factor);
}

/// Takes a time out of the URL; nothing if it is not there.
Result<std::optional<milliseconds>> take_time(Url& url, std::string_view key, milliseconds least) {
  const auto it = std::ranges::find_if(
      url.parameters, [&](const Url::Parameter& one) { return one.key.text == key; });
  if (it == url.parameters.end()) {
    return std::optional<milliseconds>();
  }
  const auto value = it->value;
  url.parameters.erase(it);
  const auto time = time_from(value.text);
  if (!time || *time < least) {
    return complain_at(value.position, std::string(key) + " is a time from " +
                                           std::to_string(least.count()) +
                                           "ms to 1440m, such as 50ms, 2s or 1m");
  }
  return time;
}

Result<void> take_times(Url& url, Servers& servers) {
  const auto node_timeout = take_time(url, "node_timeout", milliseconds(1));
  if (!node_timeout) {
    return std::unexpected(node_timeout.error());
  }
  const auto retry_delay = take_time(url, "retry_delay", milliseconds(1));
  if (!retry_delay) {
    return std::unexpected(retry_delay.error());
  }
  const auto restart_wait = take_time(url, "restart_wait", milliseconds(0));
  if (!restart_wait) {
    return std::unexpected(restart_wait.error());
  }
  servers.node_timeout = node_timeout->value_or(servers.node_timeout);
  servers.retry_delay = retry_delay->value_or(servers.retry_delay);
  servers.restart_wait = *restart_wait;
  return {};
}

Result<void> check_options(const Url& url) {
  constexpr std::array<std::string_view, 4> known{"namespace", "tls_ca", "tls_cert", "tls_key"};
  const auto it = std::ranges::find_if(url.parameters, [&](const Url::Parameter& one) {
    return std::ranges::find(known, one.key.text) == known.end();
  });
  if (it == url.parameters.end()) {
    return {};
  }
  return complain_at(it->key.position,
                     "unknown option \"" + it->key.text +
                         "\"; there are owner, key_prefix, request_timeout, namespace, tls_ca, "
                         "tls_cert, tls_key, node_timeout, retry_delay, restart_wait");
}

/// One vote each: who is named twice would have two.
Result<void> check_endpoints(const std::vector<Endpoint>& endpoints, const Url& url) {
  if (endpoints.size() > servers_max) {
    return complain_at(url.authority.position, "there are " + std::to_string(endpoints.size()) +
                                                   " servers; at most " +
                                                   std::to_string(servers_max) + " vote");
  }
  for (auto it = endpoints.begin(); it != endpoints.end(); ++it) {
    if (std::find(std::next(it), endpoints.end(), *it) != endpoints.end()) {
      return complain_at(url.authority.position,
                         name_of(*it) + " is named twice; each server has one vote");
    }
  }
  return {};
}

}  // namespace

Result<Servers> servers_from(Url& url, milliseconds patience) {
  Servers servers;
  if (auto taken = take_times(url, servers); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  if (auto checked = check_options(url); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  // A password may have an '@' in it, a host not.
  const auto at = url.authority.text.rfind('@');
  const auto user_bytes = at == std::string::npos ? 0 : at + 1;
  const auto user = url.authority.text.substr(0, user_bytes);
  url.authority.text.erase(0, user_bytes);
  url.authority.position += user_bytes;
  const auto endpoints = endpoints_of(url, default_port);
  if (!endpoints) {
    return std::unexpected(endpoints.error());
  }
  if (auto checked = check_endpoints(*endpoints, url); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  for (const auto& endpoint : *endpoints) {
    auto one = url;
    one.scheme = url.scheme == "redlocks" ? "rediss" : "redis";
    one.authority = {.text = user + name_of(endpoint),
                     .position = url.authority.position - user_bytes};
    auto address = redis::address_from(one, patience);
    if (!address) {
      return std::unexpected(std::move(address).error());
    }
    servers.addresses.push_back(*std::move(address));
  }
  url.parameters.clear();
  return servers;
}

std::optional<std::string> doubt_about(const Servers& servers) {
  const auto count = servers.addresses.size();
  if (count == 1) {
    return "redlock:// with one server survives nothing; redis:// is fair besides, and five "
           "survive "
           "the loss of two";
  }
  if (count % 2 == 0) {
    return "redlock:// with " + std::to_string(count) + " servers, an even number, survives the " +
           "loss of no more of them than with " + std::to_string(count - 1);
  }
  return std::nullopt;
}

}  // namespace tenure::backends::redlock
