#include "server/http/message.hpp"

#include <algorithm>
#include <cstddef>

#include <boost/asio/ip/address.hpp>

#include "sys/json_writer.hpp"

namespace tenure::server::http {
namespace {

/// No route has more than a handful of parameters.
constexpr std::size_t parameters_max = 32;

/// -1: not a hexadecimal digit.
int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  // Setting bit 5 converts an ASCII letter to lower case.
  const auto lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// '+' is a space in the query of an HTML form, but an ordinary character in a path.
enum class Plus : std::uint8_t { stays, is_space };

Result<std::string> decode(std::string_view text, Plus plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' && plus == Plus::is_space ? ' ' : text[i];
      continue;
    }
    const auto high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const auto low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return fail(Errc::invalid_argument,
                  "a percent sign must be followed by two hexadecimal digits");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Result<void> parse_query(std::string_view query, Request& request) {
  while (!query.empty()) {
    // find() returns npos for the last pair; substr() then takes the rest.
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.empty()) {
      continue;
    }
    const auto equals = std::min(pair.find('='), pair.size());
    auto name = decode(pair.substr(0, equals), Plus::is_space);
    auto value = decode(pair.substr(std::min(equals + 1, pair.size())), Plus::is_space);
    if (!name || !value) {
      return std::unexpected(name ? value.error() : name.error());
    }
    if (request.query.size() >= parameters_max) {
      return fail(Errc::invalid_argument, "too many query parameters");
    }
    if (!request.query.emplace(*std::move(name), *std::move(value)).second) {
      return fail(Errc::invalid_argument, "duplicate query parameter");
    }
  }
  return {};
}

/// Omits an empty code.
Response problem(unsigned status, std::string_view title, std::string_view detail,
                 std::string_view code) {
  sys::JsonWriter json;
  json.object([&] {
    json.field("type", "about:blank");
    json.field("title", title);
    json.field("status", status);
    json.field("detail", detail);
    if (!code.empty()) {
      json.field("code", code);
    }
  });
  return {.status = status, .content_type = "application/problem+json", .body = json.take() + '\n'};
}

}  // namespace

std::optional<std::string_view> Request::parameter(std::string_view name) const {
  const auto it = query.find(name);
  return it == query.end() ? std::nullopt : std::optional<std::string_view>(it->second);
}

Result<Request> parse_target(std::string_view target) {
  const auto question = std::min(target.find('?'), target.size());
  auto path = decode(target.substr(0, question), Plus::stays);
  if (!path) {
    return std::unexpected(path.error());
  }
  if (!path->starts_with('/')) {
    return fail(Errc::invalid_argument, "the request target must start with a slash");
  }
  Request request{.path = *std::move(path)};
  const auto parsed = parse_query(target.substr(std::min(question + 1, target.size())), request);
  if (!parsed) {
    return std::unexpected(parsed.error());
  }
  return request;
}

std::string_view cookie_in(std::string_view field, std::string_view name) {
  while (!field.empty()) {
    auto pair = field.substr(0, field.find(';'));
    field.remove_prefix(std::min(pair.size() + 1, field.size()));
    while (pair.starts_with(' ')) {
      pair.remove_prefix(1);
    }
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

bool is_allowed_host(std::string_view host, std::string_view allowed) {
  // A colon inside brackets belongs to an IPv6 address.
  const auto colon = host.ends_with(']') ? host.npos : host.rfind(':');
  host = host.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  // A rebound name cannot be an IP address or localhost, so these need no entry in the list.
  if (!error || host.empty() || host == "localhost" || allowed == "*") {
    return true;
  }
  while (!allowed.empty()) {
    const auto name = allowed.substr(0, allowed.find(','));
    if (name == host) {
      return true;
    }
    allowed.remove_prefix(std::min(name.size() + 1, allowed.size()));
  }
  return false;
}

Response problem(unsigned status, std::string_view title, std::string_view detail) {
  return problem(status, title, detail, "");
}

Response error_response(const Error& error) {
  const auto code = tenure::to_string(error.code);
  const auto detail =
      error.detail.empty() ? tenure::message(error.code) : std::string_view(error.detail);
  switch (error.code) {
    // 409: the request is valid, but the state of the lock or of the wait does not allow it.
    case Errc::would_block:
    case Errc::timed_out:
    case Errc::cancelled:
    case Errc::deadlock:
    case Errc::not_held: return problem(409, "Conflict", detail, code);
    case Errc::invalid_argument:
    case Errc::unsupported: return problem(400, "Bad Request", detail, code);
    case Errc::permission_denied: return problem(403, "Forbidden", detail, code);
    case Errc::lease_lost: return problem(410, "Gone", detail, code);
    case Errc::resource_exhausted: return problem(429, "Too Many Requests", detail, code);
    case Errc::unavailable: break;
  }
  // The outcome is unknown. Clients repeat the request with the same request id.
  auto response = problem(503, "Service Unavailable", detail, code);
  response.fields.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace tenure::server::http
