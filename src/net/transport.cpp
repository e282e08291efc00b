#include "net/transport.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <openssl/ssl.h>

#include "net/connection_error.hpp"

namespace tenure::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Keeps executed programs from inheriting the socket: Asio opens and accepts sockets without
/// SOCK_CLOEXEC.
tcp::socket closed_on_exec(tcp::socket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  return socket;
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket) : socket_(closed_on_exec(std::move(socket))) {}

  void handshake(Done done) override {
    error_code error;
    socket_.non_blocking(true, error);
    done(error);
  }

  void read(Arrived arrived) override {
    // Waits first and then reads into a buffer that all connections of the thread share, so that an
    // idle connection costs no buffer.
    socket_.async_wait(tcp::socket::wait_read,
                       [this, arrived = std::move(arrived)](const error_code& error) mutable {
                         error ? arrived(error, {}) : read_now(std::move(arrived));
                       });
  }

  void write(std::span<const char> bytes, Done done) override {
    asio::async_write(
        socket_, asio::buffer(bytes.data(), bytes.size()),
        [done = std::move(done)](const error_code& error, std::size_t) mutable { done(error); });
  }

  void write(std::vector<asio::const_buffer> parts, Done done) override {
    asio::async_write(
        socket_, std::move(parts),
        [done = std::move(done)](const error_code& error, std::size_t) mutable { done(error); });
  }

  void close() override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

 private:
  void read_now(Arrived arrived) {
    // The size also bounds the work for one connection before the next one is served.
    static thread_local std::array<std::uint8_t, 16 * 1024> shared;
    error_code error;
    const auto size = socket_.read_some(asio::buffer(shared), error);
    if (error == asio::error::would_block) {
      read(std::move(arrived));
      return;
    }
    arrived(error, std::span(shared).first(size));
  }

  tcp::socket socket_;
};

class TlsTransport final : public Transport {
 public:
  using Side = asio::ssl::stream_base::handshake_type;

  TlsTransport(tcp::socket socket, asio::ssl::context& context, Side side,
               asio::any_io_executor handshakes = {})
      : stream_(std::make_shared<Stream>(closed_on_exec(std::move(socket)), context)),
        side_(side),
        handshakes_(std::move(handshakes)),
        buffer_(16 * 1024) {}

  /// Verifies that the certificate is valid for `host`, and sends it as the SNI host name.
  void verify_host(const std::string& host) {
    auto* const connection = stream_->native_handle();
    error_code not_an_address;
    asio::ip::make_address(host, not_an_address);
    if (!not_an_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), host.c_str());
      return;
    }
    SSL_set1_host(connection, host.c_str());
    SSL_set_tlsext_host_name(connection, host.c_str());
  }

  void handshake(Done done) override {
    auto finished = [this, done = std::move(done)](const error_code& error) mutable {
      is_handshake_elsewhere_ = false;
      // Reports the reason: "verification failed" alone does not name the cause.
      const auto verdict = SSL_get_verify_result(stream_->native_handle());
      error&& verdict != X509_V_OK ? done({static_cast<int>(verdict), certificate_category()})
                                   : done(error);
    };
    if (!handshakes_) {
      stream_->async_handshake(side_, std::move(finished));
      return;
    }
    is_handshake_elsewhere_ = true;
    // All steps of the handshake run on that executor; the stream returns to the loop afterwards.
    asio::post(handshakes_, [stream = stream_, side = side_, handshakes = handshakes_,
                             finished = std::move(finished)]() mutable {
      auto back = [stream, finished = std::move(finished)](const error_code& error) mutable {
        asio::post(stream->get_executor(),
                   [stream, error, finished = std::move(finished)]() mutable { finished(error); });
      };
      stream->async_handshake(side, asio::bind_executor(handshakes, std::move(back)));
    });
  }

  void read(Arrived arrived) override {
    stream_->async_read_some(
        asio::buffer(buffer_),
        [this, arrived = std::move(arrived)](const error_code& error, std::size_t size) mutable {
          arrived(error, std::span(buffer_).first(size));
        });
  }

  void write(std::span<const char> bytes, Done done) override {
    asio::async_write(
        *stream_, asio::buffer(bytes.data(), bytes.size()),
        [done = std::move(done)](const error_code& error, std::size_t) mutable { done(error); });
  }

  void write(std::vector<asio::const_buffer> parts, Done done) override {
    asio::async_write(
        *stream_, std::move(parts),
        [done = std::move(done)](const error_code& error, std::size_t) mutable { done(error); });
  }

  [[nodiscard]] SSL* tls() noexcept override { return stream_->native_handle(); }

  void close() override {
    if (is_handshake_elsewhere_) {
      asio::post(handshakes_, [stream = stream_] { close(*stream); });
      return;
    }
    close(*stream_);
  }

 private:
  using Stream = asio::ssl::stream<tcp::socket>;

  static void close(Stream& stream) {
    error_code ignored;
    stream.lowest_layer().shutdown(tcp::socket::shutdown_both, ignored);
    stream.lowest_layer().close(ignored);
  }

  const std::shared_ptr<Stream> stream_;
  const Side side_;
  const asio::any_io_executor handshakes_;  ///< Empty: the executor of the socket.
  bool is_handshake_elsewhere_ = false;     ///< The handshake uses the stream on `handshakes_`.
  std::vector<std::uint8_t> buffer_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> tls_server_transport(tcp::socket socket, asio::ssl::context& context,
                                                asio::any_io_executor handshakes) {
  return std::make_unique<TlsTransport>(std::move(socket), context, asio::ssl::stream_base::server,
                                        std::move(handshakes));
}

std::unique_ptr<Transport> tls_client_transport(const std::string& host, tcp::socket socket,
                                                asio::ssl::context& context) {
  auto transport =
      std::make_unique<TlsTransport>(std::move(socket), context, asio::ssl::stream_base::client);
  transport->verify_host(host);
  return transport;
}

std::unique_ptr<Transport> tls_client_transport_to_any_host(tcp::socket socket,
                                                            asio::ssl::context& context,
                                                            asio::any_io_executor handshakes) {
  return std::make_unique<TlsTransport>(std::move(socket), context, asio::ssl::stream_base::client,
                                        std::move(handshakes));
}

std::string to_string(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address().to_string();
  const auto port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

}  // namespace tenure::net
