#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <google/protobuf/message_lite.h>

namespace tenure::grpc {

/// Appends the message as gRPC frames it: one byte that says "not compressed", four of length, then
/// the message.
void append_framed(const google::protobuf::MessageLite& message, std::string& out);

/// Cuts messages out of what arrives in pieces.
class MessageReader {
 public:
  /// Why no further message can be read.
  enum class Error : std::uint8_t { none, compressed, too_large };

  explicit MessageReader(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void add(std::span<const std::uint8_t> piece);
  /// The next whole message, if there is one. It lasts until the next call of anything.
  [[nodiscard]] std::optional<std::string_view> next();
  [[nodiscard]] Error error() const noexcept { return error_; }
  /// Bytes that are not part of a message that was taken.
  [[nodiscard]] std::size_t waiting() const noexcept { return buffer_.size() - begin_; }
  /// Largest message that is accepted.
  [[nodiscard]] std::size_t bytes_max() const noexcept { return bytes_max_; }
  void clear();
  /// Frees a large buffer when nothing waits in it.
  void trim();

 private:
  std::size_t bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< Of what was not taken.
  Error error_ = Error::none;
};

}  // namespace tenure::grpc
