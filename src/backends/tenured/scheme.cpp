// tenure://token@host:port,host:port?token_file=FILE&tls_ca=FILE&tls_cert=FILE&tls_key=FILE
//
// Part of the library tenure_cluster: a program that links it can connect() to `tenured`; other
// programs do not need its dependencies.

#include <memory>
#include <utility>

#include "backends/schemes.hpp"
#include "backends/tenured/backend.hpp"
#include "backends/tenured/url.hpp"
#include "sys/process.hpp"

namespace tenure::backends::tenured {
namespace {

Result<std::unique_ptr<Backend>> open_tenure(Url& url, const ConnectOptions& options) {
  auto servers = servers_from(url, options.request_timeout,
                              {.token = options.auth_token, .token_file = options.auth_token_file});
  if (!servers) {
    return std::unexpected(std::move(servers).error());
  }
  if (options.on_warning && exposes_token(*servers)) {
    options.on_warning(
        "the token is sent unencrypted and can be intercepted; add tls_ca=FILE to the URL");
  }
  auto opened = TenuredBackend::open(*std::move(servers),
                                     options.owner.empty() ? sys::process_label() : options.owner,
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
}  // namespace tenure::backends::tenured

/// Symbol that the package references, so that a linker keeps this file of a static library.
extern "C" bool tenure_has_cluster() {
  return tenure::backends::tenured::is_added;
}
