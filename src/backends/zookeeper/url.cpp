#include "backends/zookeeper/url.hpp"

#include <algorithm>
#include <utility>

#include "backends/url_options.hpp"
#include "backends/zookeeper/paths.hpp"

namespace tenure::backends::zookeeper {
namespace {

constexpr std::uint16_t default_port = 2181;

Result<void> parse_chroot(const Url& url, Address& address) {
  if (url.path.text.empty()) {
    return {};
  }
  address.chroot = '/' + url.path.text;
  if (const auto flaw = flaw_of_chroot(address.chroot); !flaw.empty()) {
    return url_error(url.path.position, "invalid ZooKeeper path: " + std::string(flaw));
  }
  return {};
}

Result<void> consume_options(Url& url, Address& address) {
  const auto tls = std::ranges::find_if(url.parameters, [](const Url::Parameter& parameter) {
    return parameter.key.text.starts_with("tls_");
  });
  if (tls != url.parameters.end()) {
    return fail(Errc::unsupported,
                "at " + std::to_string(tls->key.position) +
                    ": zookeeper:// does not support TLS: the C client of Debian is "
                    "built without it");
  }
  const bool has_identity = !address.identity.empty();
  address.access = has_identity ? Access::creator : Access::world;
  return UrlOptions(UrlOptions::common)
      .add("acl",
           [&](const Url::Part& value) -> Result<void> {
             if (value.text != "world" && value.text != "creator") {
               return url_error(value.position, "acl is world or creator");
             }
             if (value.text == "creator" && !has_identity) {
               return url_error(value.position,
                                "acl=creator requires credentials: user:password@host");
             }
             address.access = value.text == "world" ? Access::world : Access::creator;
             return {};
           })
      .consume(url);
}

}  // namespace

std::string hosts_of(const Address& address) {
  std::string hosts;
  for (const auto& endpoint : address.endpoints) {
    hosts += (hosts.empty() ? "" : ",") + name_of(endpoint);
  }
  return hosts;
}

Result<Address> address_from(Url& url, std::chrono::milliseconds timeout) {
  Address address{.timeout = timeout};
  if (const auto login = take_login(url)) {
    if (login->user.empty() || !login->password) {
      return url_error(login->position, "credentials have the form user:password@");
    }
    address.identity = login->user + ':' + *login->password;
  }
  auto endpoints = endpoints_of(url, default_port);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  address.endpoints = *std::move(endpoints);
  if (auto taken = parse_chroot(url, address); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  if (auto consumed = consume_options(url, address); !consumed) {
    return std::unexpected(std::move(consumed).error());
  }
  return address;
}

}  // namespace tenure::backends::zookeeper
