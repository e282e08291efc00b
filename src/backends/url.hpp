#pragma once

#include <cstddef>
#include <cstdint>
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
  Part path{};  ///< Without the '/' before it.
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

/// `at 9: why`: positions count bytes from 0.
[[nodiscard]] std::unexpected<Error> complain_at(std::size_t position, std::string_view why);

}  // namespace tenure::backends
