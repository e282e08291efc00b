#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::backends {

/// Parsed URL of a lock service: scheme://authority/path?key=value&key=value. Every part keeps its
/// byte position in the URL for error messages.
struct Url {
  struct Part {
    std::string text{};  ///< %XX decoded.
    std::size_t position = 0;
  };
  struct Parameter {
    Part key{};
    Part value{};
  };

  std::string scheme{};
  Part authority{};
  std::size_t login_bytes = 0;  ///< Bytes of `user[:password]@` in the URL, see take_login().
  Part path{};                  ///< Path without the leading '/'.
  std::vector<Parameter> parameters{};
};

/// Host and port of a server.
struct Endpoint {
  std::string host{};  ///< Host name or address, without the brackets of IPv6.
  std::uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Parses a URL. `invalid_argument` names the position: `at 9: …`.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

/// Parses the authority as `host[:port],host[:port],…` with at least one element.
[[nodiscard]] Result<std::vector<Endpoint>> endpoints_of(const Url& url,
                                                         std::uint16_t default_port);

/// Display name: "127.0.0.1:6379", "[::1]:6379".
[[nodiscard]] std::string name_of(const Endpoint& endpoint);

/// Credentials of a URL.
struct Login {
  std::string user{};
  std::optional<std::string> password{};
  std::size_t position = 0;
};
/// Removes user[:password]@ from the authority, if present.
[[nodiscard]] std::optional<Login> take_login(Url& url);

/// URL for logs and errors: the credentials before '@' are replaced by `***`.
[[nodiscard]] std::string without_secrets(std::string_view url);

/// Error `at 9: why` for a part of a URL; positions count bytes from 0.
[[nodiscard]] std::unexpected<Error> url_error(std::size_t position, std::string_view why);

}  // namespace tenure::backends
