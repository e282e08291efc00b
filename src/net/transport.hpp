#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <openssl/types.h>

namespace tenure::net {

/// Asynchronous byte stream to one peer, over TCP or TLS. A connection owns one and frames its
/// protocol on top of it.
///
/// Guarantees
///   - Every handler is called once, with the error if the operation failed.
///   - close() ends all pending operations with an error.
///
/// REQUIRES: the caller keeps the transport alive until its handlers have been called. Not thread
/// safe: all calls and handlers are on the thread of the loop.
class Transport {
 public:
  using Done = std::move_only_function<void(const boost::system::error_code&)>;
  /// The bytes are valid until the handler returns.
  using Arrived = std::move_only_function<void(const boost::system::error_code&,
                                               std::span<const std::uint8_t>)>;

  virtual ~Transport() = default;

  /// Makes the transport ready. REQUIRES: it has finished before any other operation begins.
  virtual void handshake(Done done) = 0;
  /// Reads the bytes that arrive next, of any number. REQUIRES: no other read is pending.
  virtual void read(Arrived arrived) = 0;
  /// Writes all bytes. REQUIRES: they stay valid until `done`, and no other write is pending.
  virtual void write(std::span<const char> bytes, Done done) = 0;
  /// Gathering write of several buffers, which are not copied. REQUIRES: as for the other write().
  virtual void write(std::vector<boost::asio::const_buffer> parts, Done done) = 0;
  /// Closes the socket at once.
  virtual void close() = 0;
  /// The TLS connection after the handshake; null for plain TCP.
  [[nodiscard]] virtual SSL* tls() noexcept { return nullptr; }
};

[[nodiscard]] std::unique_ptr<Transport> plain_transport(boost::asio::ip::tcp::socket socket);

/// Server side of TLS. `handshakes`, if it is not empty, runs the handshake: an executor that runs
/// one handler at a time, on another thread than the loop's.
[[nodiscard]] std::unique_ptr<Transport> tls_server_transport(
    boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& context,
    boost::asio::any_io_executor handshakes = {});

/// Client side of TLS. The certificate of the server must be valid for `host`.
[[nodiscard]] std::unique_ptr<Transport> tls_client_transport(const std::string& host,
                                                              boost::asio::ip::tcp::socket socket,
                                                              boost::asio::ssl::context& context);

/// Client side of TLS for a caller that identifies the peer itself. The certificate must be signed
/// by an authority of the context, but may be valid for any host. `handshakes` as for
/// tls_server_transport().
[[nodiscard]] std::unique_ptr<Transport> tls_client_transport_to_any_host(
    boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& context,
    boost::asio::any_io_executor handshakes = {});

/// Formats an endpoint as "127.0.0.1:7420" or "[::1]:7420".
[[nodiscard]] std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace tenure::net
