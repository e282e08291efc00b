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

/// Bytes to and from one client, plain or through TLS: a stream as Asio and Beast want it. At home.
/// One read and one write at a time.
class Wire {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;  // NOLINT(readability-identifier-naming): Asio's.

  explicit Wire(Socket socket) : socket_(std::move(socket)) {}

  [[nodiscard]] executor_type get_executor() noexcept { return socket_.get_executor(); }
  /// What lies below TLS.
  [[nodiscard]] Socket& socket() noexcept { return socket_; }
  /// Null: it is plain, so far.
  [[nodiscard]] SSL* tls() noexcept { return tls_ ? tls_->native_handle() : nullptr; }

  /// From now on all goes through TLS, for which both ends greet each other first.
  template <class Done>
  void greet(boost::asio::ssl::context& context, Done&& done) {
    tls_.emplace(socket_, context);
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Done>(done));
  }

  /// Tells the other end that this was all. REQUIRES: nothing is read or written.
  template <class Done>
  void farewell(Done&& done) {
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
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace tenure::server::http
