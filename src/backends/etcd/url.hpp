#pragma once

#include <chrono>
#include <string>

#include <tenure/error.hpp>

#include "backends/rpc/channel_connector.hpp"
#include "backends/url.hpp"

namespace tenure::backends::etcd {

/// Where the members of an etcd cluster are, and how they are spoken to.
struct Address {
  Servers servers{};
  std::string user{};      ///< Empty: nobody.
  std::string password{};  ///< Never repeated to anybody.
  std::string root{};      ///< Before the name of every lock; ends with '/' unless it is empty.
};

/// etcd://[user:password@]host[:port],…[/root][?tls_ca=…&tls_cert=…&tls_key=…]; etcds:// speaks TLS
/// in any case. Takes what it knows out of the URL. `invalid_argument` says what is wrong and
/// where, and never repeats the password.
[[nodiscard]] Result<Address> address_from(Url& url, std::chrono::milliseconds timeout);

}  // namespace tenure::backends::etcd
