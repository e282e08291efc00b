#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "support/rpc/fixture.hpp"

namespace tenure::test {

/// Client that writes arbitrary HTTP/2 frames, for tests of misbehaviour. Not thread safe.
class RawClient {
 public:
  enum class End : std::uint8_t { open, stream };
  struct Frame {
    int type = 0;
    int flags = 0;
    int stream = 0;
    std::string payload{};

    [[nodiscard]] bool ends_stream() const { return (flags & 1) != 0; }
  };
  static constexpr int data_type = 0;
  static constexpr int headers_type = 1;
  static constexpr int reset_type = 3;

  explicit RawClient(const std::string& address) : socket_(loop_) {
    const auto colon = address.rfind(':');
    const auto port = static_cast<unsigned short>(std::stoi(address.substr(colon + 1)));
    socket_.connect({boost::asio::ip::make_address(address.substr(0, colon)), port});
    write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, ""));
  }

  /// Writes bytes; no effect if the server has closed the connection.
  void write(const std::string& bytes) {
    boost::system::error_code error;
    socket_.non_blocking(false, error);
    boost::asio::write(socket_, boost::asio::buffer(bytes), error);
    is_closed_ |= error.failed();
  }

  /// Next frame of the server; nullopt: closed or timed out.
  std::optional<Frame> read() {
    if (!fill(9)) {
      return std::nullopt;
    }
    const auto at = [this](std::size_t n) { return static_cast<unsigned char>(in_[n]); };
    const auto size = static_cast<std::size_t>(at(0) << 16U | at(1) << 8U | at(2));
    if (!fill(9 + size)) {
      return std::nullopt;
    }
    Frame frame{.type = at(3),
                .flags = at(4),
                .stream = (at(5) & 0x7F) << 24 | at(6) << 16 | at(7) << 8 | at(8),
                .payload = in_.substr(9, size)};
    in_.erase(0, 9 + size);
    return frame;
  }
  /// Next frame of this type on this stream.
  std::optional<Frame> read(int type, int stream) {
    auto frame = read();
    while (frame && (frame->type != type || frame->stream != stream)) {
      frame = read();
    }
    return frame;
  }
  /// Reads until the server closes; whether it did in time.
  bool is_closed_by_server() {
    while (read()) {
    }
    return is_closed_;
  }

  static std::string frame(int type, int flags, int stream, std::string_view payload) {
    std::string out;
    const auto size = payload.size();
    for (const auto byte : {size >> 16U, size >> 8U, size}) {
      out += static_cast<char>(byte);
    }
    out += static_cast<char>(type);
    out += static_cast<char>(flags);
    for (const auto shift : {24, 16, 8, 0}) {
      out += static_cast<char>(stream >> shift);
    }
    return out.append(payload);
  }
  /// Starts a call.
  static std::string headers(int stream, std::string_view path, End end = End::open) {
    std::string block;
    block += '\x83';  // :method POST
    block += '\x86';  // :scheme http
    add_line(block, ":path", path);
    add_line(block, ":authority", "x");
    add_line(block, "content-type", "application/grpc");
    add_line(block, "te", "trailers");
    return frame(headers_type, end == End::stream ? 5 : 4, stream, block);
  }
  static std::string data(int stream, std::string_view bytes, End end = End::open) {
    return frame(data_type, end == End::stream ? 1 : 0, stream, bytes);
  }
  static std::string reset(int stream) { return frame(reset_type, 0, stream, {"\0\0\0\x8", 4}); }
  /// Length prefix of a gRPC message of this size.
  static std::string message_prefix(std::size_t size) {
    std::string out(1, '\0');
    for (const auto shift : {24U, 16U, 8U, 0U}) {
      out += static_cast<char>(size >> shift);
    }
    return out;
  }

 private:
  /// HPACK literal header field, neither indexed nor compressed.
  static void add_line(std::string& block, std::string_view name, std::string_view value) {
    block += '\0';
    for (const auto text : {name, value}) {
      if (text.size() < 127) {
        block += static_cast<char>(text.size());
      } else {
        block += '\x7F';
        auto rest = text.size() - 127;
        for (; rest >= 128; rest /= 128) {
          block += static_cast<char>(rest % 128 + 128);
        }
        block += static_cast<char>(rest);
      }
      block += text;
    }
  }

  bool fill(std::size_t size) {
    socket_.non_blocking(true);
    const auto deadline = std::chrono::steady_clock::now() + RpcTest::test_timeout;
    while (in_.size() < size && std::chrono::steady_clock::now() < deadline) {
      char buffer[4096];
      boost::system::error_code error;
      const auto got = socket_.read_some(boost::asio::buffer(buffer), error);
      in_.append(buffer, got);
      if (error && error != boost::asio::error::would_block) {
        is_closed_ = true;
        return false;
      }
    }
    return in_.size() >= size;
  }

  boost::asio::io_context loop_;
  boost::asio::ip::tcp::socket socket_;
  std::string in_;
  bool is_closed_ = false;
};

}  // namespace tenure::test
