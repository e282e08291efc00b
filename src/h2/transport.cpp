#include "h2/transport.hpp"

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

#include "h2/fault.hpp"

namespace tenure::h2 {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Programs that this process executes do not inherit the socket. Asio opens and accepts them
/// without SOCK_CLOEXEC.
tcp::socket closed_on_exec(tcp::socket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  return socket;
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket) : socket_(closed_on_exec(std::move(socket))) {}

  void greet(Done done) override {
    error_code error;
    socket_.non_blocking(true, error);
    done(error);
  }

  void read(Arrived arrived) override {
    // Waits first and reads then, into memory that all connections of the thread share: one that is
    // idle costs no buffer.
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
    // Also bounds what one connection can ask of the thread before it is the turn of another.
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

  /// Also the name that is asked for.
  void expect(const std::string& host) {
    auto* const connection = stream_->native_handle();
    error_code is_no_address;
    asio::ip::make_address(host, is_no_address);
    if (!is_no_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), host.c_str());
      return;
    }
    SSL_set1_host(connection, host.c_str());
    SSL_set_tlsext_host_name(connection, host.c_str());
  }

  void greet(Done done) override {
    auto greeted = [this, done = std::move(done)](const error_code& error) mutable {
      is_elsewhere_ = false;
      const auto verdict = SSL_get_verify_result(stream_->native_handle());
      // "verification failed" alone would not tell people what to do.
      error&& verdict != X509_V_OK ? done({static_cast<int>(verdict), certificate_category()})
                                   : done(error);
    };
    if (!handshakes_) {
      stream_->async_handshake(side_, std::move(greeted));
      return;
    }
    is_elsewhere_ = true;
    // All steps of the handshake run on that executor; only then the stream comes back.
    asio::post(handshakes_, [stream = stream_, side = side_, handshakes = handshakes_,
                             greeted = std::move(greeted)]() mutable {
      auto back = [stream, greeted = std::move(greeted)](const error_code& error) mutable {
        asio::post(stream->get_executor(),
                   [stream, error, greeted = std::move(greeted)]() mutable { greeted(error); });
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
    if (is_elsewhere_) {
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
  const asio::any_io_executor handshakes_;  ///< Empty: that of the socket.
  bool is_elsewhere_ = false;               ///< `handshakes_` has the stream.
  std::vector<std::uint8_t> buffer_;
};

/// As ALPN has it: each with its length before it.
using ProtocolList = std::basic_string_view<unsigned char>;
constexpr unsigned char h2_list[] = {2, 'h', '2'};
constexpr unsigned char http1_list[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr ProtocolList only_h2(h2_list, sizeof h2_list);
constexpr ProtocolList only_http1(http1_list, sizeof http1_list);

int choose_protocol(SSL* /*connection*/, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void* list) {
  const auto& wanted = *static_cast<const ProtocolList*>(list);
  auto* out = const_cast<unsigned char*>(*chosen);  // NOLINT: OpenSSL's own signature
  const int found =
      SSL_select_next_proto(&out, chosen_size, wanted.data(),
                            static_cast<unsigned int>(wanted.size()), offered, offered_size);
  *chosen = out;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::unexpected<Error> unusable(const char* file, const error_code& error) {
  return fail(Errc::invalid_argument,
              std::string(file) + " cannot be used: " + error.message() + "; is it PEM?");
}

/// A certificate chain and its key, or how the settings are called that name them.
struct OwnCertificate {
  const std::string& certificate;
  const std::string& key;
};
struct OwnNames {
  const char* certificate;
  const char* key;
};

Result<void> use_own(asio::ssl::context& context, OwnCertificate own, OwnNames names) {
  error_code error;
  context.use_certificate_chain(asio::buffer(own.certificate), error);
  if (error) {
    return unusable(names.certificate, error);
  }
  context.use_private_key(asio::buffer(own.key), asio::ssl::context::pem, error);
  if (error) {
    return unusable(names.key, error);
  }
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return fail(Errc::invalid_argument,
                std::string(names.key) + " is not the key of " + names.certificate);
  }
  return {};
}

}  // namespace

std::unique_ptr<Transport> plain_transport(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> tls_transport(tcp::socket socket, asio::ssl::context& context,
                                         asio::any_io_executor handshakes) {
  return std::make_unique<TlsTransport>(std::move(socket), context, asio::ssl::stream_base::server,
                                        std::move(handshakes));
}

std::unique_ptr<Transport> tls_transport_to(const std::string& host, tcp::socket socket,
                                            asio::ssl::context& context) {
  auto transport =
      std::make_unique<TlsTransport>(std::move(socket), context, asio::ssl::stream_base::client);
  transport->expect(host);
  return transport;
}

std::unique_ptr<Transport> tls_transport_to_anybody(tcp::socket socket,
                                                    asio::ssl::context& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context, asio::ssl::stream_base::client);
}

Result<std::unique_ptr<asio::ssl::context>> server_context(const TlsFiles& files,
                                                           TlsManner manner) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1,
                       error);
  if (auto own = use_own(*context, {files.certificate, files.key}, {"tls.cert", "tls.key"}); !own) {
    return std::unexpected(std::move(own).error());
  }
  if (!files.client_ca.empty()) {
    context->add_certificate_authority(asio::buffer(files.client_ca), error);
    if (error) {
      return unusable("tls.client_ca", error);
    }
    context->set_verify_mode(
        asio::ssl::verify_peer |
            (manner.demands_certificate ? asio::ssl::verify_fail_if_no_peer_cert : 0),
        error);
    // Else OpenSSL ends the connection of a client that resumes its session.
    constexpr unsigned char here[] = "tenure";
    SSL_CTX_set_session_id_context(context->native_handle(), here, sizeof here - 1);
  }
  const bool is_h2 = manner.protocol == TlsManner::Protocol::h2;
  // OpenSSL passes it through as it is; nobody writes to it.
  auto* list = const_cast<ProtocolList*>(is_h2 ? &only_h2 : &only_http1);  // NOLINT
  SSL_CTX_set_alpn_select_cb(context->native_handle(), choose_protocol, list);
  return context;
}

Result<std::unique_ptr<asio::ssl::context>> client_context(const ClientTlsFiles& files) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1,
                       error);
  context->set_verify_mode(asio::ssl::verify_peer, error);
  if (files.ca.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->add_certificate_authority(asio::buffer(files.ca), error);
    if (error) {
      return unusable("tls_ca", error);
    }
  }
  if (!files.certificate.empty()) {
    if (auto own = use_own(*context, {files.certificate, files.key}, {"tls_cert", "tls_key"});
        !own) {
      return std::unexpected(std::move(own).error());
    }
  }
  SSL_CTX_set_alpn_protos(context->native_handle(), h2_list, sizeof h2_list);
  return context;
}

std::string to_string(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address().to_string();
  const auto port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

}  // namespace tenure::h2
