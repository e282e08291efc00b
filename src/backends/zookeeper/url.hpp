#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::zookeeper {

/// Access control of created nodes.
enum class Access : std::uint8_t {
  /// Open to every client.
  world,
  /// Only clients with the same user and password.
  creator,
};

/// Parameters of a zookeeper:// URL.
struct Address {
  std::vector<Endpoint> endpoints{};
  /// Root path; empty, or begins with '/'. Created on demand.
  std::string chroot{};
  /// Digest credentials "user:password"; empty: none.
  std::string identity{};
  Access access = Access::world;
  /// Timeout of one request.
  std::chrono::milliseconds timeout{};
};

/// Parses the URL and removes the known options from it.
[[nodiscard]] Result<Address> address_from(Url& url, std::chrono::milliseconds timeout);

/// Connect string of the C client: "host:port,host:port".
[[nodiscard]] std::string hosts_of(const Address& address);

}  // namespace tenure::backends::zookeeper
