// tenure://token@host:port,host:port?token_file=FILE&tls_ca=FILE&tls_cert=FILE&tls_key=FILE
//
// A library of its own (tenure_cluster): whoever links it can connect() to `tenured`, and whoever
// does not needs none of what it needs.

#include <memory>
#include <utility>

#include "backends/cluster/cluster_backend.hpp"
#include "backends/cluster/servers.hpp"
#include "client/schemes.hpp"
#include "sys/process.hpp"

namespace tenure::detail {
namespace {

Result<std::unique_ptr<backends::Backend>> open_tenure(backends::Url& url,
                                                       const ConnectOptions& options) {
  auto servers = backends::cluster::servers_from(
      url, options.request_timeout,
      {.token = options.auth_token, .token_file = options.auth_token_file});
  if (!servers) {
    return std::unexpected(std::move(servers).error());
  }
  if (options.on_warning && backends::cluster::shows_token(*servers)) {
    options.on_warning(
        "the token goes over the network in plain text: anybody on the way can take it; add "
        "tls_ca=FILE to the URL");
  }
  auto opened = backends::cluster::ClusterBackend::open(
      *std::move(servers), options.owner.empty() ? sys::process_label() : options.owner,
      options.request_timeout);
  if (!opened) {
    return std::unexpected(std::move(opened).error());
  }
  return *std::move(opened);
}

const bool is_added = [] {
  add_scheme("tenure", open_tenure);
  return true;
}();

}  // namespace
}  // namespace tenure::detail

/// Linkers leave out what nobody mentions; the package mentions this.
extern "C" bool tenure_has_cluster() {
  return tenure::detail::is_added;
}
