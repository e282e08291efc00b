#pragma once

#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>

#include "net/transport.hpp"
#include "sys/fork.hpp"

namespace tenure::net {

/// TCP socket of a client that belongs to this process alone: neither an executed program
/// (SOCK_CLOEXEC, which Asio's open() does not set) nor a child of fork() inherits it. Not thread
/// safe.
class OutgoingSocket {
 public:
  explicit OutgoingSocket(boost::asio::io_context& loop) : socket_(loop) {}
  OutgoingSocket(OutgoingSocket&&) = default;
  OutgoingSocket& operator=(OutgoingSocket&&) = delete;
  OutgoingSocket(const OutgoingSocket&) = delete;
  OutgoingSocket& operator=(const OutgoingSocket&) = delete;
  ~OutgoingSocket() = default;

  /// Opens a new socket in place of the one before.
  [[nodiscard]] boost::system::error_code open(const boost::asio::ip::tcp& protocol);
  void close() noexcept;

  [[nodiscard]] boost::asio::ip::tcp::socket& socket() noexcept { return socket_; }
  /// Moves the connected socket into a transport: TLS if `tls` is not null, else plain TCP. The
  /// certificate of the server must be valid for `host`.
  [[nodiscard]] std::unique_ptr<Transport> into_transport(const std::string& host,
                                                          boost::asio::ssl::context* tls);
  /// The same for a caller that identifies the peer itself; see tls_client_transport_to_any_host(),
  /// also for `handshakes`.
  [[nodiscard]] std::unique_ptr<Transport> into_transport_to_any_host(
      boost::asio::ssl::context* tls, boost::asio::any_io_executor handshakes = {});

 private:
  [[nodiscard]] std::unique_ptr<Transport> wrap(std::unique_ptr<Transport> transport);

  boost::asio::ip::tcp::socket socket_;
  /// Declared after the socket, so that it is reset before the descriptor is closed.
  std::unique_ptr<sys::ClosedInChild> descriptor_;
};

}  // namespace tenure::net
