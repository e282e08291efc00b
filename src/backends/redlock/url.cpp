#include "backends/redlock/url.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tenure::backends::redlock {
namespace {

using std::chrono::milliseconds;

/// Upper limit of the time options.
constexpr std::chrono::hours time_max{24};

/// A server that is named twice would have two votes.
Result<void> check_endpoints(const std::vector<Endpoint>& endpoints, const Url& url) {
  if (endpoints.size() > servers_max) {
    return url_error(url.authority.position, std::to_string(endpoints.size()) +
                                                 " servers; at most " +
                                                 std::to_string(servers_max) + " can vote");
  }
  for (auto it = endpoints.begin(); it != endpoints.end(); ++it) {
    if (std::find(std::next(it), endpoints.end(), *it) != endpoints.end()) {
      return url_error(url.authority.position,
                       name_of(*it) + " is named twice; each server has one vote");
    }
  }
  return {};
}

}  // namespace

Result<Deployment> deployment_from(Url& url, milliseconds timeout) {
  Deployment deployment;
  redis::ServerOptions server{.timeout = timeout};
  redis::take_user(url, server);
  const auto endpoints = endpoints_of(url, redis::server_port);
  if (!endpoints) {
    return std::unexpected(endpoints.error());
  }
  if (auto checked = check_endpoints(*endpoints, url); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  auto options = redis::redis_options();
  options
      .duration("node_timeout", deployment.node_timeout,
                {.least = milliseconds(1), .most = time_max})
      .duration("retry_delay", deployment.retry_delay, {.least = milliseconds(1), .most = time_max})
      .duration("restart_wait", deployment.restart_wait, {.most = time_max});
  if (auto taken = redis::take_rest(url, server, std::move(options)); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  for (const auto& endpoint : *endpoints) {
    deployment.servers.push_back(server);
    deployment.servers.back().endpoint = endpoint;
  }
  return deployment;
}

std::optional<std::string> warning_about(const Deployment& deployment) {
  const auto count = deployment.servers.size();
  if (count == 1) {
    return "redlock:// with one server tolerates no failure; use redis://, which is fair, or five "
           "servers, which tolerate two failures";
  }
  if (count % 2 == 0) {
    return "redlock:// with " + std::to_string(count) +
           " servers, an even number, tolerates no more " + "failures than with " +
           std::to_string(count - 1);
  }
  return std::nullopt;
}

}  // namespace tenure::backends::redlock
