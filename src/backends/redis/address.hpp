#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::redis {

/// Where one Redis server is, and how it is spoken to.
struct Address {
  Endpoint endpoint{};
  std::string user{};      ///< Of its ACL; empty: the default user.
  std::string password{};  ///< Empty: none.
  unsigned database = 0;
  std::shared_ptr<boost::asio::ssl::context> tls{};  ///< Null: plain text.
  std::chrono::milliseconds timeout{1000};           ///< For a connection, and for an answer.
  std::string name_space = "tenure";  ///< Of the keys: letters, digits, '-', '_' and '.'.
};

/// redis://[user[:password]@]host[:port][/database][?namespace=…&tls_ca=…&tls_cert=…&tls_key=…];
/// rediss:// speaks TLS in any case. Takes what it knows out of the URL. `invalid_argument` says
/// what is wrong and where, and never repeats the password.
[[nodiscard]] Result<Address> address_from(Url& url, std::chrono::milliseconds patience);

/// "127.0.0.1:6379", "[::1]:6379": for people.
[[nodiscard]] std::string name_of(const Endpoint& endpoint);

}  // namespace tenure::backends::redis
