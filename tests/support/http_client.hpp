#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tenure::test {

/// A raw connection to a server on this machine, for tests: sends any bytes, reads with test_timeout.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, int receive_buffer = 0);

  void send(std::string_view bytes);
  /// Reads until `marker` has come and returns all so far; what came before if the other side
  /// closed, or a note if it took too long.
  std::string read_until(std::string_view marker);
  /// Reads until the other side closes.
  std::string read_all();

  /// One answer to `GET target` on this connection, head and body.
  std::string get(std::string_view target, std::string_view fields = "");

 private:
  bool read_some();

  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::socket socket_{loop_};
  std::string received_;
  bool is_late_ = false;
};

/// Asks once on a connection of its own.
[[nodiscard]] std::string http_get(std::uint16_t port, std::string_view target,
                                   std::string_view fields = "");
/// Secret of every HttpService.
inline constexpr std::string_view http_secret = "secret-of-the-tests-0123456789ab";
/// Fields of a program on this machine that may change something.
inline constexpr std::string_view trusted_fields =
    "Tenure-Intent: yes\r\nAuthorization: Bearer secret-of-the-tests-0123456789ab\r\n";
/// The same with a body, as such a program sends it.
[[nodiscard]] std::string http_post(std::uint16_t port, std::string_view target,
                                    std::string_view body = "",
                                    std::string_view fields = trusted_fields);
/// The part behind the head.
[[nodiscard]] std::string body_of(const std::string& answer);
/// The number in the first line.
[[nodiscard]] int status_of(const std::string& answer);

}  // namespace tenure::test
