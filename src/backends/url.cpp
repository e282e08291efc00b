#include "backends/url.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "sys/parse_number.hpp"

namespace tenure::backends {
namespace {

bool is_scheme_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/// Decodes %XX in text that begins at `position` of the URL.
Result<Url::Part> decode(std::string_view text, std::size_t position) {
  Url::Part part{.text = {}, .position = position};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at]) <= ' ') {
      return url_error(position + at, "a space or control character; encode it as %XX");
    }
    if (text[at] != '%') {
      part.text.push_back(text[at]);
      continue;
    }
    const auto digits = text.substr(at + 1, 2);
    const auto value = sys::parse_number<std::uint8_t>(digits, 16);
    if (digits.size() != 2 || !value) {
      return url_error(position + at, "two hexadecimal digits are expected after '%'");
    }
    part.text.push_back(static_cast<char>(*value));
    at += 2;
  }
  return part;
}

Result<Url::Parameter> parse_parameter(std::string_view text, std::size_t position) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return url_error(position, "an option is written key=value");
  }
  auto key = decode(text.substr(0, equals), position);
  if (!key) {
    return std::unexpected(std::move(key).error());
  }
  auto value = decode(text.substr(equals + 1), position + equals + 1);
  if (!value) {
    return std::unexpected(std::move(value).error());
  }
  return Url::Parameter{.key = *std::move(key), .value = *std::move(value)};
}

/// Parses the options that begin at `position` and adds them to the URL.
Result<void> parse_parameters(std::string_view text, std::size_t position, Url& url) {
  while (!text.empty()) {
    const auto piece = text.substr(0, text.find('&'));
    auto parameter = parse_parameter(piece, position);
    if (!parameter) {
      return std::unexpected(std::move(parameter).error());
    }
    url.parameters.push_back(*std::move(parameter));
    const auto step = std::min(piece.size() + 1, text.size());
    text.remove_prefix(step);
    position += step;
  }
  return {};
}

/// Parses one host[:port] that begins at `position`.
Result<Endpoint> parse_endpoint(std::string_view text, std::size_t position,
                                std::uint16_t default_port) {
  Endpoint endpoint{.host = {}, .port = default_port};
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) {
      return url_error(position, "the ']' of an IPv6 address is missing");
    }
    endpoint.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    endpoint.host = text.substr(0, text.find(':'));
    rest = text.substr(endpoint.host.size());
  }
  if (endpoint.host.empty()) {
    return url_error(position, "a host name is missing");
  }
  if (rest.empty()) {
    return endpoint;
  }
  const auto where = position + text.size() - rest.size();
  endpoint.port = sys::parse_number<std::uint16_t>(rest.substr(1)).value_or(0);
  if (rest.front() != ':' || endpoint.port == 0) {
    return url_error(where, "expected a port from 1 to 65535 after ':'");
  }
  return endpoint;
}

}  // namespace

std::string without_secrets(std::string_view url) {
  const auto mark = url.find("://");
  if (mark == std::string_view::npos) {
    return std::string(url);
  }
  const auto begin = mark + 3;
  // The same rule as in parse_url(): a password may contain '@', but neither '/' nor '?'.
  const auto end = std::min(url.find_first_of("/?", begin), url.size());
  const auto at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) {
    return std::string(url);
  }
  return std::string(url.substr(0, begin)) + "***" + std::string(url.substr(at));
}

std::unexpected<Error> url_error(std::size_t position, std::string_view why) {
  return fail(Errc::invalid_argument, "at " + std::to_string(position) + ": " + std::string(why));
}

// Splits by position instead of copying, so that every part keeps its offset for errors.
Result<Url> parse_url(std::string_view text) {
  Url url;
  const auto* const scheme_end = std::ranges::find_if_not(text, is_scheme_character);
  const auto scheme_bytes = static_cast<std::size_t>(scheme_end - text.begin());
  if (scheme_bytes == 0 || !text.substr(scheme_bytes).starts_with("://")) {
    return url_error(scheme_bytes,
                     "a URL begins with a scheme in lower case and \"://\", such as "
                     "memory://");
  }
  url.scheme = text.substr(0, scheme_bytes);
  const auto begin = scheme_bytes + 3;
  const auto question = std::min(text.find('?', begin), text.size());
  const auto slash = std::min(text.find('/', begin), question);

  const auto servers = text.substr(begin, slash - begin);
  // A password may contain '@', a host may not: split at the last one.
  url.login_bytes = servers.rfind('@') + 1;
  auto authority = decode(servers, begin);
  if (!authority) {
    return std::unexpected(std::move(authority).error());
  }
  url.authority = *std::move(authority);
  const auto path_begin = std::min(slash + 1, question);
  auto path = decode(text.substr(path_begin, question - path_begin), path_begin);
  if (!path) {
    return std::unexpected(std::move(path).error());
  }
  url.path = *std::move(path);
  if (question < text.size()) {
    auto parsed = parse_parameters(text.substr(question + 1), question + 1, url);
    if (!parsed) {
      return std::unexpected(std::move(parsed).error());
    }
  }
  return url;
}

Result<std::vector<Endpoint>> endpoints_of(const Url& url, std::uint16_t default_port) {
  std::vector<Endpoint> endpoints;
  std::string_view text = url.authority.text;
  auto position = url.authority.position;
  for (;;) {
    const auto piece = text.substr(0, text.find(','));
    auto endpoint = parse_endpoint(piece, position, default_port);
    if (!endpoint) {
      return std::unexpected(std::move(endpoint).error());
    }
    endpoints.push_back(*std::move(endpoint));
    if (piece.size() == text.size()) {
      return endpoints;
    }
    text.remove_prefix(piece.size() + 1);
    position += piece.size() + 1;
  }
}

std::string name_of(const Endpoint& endpoint) {
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::optional<Login> take_login(Url& url) {
  if (url.login_bytes == 0) {
    return std::nullopt;
  }
  auto& text = url.authority.text;
  const auto at = text.rfind('@');
  Login login{.user = text.substr(0, std::min(text.find(':'), at)),
              .position = url.authority.position};
  if (login.user.size() < at) {
    login.password = text.substr(login.user.size() + 1, at - login.user.size() - 1);
  }
  text.erase(0, at + 1);
  url.authority.position += std::exchange(url.login_bytes, 0);
  return login;
}

}  // namespace tenure::backends
