#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tenure::test {

/// Raw loopback connection for tests: sends arbitrary bytes, reads with test_timeout.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, int receive_buffer = 0);

  void send(std::string_view bytes);
  /// Reads until `marker` was received and returns everything so far; on close the bytes before it,
  /// on timeout a note.
  std::string read_until(std::string_view marker);
  /// Reads until the server closes the connection.
  std::string read_all();

  /// Response to `GET target` on this connection, head and body.
  std::string get(std::string_view target, std::string_view fields = "");

 private:
  bool read_some();

  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::socket socket_{loop_};
  std::string received_;
  bool is_late_ = false;
};

/// Sends one request on a new connection.
[[nodiscard]] std::string http_get(std::uint16_t port, std::string_view target,
                                   std::string_view fields = "");
/// Secret of every HttpService.
inline constexpr std::string_view http_secret = "secret-of-the-tests-0123456789ab";
/// Headers of a local program that is allowed to make changes.
inline constexpr std::string_view trusted_fields =
    "Tenure-Intent: yes\r\nAuthorization: Bearer secret-of-the-tests-0123456789ab\r\n";
/// Request of such a program with a body.
[[nodiscard]] std::string http_post(std::uint16_t port, std::string_view target,
                                    std::string_view body = "",
                                    std::string_view fields = trusted_fields);
/// Body of a response.
[[nodiscard]] std::string body_of(const std::string& answer);
/// Status code of a response.
[[nodiscard]] int status_of(const std::string& answer);

}  // namespace tenure::test
