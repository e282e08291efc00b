#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

namespace tenure::fuzz {

/// Reads choices from the bytes that libFuzzer gives to a target. Never fails: when the bytes are
/// used up, numbers are 0 and texts are empty.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool is_empty() const noexcept { return rest_.empty(); }
  [[nodiscard]] std::uint8_t byte() {
    const auto bytes = text(1);
    return bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes.front());
  }
  /// Less than `bound`, which is at most 256.
  [[nodiscard]] std::size_t below(std::size_t bound) { return byte() % bound; }
  /// Two bytes, little-endian.
  [[nodiscard]] std::size_t number() {
    const std::size_t low = byte();
    return low + 256U * byte();
  }
  /// The next bytes, at most this many.
  [[nodiscard]] std::string_view text(std::size_t bytes_max) {
    const auto taken = rest_.substr(0, bytes_max);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// A text that has its length in two bytes before it.
  [[nodiscard]] std::string_view sized_text() { return text(number()); }
  [[nodiscard]] std::string_view rest() { return text(rest_.size()); }

 private:
  std::string_view rest_;
};

/// Ends the run as a finding unless it is true.
inline void require(bool is_true, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!is_true) {
    std::fprintf(stderr, "%s:%u: violated: %s\n", where.file_name(),
                 static_cast<unsigned>(where.line()), what);
    std::abort();
  }
}

}  // namespace tenure::fuzz
