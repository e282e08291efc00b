// URLs of connect(): their parts, their servers, their logins, and what each backend reads in them.

#include "backends/url.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backends/etcd/url.hpp"
#include "backends/redis/url.hpp"
#include "backends/redlock/url.hpp"
#include "backends/tenured/url.hpp"
#include "backends/url_options.hpp"
#include "backends/zookeeper/url.hpp"
#include "fuzz/input.hpp"

namespace tenure::fuzz {
namespace {

using namespace backends;

constexpr std::chrono::milliseconds test_timeout{1000};

void check_positions(const Url& url, std::size_t size) {
  require(url.authority.position <= size && url.path.position <= size, "positions in the URL");
  for (const auto& parameter : url.parameters) {
    require(parameter.key.position <= size && parameter.value.position <= size,
            "positions of parameters in the URL");
  }
}

void check_endpoints(const std::vector<Endpoint>& endpoints) {
  require(!endpoints.empty(), "at least one server");
  for (const auto& endpoint : endpoints) {
    require(endpoint.port != 0 && !endpoint.host.empty(), "a server has a host and a port");
    static_cast<void>(name_of(endpoint));
  }
}

/// With another scheme, and without the names of files: the parsers would read any of them.
Url as(std::string_view scheme, const Url& url) {
  auto made = url;
  made.scheme = scheme;
  for (auto& [key, value] : made.parameters) {
    if (key.text.starts_with("tls_") || key.text == "token_file") {
      value.text = "missing.pem";
    }
  }
  return made;
}

void use_common(const Url& url) {
  auto taken = url;
  ConnectOptions options;
  if (!consume_common_options(taken, options)) {
    return;
  }
  for (const auto& [key, value] : taken.parameters) {
    require(key.text != "owner" && key.text != "key_prefix" && key.text != "request_timeout" &&
                key.text != "busy_poll",
            "no common option is left over");
  }
}

void use_redis(const Url& url) {
  // Without TLS: a context with the authorities of the system takes longer than all the rest.
  for (const auto* scheme : {"redis", "redis+sentinel", "redis+cluster"}) {
    auto taken = as(scheme, url);
    if (const auto deployment = redis::deployment_from(taken, test_timeout)) {
      require(taken.parameters.empty(), "no option is left over");
      require(!deployment->name().empty(), "a deployment has a name");
      require(!deployment->server.name_space.empty(), "keys have a namespace");
      if (deployment->form != redis::Deployment::Form::one_server) {
        check_endpoints(deployment->endpoints);
      }
    }
  }
  auto taken = as("redlock", url);
  if (const auto deployment = redlock::deployment_from(taken, test_timeout)) {
    require(taken.parameters.empty(), "no option is left over");
    require(!deployment->servers.empty() && deployment->servers.size() <= redlock::servers_max,
            "the servers are counted");
    require(2 * deployment->quorum() > deployment->servers.size(), "a quorum is a majority");
    static_cast<void>(redlock::warning_about(*deployment));
  }
}

void use_grpc(const Url& url) {
  auto for_etcd = as("etcd", url);
  if (const auto address = etcd::address_from(for_etcd, test_timeout)) {
    check_endpoints(address->servers.endpoints);
    require(address->root.empty() || address->root.ends_with('/'), "a root ends with '/'");
    require(address->user.empty() == address->password.empty(), "a user has a password");
  }
  auto for_tenured = as("tenure", url);
  if (const auto servers = tenured::servers_from(for_tenured, test_timeout)) {
    check_endpoints(servers->endpoints);
    static_cast<void>(tenured::exposes_token(*servers));
  }
}

void use(const Url& url, std::string_view text) {
  check_positions(url, text.size());
  auto plain = url;
  const auto login = take_login(plain);
  require(login.has_value() == (url.login_bytes > 0), "a login is there or not");
  if (const auto endpoints = endpoints_of(plain, 1)) {
    check_endpoints(*endpoints);
  }
  use_common(url);
  use_redis(url);
  use_grpc(url);
  auto for_zookeeper = url;
  if (const auto address = zookeeper::address_from(for_zookeeper, test_timeout)) {
    static_cast<void>(zookeeper::hosts_of(*address));
  }
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = backends::parse_url(text)) {
    fuzz::use(*url, text);
  }
  const auto shown = backends::without_secrets(text);
  fuzz::require(shown.size() <= text.size() + 3, "what is shown is not longer");
  return 0;
}
