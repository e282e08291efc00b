#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::zookeeper {

/// Whom the nodes that we make belong to.
enum class Access : std::uint8_t {
  world,    ///< Everybody may do everything.
  creator,  ///< Only who has our user and password.
};

/// What a zookeeper:// URL says.
struct Address {
  std::vector<Endpoint> endpoints{};
  std::string chroot{};    ///< Empty, or a path that begins with '/'. Made when it is needed.
  std::string identity{};  ///< "user:password"; empty: none.
  Access access = Access::world;
  std::chrono::milliseconds timeout{};  ///< For one answer.
};

/// Takes what it knows out of the URL.
[[nodiscard]] Result<Address> address_from(Url& url, std::chrono::milliseconds timeout);

/// "host:port,host:port", as the C client takes it.
[[nodiscard]] std::string hosts_of(const Address& address);

}  // namespace tenure::backends::zookeeper
