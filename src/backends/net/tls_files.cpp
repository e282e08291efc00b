#include "backends/net/tls_files.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "h2/transport.hpp"

namespace tenure::backends {
namespace {

/// What a file has that the URL names, and where it does so.
struct Named {
  std::string content{};
  std::size_t position = 0;
};

/// The file that the parameter names, which is taken out of the URL.
Result<std::optional<Named>> take_file(Url& url, std::string_view key) {
  const auto it = std::ranges::find_if(
      url.parameters, [&](const Url::Parameter& one) { return one.key.text == key; });
  if (it == url.parameters.end()) {
    return std::nullopt;
  }
  const auto value = it->value;
  url.parameters.erase(it);
  std::ifstream file(value.text, std::ios::binary);
  if (!file) {
    return complain_at(value.position, "cannot read " + value.text);
  }
  std::ostringstream content;  // a folder can be opened, and fails only now
  content << file.rdbuf();
  Named named{.content = std::move(content).str(), .position = value.position};
  if (named.content.empty()) {
    // Not the same as none: that would mean to trust others than the user said.
    return complain_at(value.position, value.text + " is empty, or no file");
  }
  return named;
}

}  // namespace

Result<std::shared_ptr<boost::asio::ssl::context>> take_tls(Url& url, Tls wanted) {
  h2::ClientTlsFiles files;
  std::optional<std::size_t> first;  // of the options, where it stands
  const std::pair<const char*, std::string*> options[] = {
      {"tls_ca", &files.ca}, {"tls_cert", &files.certificate}, {"tls_key", &files.key}};
  for (const auto& [key, text] : options) {
    auto read = take_file(url, key);
    if (!read) {
      return std::unexpected(std::move(read).error());
    }
    if (read->has_value()) {
      first = std::min(first.value_or((*read)->position), (*read)->position);
      *text = std::move((*read)->content);
    }
  }
  if (!first && wanted == Tls::if_asked_for) {
    return nullptr;
  }
  if (files.certificate.empty() != files.key.empty()) {
    return complain_at(first.value_or(0), "tls_cert and tls_key go together");
  }
  auto context = h2::client_context(files);
  if (!context) {
    return complain_at(first.value_or(0), context.error().detail);
  }
  return std::shared_ptr<boost::asio::ssl::context>(*std::move(context));
}

}  // namespace tenure::backends
