#include "backends/zookeeper/address.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/zookeeper/paths.hpp"

namespace tenure::backends::zookeeper {
namespace {

constexpr std::uint16_t default_port = 2181;

std::optional<Url::Part> take(Url& url, std::string_view key) {
  const auto it = std::ranges::find_if(
      url.parameters, [&](const Url::Parameter& one) { return one.key.text == key; });
  if (it == url.parameters.end()) {
    return std::nullopt;
  }
  auto value = std::move(it->value);
  url.parameters.erase(it);
  return value;
}

Result<void> take_access(Url& url, Address& address) {
  address.access = address.identity.empty() ? Access::world : Access::creator;
  const auto said = take(url, "acl");
  if (!said) {
    return {};
  }
  if (said->text == "world") {
    address.access = Access::world;
    return {};
  }
  if (said->text != "creator") {
    return complain_at(said->position, "acl is world or creator");
  }
  if (address.identity.empty()) {
    return complain_at(said->position, "acl=creator needs to know who we are: user:password@host");
  }
  return {};
}

Result<void> take_chroot(const Url& url, Address& address) {
  if (url.path.text.empty()) {
    return {};
  }
  address.chroot = '/' + url.path.text;
  if (const auto flaw = flaw_of_chroot(address.chroot); !flaw.empty()) {
    return complain_at(url.path.position,
                       "this cannot be a path of ZooKeeper: " + std::string(flaw));
  }
  return {};
}

}  // namespace

std::string hosts_of(const Address& address) {
  std::string hosts;
  for (const auto& endpoint : address.endpoints) {
    hosts += (hosts.empty() ? "" : ",") + name_of(endpoint);
  }
  return hosts;
}

Result<Address> address_from(Url& url, std::chrono::milliseconds patience) {
  Address address{.timeout = patience};
  if (const auto login = take_login(url)) {
    if (login->user.empty() || !login->password) {
      return complain_at(login->position, "who we are is written user:password@");
    }
    address.identity = login->user + ':' + *login->password;
  }
  auto endpoints = endpoints_of(url, default_port);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  address.endpoints = *std::move(endpoints);
  if (auto taken = take_chroot(url, address); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  if (auto taken = take_access(url, address); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  if (url.parameters.empty()) {
    return address;
  }
  const auto& key = url.parameters.front().key;
  if (key.text.starts_with("tls_")) {
    return fail(Errc::unsupported, "at " + std::to_string(key.position) +
                                       ": zookeeper:// has no TLS: the C client of Debian is "
                                       "built without it");
  }
  return complain_at(key.position, "unknown option \"" + key.text +
                                       "\"; there are owner, key_prefix, request_timeout, acl");
}

}  // namespace tenure::backends::zookeeper
