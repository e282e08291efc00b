#pragma once

#include <cstddef>
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

#include <tenure/error.hpp>

namespace tenure::h2 {

/// Bytes to and from one peer, plain or through TLS. All on the thread of its loop. Whoever is
/// called back keeps the transport alive meanwhile.
class Transport {
 public:
  using Done = std::move_only_function<void(const boost::system::error_code&)>;
  /// What arrived lasts as long as the call.
  using Arrived = std::move_only_function<void(const boost::system::error_code&,
                                               std::span<const std::uint8_t>)>;

  virtual ~Transport() = default;

  /// Before anything else.
  virtual void greet(Done done) = 0;
  /// The next bytes, however many. One at a time.
  virtual void read(Arrived arrived) = 0;
  /// All of them; they must stay until it is done. One at a time.
  virtual void write(std::span<const char> bytes, Done done) = 0;
  /// The same for bytes in several places, which are not copied together.
  virtual void write(std::vector<boost::asio::const_buffer> parts, Done done) = 0;
  /// At once. What is under way ends with an error.
  virtual void close() = 0;
  /// Its TLS, once greeted; null if it is plain.
  [[nodiscard]] virtual SSL* tls() noexcept { return nullptr; }
};

[[nodiscard]] std::unique_ptr<Transport> plain_transport(boost::asio::ip::tcp::socket socket);
/// The server's end of TLS. `handshakes` computes the handshake, if there is one: an executor that
/// runs one handler at a time, on another thread than the loop's.
[[nodiscard]] std::unique_ptr<Transport> tls_transport(
    boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& context,
    boost::asio::any_io_executor handshakes = {});

/// Certificates as PEM text.
struct TlsFiles {
  std::string certificate{};  ///< Of this server, with its chain.
  std::string key{};
  std::string client_ca{};  ///< Not empty: clients show a certificate that this one signed.
};

/// How TLS is spoken on a port.
struct TlsManner {
  enum class Protocol : std::uint8_t { h2, http1 };
  Protocol protocol = Protocol::h2;  ///< What is agreed upon by ALPN.
  /// With a client_ca: false lets clients in that show no certificate, not those with a wrong one.
  bool demands_certificate = true;
};

/// `invalid_argument` says which file is wrong.
[[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> server_context(
    const TlsFiles& files, TlsManner manner = {});

/// A client's end of TLS: the certificate of the server must be `host`'s.
[[nodiscard]] std::unique_ptr<Transport> tls_transport_to(const std::string& host,
                                                          boost::asio::ip::tcp::socket socket,
                                                          boost::asio::ssl::context& context);

/// The same for whoever looks at the certificate himself: it is by an authority of the context, but
/// may be anybody's.
[[nodiscard]] std::unique_ptr<Transport> tls_transport_to_anybody(
    boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& context);

/// What a client trusts and shows, as PEM text.
struct ClientTlsFiles {
  std::string ca{};           ///< Who signs servers; empty: whom the system trusts.
  std::string certificate{};  ///< Of this client, or empty.
  std::string key{};
};

/// `invalid_argument` says which file is wrong.
[[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> client_context(
    const ClientTlsFiles& files);

/// "127.0.0.1:7420", "[::1]:7420".
[[nodiscard]] std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace tenure::h2
