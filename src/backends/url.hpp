#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::backends {

/// Where a lock service is: scheme://authority/path?key=value&key=value. Every part remembers at
/// which byte of the URL it begins, for complaints.
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
  std::size_t login_bytes = 0;  ///< How much of the URL user[:password]@ takes, see take_login().
  Part path{};                  ///< Without the '/' before it.
  std::vector<Parameter> parameters{};
};

/// One server.
struct Endpoint {
  std::string host{};  ///< Without the brackets of an IPv6 address.
  std::uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// `invalid_argument`, `at 9: …`, if it is none.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

/// The authority as `host[:port],host[:port],…`; at least one.
[[nodiscard]] Result<std::vector<Endpoint>> endpoints_of(const Url& url,
                                                         std::uint16_t default_port);

/// "127.0.0.1:6379", "[::1]:6379": for people.
[[nodiscard]] std::string name_of(const Endpoint& endpoint);

/// Who we say we are.
struct Login {
  std::string user{};
  std::optional<std::string> password{};
  std::size_t position = 0;
};
/// Takes user[:password]@ off the front of the authority, if it is there.
[[nodiscard]] std::optional<Login> take_login(Url& url);

/// A URL as people and logs may see it: without what stands before the '@' of its authority.
[[nodiscard]] std::string without_secrets(std::string_view url);

/// `at 9: why`: positions count bytes from 0.
[[nodiscard]] std::unexpected<Error> complain_at(std::size_t position, std::string_view why);

}  // namespace tenure::backends
