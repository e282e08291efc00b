#pragma once

#include <chrono>
#include <string>

#include <tenure/error.hpp>

#include "backends/rpc/channel_connector.hpp"
#include "backends/url.hpp"

namespace tenure::backends::etcd {

/// Connection parameters of an etcd cluster.
struct Address {
  Servers servers{};
  /// User name; empty: no authentication.
  std::string user{};
  /// Password; never part of an error.
  std::string password{};
  /// Prefix of every lock name; empty, or ends with '/'.
  std::string root{};
};

/// Parses etcd://[user:password@]host[:port],…[/root][?tls_ca=…&tls_cert=…&tls_key=…]; etcds://
/// always uses TLS. Removes known options from the URL. Errors (`invalid_argument`) name the
/// position and never contain the password.
[[nodiscard]] Result<Address> address_from(Url& url, std::chrono::milliseconds timeout);

}  // namespace tenure::backends::etcd
