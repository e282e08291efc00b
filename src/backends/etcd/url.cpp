#include "backends/etcd/url.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "backends/net/tls_files.hpp"

namespace tenure::backends::etcd {
namespace {

constexpr std::uint16_t default_port = 2379;
constexpr std::size_t root_bytes_max = 256;

Result<std::string> root_of(const Url& url) {
  auto root = url.path.text;
  if (root.size() > root_bytes_max) {
    return url_error(url.path.position, "the prefix of names has at most 256 bytes");
  }
  if (!root.empty() && !root.ends_with('/')) {
    root += '/';
  }
  return root;
}

}  // namespace

Result<Address> address_from(Url& url, std::chrono::milliseconds timeout) {
  Address address{.servers = {.kind = "etcd"}};
  if (auto login = take_login(url)) {
    if (login->user.empty() || login->password.value_or("").empty()) {
      return url_error(login->position, "etcd requires user and password: user:password@host");
    }
    address.user = std::move(login->user);
    address.password = *std::move(login->password);
  }
  auto endpoints = endpoints_of(url, default_port);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  auto root = root_of(url);
  if (!root) {
    return std::unexpected(std::move(root).error());
  }
  auto tls = consume_with_tls(url, UrlOptions(UrlOptions::common_with_event_loop),
                              url.scheme == "etcds" ? Tls::always : Tls::if_asked_for);
  if (!tls) {
    return std::unexpected(std::move(tls).error());
  }
  address.servers.connect_timeout = timeout / static_cast<int>(endpoints->size());
  address.servers.endpoints = *std::move(endpoints);
  address.servers.tls = *std::move(tls);
  address.root = *std::move(root);
  return address;
}

}  // namespace tenure::backends::etcd
