#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tenure::core {

/// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

/// Encoder of numbers and strings. Canonical: each value has exactly one encoding, so equal values
/// give equal bytes and replicas can compare checksums. Not thread safe.
class ByteWriter {
 public:
  ByteWriter() = default;
  /// Appends to these bytes.
  explicit ByteWriter(std::string begin) : bytes_(std::move(begin)) {}

  /// Varint (LEB128): seven bits per byte, low bits first; the top bit marks that a byte follows.
  void number(std::uint64_t value);
  void fixed32(std::uint32_t value);  ///< Little-endian.
  void fixed64(std::uint64_t value);  ///< Little-endian.
  void text(std::string_view value);  ///< Length as number(), then the bytes.
  void raw(std::string_view value) { bytes_ += value; }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Decoder for the bytes of ByteWriter, with a sticky error: after the first malformed value it
/// returns zeros and empty strings and keeps that error, so that callers check ok() once at the
/// end. Rejects encodings that are not canonical. Not thread safe.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t number();
  /// Reads a number of at most `max`; `what` names it in the error.
  [[nodiscard]] std::uint64_t number_up_to(std::uint64_t max, std::string_view what);
  [[nodiscard]] std::uint32_t fixed32();
  [[nodiscard]] std::uint64_t fixed64();
  [[nodiscard]] std::string text() { return std::string(text_view()); }
  /// The same without a copy: a view into the bytes.
  [[nodiscard]] std::string_view text_view();

  /// Records an error with the present offset, unless there is one. For checks of callers, too.
  void set_error(std::string_view what);
  [[nodiscard]] bool ok() const noexcept { return error_.empty(); }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// Number of unread bytes.
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }

 private:
  [[nodiscard]] std::uint64_t fixed(std::size_t count);

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace tenure::core
