#include "backends/redis/address.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "backends/net/tls_files.hpp"

namespace tenure::backends::redis {
namespace {

constexpr std::uint16_t redis_port = 6379;
constexpr std::size_t namespace_bytes_max = 64;

Result<unsigned> database_of(const Url& url) {
  const auto& text = url.path.text;
  unsigned number = 0;
  if (text.empty()) {
    return number;
  }
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) {
    return complain_at(url.path.position, "a database of Redis is a number, such as 0");
  }
  return number;
}

bool is_namespace_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

Result<void> take_namespace(Url& url, Address& address) {
  const auto it = std::ranges::find_if(
      url.parameters, [](const Url::Parameter& one) { return one.key.text == "namespace"; });
  if (it == url.parameters.end()) {
    return {};
  }
  const auto value = it->value;
  url.parameters.erase(it);
  if (value.text.empty() || value.text.size() > namespace_bytes_max ||
      !std::ranges::all_of(value.text, is_namespace_character)) {
    return complain_at(value.position,
                       "a namespace has from 1 to 64 letters, digits, '-', '_' and '.'");
  }
  address.name_space = value.text;
  return {};
}

}  // namespace

void take_user(Url& url, Address& address) {
  if (auto login = take_login(url)) {
    address.user = std::move(login->user);
    address.password = std::move(login->password).value_or("");
  }
}

Result<void> take_rest(Url& url, Address& address, std::string_view others) {
  const auto database = database_of(url);
  if (!database) {
    return std::unexpected(database.error());
  }
  address.database = *database;
  if (auto taken = take_namespace(url, address); !taken) {
    return taken;
  }
  auto tls = take_tls(url, url.scheme.starts_with("rediss") ? Tls::always : Tls::if_asked_for);
  if (!tls) {
    return std::unexpected(std::move(tls).error());
  }
  address.tls = *std::move(tls);
  if (!url.parameters.empty()) {
    return complain_at(url.parameters.front().key.position,
                       "unknown option \"" + url.parameters.front().key.text +
                           "\"; there are owner, key_prefix, request_timeout, namespace, " +
                           std::string(others) + "tls_ca, tls_cert, tls_key");
  }
  return {};
}

Result<Address> address_from(Url& url, std::chrono::milliseconds patience) {
  Address address{.timeout = patience};
  take_user(url, address);
  auto endpoints = endpoints_of(url, redis_port);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  if (endpoints->size() > 1) {
    return complain_at(url.authority.position,
                       url.scheme +
                           ":// is one server; several are redis+sentinel://, "
                           "redis+cluster:// or redlock://");
  }
  address.endpoint = std::move(endpoints->front());
  if (auto taken = take_rest(url, address, ""); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  return address;
}

}  // namespace tenure::backends::redis
