#include "backends/cluster/servers.hpp"

#include <utility>

#include "backends/net/tls_files.hpp"

namespace tenure::backends::cluster {
namespace {

constexpr std::uint16_t default_port = 7420;

}  // namespace

Result<Servers> servers_from(Url& url, std::chrono::milliseconds patience) {
  if (!url.path.text.empty()) {
    return complain_at(url.path.position, "tenure:// has no path; key_prefix=… is an option");
  }
  auto endpoints = endpoints_of(url, default_port);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  auto tls = take_tls(url, Tls::if_asked_for);
  if (!tls) {
    return std::unexpected(std::move(tls).error());
  }
  if (!url.parameters.empty()) {
    return complain_at(url.parameters.front().key.position,
                       "unknown option \"" + url.parameters.front().key.text +
                           "\"; there are owner, key_prefix, request_timeout, tls_ca, tls_cert, "
                           "tls_key");
  }
  const auto each = patience / static_cast<int>(endpoints->size());
  return Servers{
      .endpoints = *std::move(endpoints), .tls = *std::move(tls), .connect_timeout = each};
}

}  // namespace tenure::backends::cluster
