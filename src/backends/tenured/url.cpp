#include "backends/tenured/url.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <system_error>
#include <utility>

#include "backends/net/tls_files.hpp"

namespace tenure::backends::tenured {
namespace {

constexpr std::uint16_t default_port = 7420;
constexpr std::size_t token_bytes_max = 1024;

/// Checks that a token is a valid header value: printable, without spaces. The error never repeats
/// the token.
Result<std::string> checked(std::string token, const std::string& where) {
  const bool is_good =
      !token.empty() && token.size() <= token_bytes_max &&
      std::ranges::all_of(token, [](char byte) { return byte > 0x20 && byte < 0x7F; });
  if (!is_good) {
    return fail(Errc::invalid_argument, where +
                                            " has no token: it is one word, as `tenured token` "
                                            "printed it");
  }
  return token;
}

Result<std::string> token_in(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  if (!stream.is_open() || (!std::getline(stream, line) && stream.bad())) {
    return fail(Errc::invalid_argument, "the token file " + file + " cannot be read: " +
                                            std::generic_category().message(errno));
  }
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  return checked(std::move(line), "the token file " + file);
}

/// Removes the token, and a user name before it, from the authority.
std::string take_token(Url& url) {
  auto& text = url.authority.text;
  const auto at = text.rfind('@');
  if (at == std::string::npos) {
    return {};
  }
  auto token = text.substr(0, at);
  token.erase(0, token.find(':') + 1);
  text.erase(0, at + 1);
  url.authority.position += at + 1;
  return token;
}

/// Finds the token: the URL takes precedence over the options of the program.
Result<std::string> find_token(Url& url, const std::string& token_file, const Login& login) {
  const bool has_one = url.authority.text.find('@') != std::string::npos;
  auto token = take_token(url);
  if (has_one) {
    return checked(std::move(token), "the part before '@' of the URL");
  }
  if (!token_file.empty()) {
    return token_in(token_file);
  }
  if (!login.token.empty()) {
    return checked(login.token, "auth_token");
  }
  return login.token_file.empty() ? Result<std::string>() : token_in(login.token_file);
}

}  // namespace

Result<Servers> servers_from(Url& url, std::chrono::milliseconds timeout, const Login& login) {
  if (!url.path.text.empty()) {
    return url_error(url.path.position, "tenure:// has no path; key_prefix=… is an option");
  }
  std::string token_file;
  UrlOptions options(UrlOptions::common_with_event_loop);
  options.text("token_file", token_file);
  auto tls = consume_with_tls(url, std::move(options), Tls::if_asked_for);
  if (!tls) {
    return std::unexpected(std::move(tls).error());
  }
  auto token = find_token(url, token_file, login);
  if (!token) {
    return std::unexpected(std::move(token).error());
  }
  auto endpoints = endpoints_of(url, default_port);
  if (!endpoints) {
    return std::unexpected(std::move(endpoints).error());
  }
  const auto each = timeout / static_cast<int>(endpoints->size());
  return Servers{.endpoints = *std::move(endpoints),
                 .tls = *std::move(tls),
                 .connect_timeout = each,
                 .token = *std::move(token)};
}

bool are_local(const Servers& servers) {
  return std::ranges::all_of(servers.endpoints, [](const Endpoint& endpoint) {
    return endpoint.host == "localhost" || endpoint.host == "::1" ||
           endpoint.host.starts_with("127.");
  });
}

bool exposes_token(const Servers& servers) {
  return !servers.token.empty() && servers.tls == nullptr && !are_local(servers);
}

}  // namespace tenure::backends::tenured
