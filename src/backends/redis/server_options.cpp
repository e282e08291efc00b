#include "backends/redis/server_options.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/net/tls_files.hpp"
#include "sys/parse_number.hpp"

namespace tenure::backends::redis {
namespace {

/// Keeps keys short; every key contains the namespace.
constexpr std::size_t namespace_bytes_max = 64;

/// Database number in the path; 0 if the path is empty.
Result<unsigned> database_of(const Url& url) {
  const auto& text = url.path.text;
  if (text.empty()) {
    return 0U;
  }
  if (const auto number = sys::parse_number<unsigned>(text)) {
    return *number;
  }
  return url_error(url.path.position, "the database must be a number, such as 0");
}

bool is_namespace_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

/// Empty if `name` is a valid key prefix, else the description of a valid one.
std::string check_namespace(const std::string& name) {
  const bool is_good = !name.empty() && name.size() <= namespace_bytes_max &&
                       std::ranges::all_of(name, is_namespace_character);
  return is_good ? "" : "a namespace has 1 to 64 letters, digits, '-', '_' and '.'";
}

}  // namespace

void take_user(Url& url, ServerOptions& server) {
  if (auto login = take_login(url)) {
    server.user = std::move(login->user);
    server.password = std::move(login->password).value_or("");
  }
}

Result<void> take_rest(Url& url, ServerOptions& server, UrlOptions options) {
  const auto database = database_of(url);
  if (!database) {
    return std::unexpected(database.error());
  }
  server.database = *database;
  options.text("namespace", server.name_space, check_namespace);
  const bool is_tls_scheme = url.scheme.starts_with("rediss") || url.scheme == "redlocks";
  auto tls =
      consume_with_tls(url, std::move(options), is_tls_scheme ? Tls::always : Tls::if_asked_for);
  if (!tls) {
    return std::unexpected(std::move(tls).error());
  }
  server.tls = *std::move(tls);
  return {};
}

}  // namespace tenure::backends::redis
