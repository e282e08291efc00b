#include "backends/redis/url.hpp"

#include <algorithm>
#include <utility>

namespace tenure::backends::redis {
namespace {

/// Default port of a Sentinel.
constexpr std::uint16_t sentinel_port = 26379;
/// Maximum number of servers in a URL. A cluster may have more nodes; some of them suffice to find
/// the others.
constexpr std::size_t endpoints_max = 64;

/// Topology that the scheme selects.
Deployment::Form form_of(const Url& url) {
  return url.scheme.ends_with("+sentinel")  ? Deployment::Form::sentinel
         : url.scheme.ends_with("+cluster") ? Deployment::Form::cluster
                                            : Deployment::Form::one_server;
}

/// Endpoints of the URL without duplicates.
Result<std::vector<Endpoint>> take_endpoints(const Url& url, Deployment::Form form) {
  auto endpoints =
      endpoints_of(url, form == Deployment::Form::sentinel ? sentinel_port : server_port);
  if (!endpoints) {
    return endpoints;
  }
  if (form == Deployment::Form::one_server && endpoints->size() > 1) {
    return url_error(url.authority.position, url.scheme +
                                                 ":// takes one server; use redis+sentinel://, "
                                                 "redis+cluster:// or redlock:// for several");
  }
  if (endpoints->size() > endpoints_max) {
    return url_error(url.authority.position, "at most 64 servers are allowed");
  }
  std::vector<Endpoint> once;
  for (auto& endpoint : *endpoints) {
    if (std::ranges::find(once, endpoint) == once.end()) {
      once.push_back(std::move(endpoint));
    }
  }
  return once;
}

/// Consumes the service name and the '/' after it from the path; the database number remains.
Result<std::string> take_service(Url& url) {
  auto& path = url.path;
  const auto slash = std::min(path.text.find('/'), path.text.size());
  auto service = path.text.substr(0, slash);
  if (service.empty()) {
    return url_error(path.position,
                     "the name of the Sentinel service is missing: "
                     "redis+sentinel://host:port,…/service");
  }
  const auto cut = std::min(slash + 1, path.text.size());
  path.text.erase(0, cut);
  path.position += cut;
  return service;
}

}  // namespace

std::string Deployment::name() const {
  std::string names;
  for (const auto& endpoint : endpoints) {
    names += (names.empty() ? "" : ",") + name_of(endpoint);
  }
  return names + (form == Form::sentinel ? "/" + service : "");
}

Result<Deployment> deployment_from(Url& url, std::chrono::milliseconds timeout) {
  Deployment deployment{.form = form_of(url), .server = {.timeout = timeout}};
  take_user(url, deployment.server);
  auto endpoints = take_endpoints(url, deployment.form);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  deployment.endpoints = *std::move(endpoints);
  deployment.server.endpoint = deployment.endpoints.front();
  auto options = redis_options();
  if (deployment.form == Deployment::Form::sentinel) {
    auto service = take_service(url);
    if (!service) {
      return std::unexpected(std::move(service).error());
    }
    deployment.service = *std::move(service);
    options.text("sentinel_user", deployment.sentinel_user)
        .text("sentinel_password", deployment.sentinel_password);
  }
  if (deployment.form == Deployment::Form::cluster && !url.path.text.empty()) {
    return url_error(url.path.position, "a cluster has database 0 only; remove the path");
  }
  if (auto taken = take_rest(url, deployment.server, std::move(options)); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  return deployment;
}

}  // namespace tenure::backends::redis
