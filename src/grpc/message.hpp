#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <google/protobuf/message_lite.h>

namespace tenure::grpc {

/// Appends a message with the gRPC length prefix: compression flag 0, four bytes of length,
/// message.
void append_framed(const google::protobuf::MessageLite& message, std::string& out);

/// Splits received bytes into gRPC messages.
///
/// Keeps incomplete messages. After an error it returns no further message, because the message
/// boundaries are lost. Not thread safe.
class MessageReader {
 public:
  /// Error that prevents reading further messages.
  enum class Error : std::uint8_t { none, compressed, too_large };

  explicit MessageReader(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Appends received bytes. Invalidates the last result of next().
  void add(std::span<const std::uint8_t> piece);
  /// Next complete message; nullopt: incomplete. Valid until the next call.
  [[nodiscard]] std::optional<std::string_view> next();
  [[nodiscard]] Error error() const noexcept { return error_; }
  /// Bytes not yet returned as messages.
  [[nodiscard]] std::size_t waiting() const noexcept { return buffer_.size() - begin_; }
  /// Maximum message size.
  [[nodiscard]] std::size_t bytes_max() const noexcept { return bytes_max_; }
  /// Drops all bytes.
  void clear();
  /// Frees the capacity of an empty buffer.
  void trim();

 private:
  std::size_t bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< Offset of the first byte not yet returned.
  Error error_ = Error::none;
};

}  // namespace tenure::grpc
