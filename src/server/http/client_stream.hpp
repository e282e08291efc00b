#pragma once

#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <openssl/types.h>

// Only connection.hpp may include this: it takes long to compile.
namespace tenure::server::http {

/// Byte stream to one client, plain or TLS, for Asio and Beast. HTTP thread only; one read and one
/// write at a time.
///
/// Implements AsyncReadStream and AsyncWriteStream. One class for both transports keeps Connection
/// free of templates: the choice is made at run time, after the first byte of the client.
class ClientStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;  // NOLINT(readability-identifier-naming): Asio's.

  explicit ClientStream(Socket socket) : socket_(std::move(socket)) {}

  [[nodiscard]] executor_type get_executor() noexcept { return socket_.get_executor(); }
  /// Socket below TLS.
  [[nodiscard]] Socket& socket() noexcept { return socket_; }
  /// TLS session; null: plain text.
  [[nodiscard]] SSL* tls() noexcept { return tls_ ? tls_->native_handle() : nullptr; }

  /// Starts the TLS handshake; all later bytes are encrypted.
  template <class Done>
  void handshake(boost::asio::ssl::context& context, Done&& done) {
    tls_.emplace(socket_, context);
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Done>(done));
  }

  /// Sends the TLS close_notify. REQUIRES: no read or write in progress.
  template <class Done>
  void shutdown(Done&& done) {
    if (tls_) {
      tls_->async_shutdown(std::forward<Done>(done));
    } else {
      std::forward<Done>(done)(boost::system::error_code());
    }
  }

  template <class Buffers, class Done>
  auto async_read_some(const Buffers& buffers, Done&& done) {
    return tls_ ? tls_->async_read_some(buffers, std::forward<Done>(done))
                : socket_.async_read_some(buffers, std::forward<Done>(done));
  }

  template <class Buffers, class Done>
  auto async_write_some(const Buffers& buffers, Done&& done) {
    return tls_ ? tls_->async_write_some(buffers, std::forward<Done>(done))
                : socket_.async_write_some(buffers, std::forward<Done>(done));
  }

 private:
  /// Declared before tls_, which refers to it.
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace tenure::server::http
