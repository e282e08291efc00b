#include "backends/net/tls_files.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "net/tls_context.hpp"

namespace tenure::backends {

Result<std::shared_ptr<boost::asio::ssl::context>> consume_with_tls(Url& url, UrlOptions options,
                                                                    Tls wanted) {
  std::optional<UrlOptions::File> ca;
  std::optional<UrlOptions::File> certificate;
  std::optional<UrlOptions::File> key;
  options.file("tls_ca", ca).file("tls_cert", certificate).file("tls_key", key);
  if (auto consumed = options.consume(url); !consumed) {
    return std::unexpected(std::move(consumed).error());
  }
  std::optional<std::size_t> first;  // position of the first of these options
  const auto content_of = [&](const std::optional<UrlOptions::File>& file) {
    if (file) {
      first = std::min(first.value_or(file->position), file->position);
    }
    return file ? file->content : std::string();
  };
  const net::ClientTlsFiles files{
      .ca = content_of(ca), .certificate = content_of(certificate), .key = content_of(key)};
  if (!first && wanted == Tls::if_asked_for) {
    return nullptr;
  }
  if (files.certificate.empty() != files.key.empty()) {
    return url_error(first.value_or(0), "tls_cert and tls_key go together");
  }
  auto context = net::client_context(files);
  if (!context) {
    return url_error(first.value_or(0), context.error().detail);
  }
  return std::shared_ptr<boost::asio::ssl::context>(*std::move(context));
}

}  // namespace tenure::backends
