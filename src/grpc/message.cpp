#include "grpc/message.hpp"

namespace tenure::grpc {
namespace {

/// One byte of compression flag, four of length.
constexpr std::size_t prefix_bytes = 5;
/// Capacity that an empty reader may keep. Connections charge buffered bytes, not empty buffers.
constexpr std::size_t idle_message_bytes = 4 * 1024;

std::uint8_t byte_at(const std::string& text, std::size_t index) {
  return static_cast<std::uint8_t>(text[index]);
}

}  // namespace

void append_framed(const google::protobuf::MessageLite& message, std::string& out) {
  const auto begin = out.size();
  const auto size = message.ByteSizeLong();
  const auto total = begin + prefix_bytes + size;
  // nghttp2 may report more bytes than requested.
  out.resize_and_overwrite(total, [&](char* bytes, std::size_t /*count*/) {
    auto* at = reinterpret_cast<std::uint8_t*>(bytes + begin);
    *at++ = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      *at++ = static_cast<std::uint8_t>(size >> static_cast<unsigned>(shift));
    }
    // AppendToString() would compute the size a second time.
    message.SerializeWithCachedSizesToArray(at);
    return total;
  });
}

void MessageReader::add(std::span<const std::uint8_t> piece) {
  if (error_ != Error::none) {
    return;
  }
  // Moves the incomplete rest to the front once per arrival, not once per message.
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(piece.begin(), piece.end());
}

std::optional<std::string_view> MessageReader::next() {
  if (error_ != Error::none || waiting() < prefix_bytes) {
    return std::nullopt;
  }
  if (byte_at(buffer_, begin_) != 0) {
    error_ = Error::compressed;
    return std::nullopt;
  }
  std::size_t size = 0;
  for (std::size_t n = 1; n < prefix_bytes; ++n) {
    size = (size << 8U) | byte_at(buffer_, begin_ + n);
  }
  // Checked when the length is known: an oversized message is never buffered completely.
  if (size > bytes_max_) {
    error_ = Error::too_large;
    return std::nullopt;
  }
  if (waiting() < prefix_bytes + size) {
    return std::nullopt;
  }
  const std::string_view message(buffer_.data() + begin_ + prefix_bytes, size);
  begin_ += prefix_bytes + size;
  return message;
}

void MessageReader::clear() {
  begin_ = buffer_.size();
  trim();
}

void MessageReader::trim() {
  if (waiting() > 0) {
    return;
  }
  begin_ = 0;
  buffer_.clear();
  if (buffer_.capacity() > idle_message_bytes) {
    std::string().swap(buffer_);
  }
}

}  // namespace tenure::grpc
