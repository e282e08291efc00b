#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace tenure::core {

/// A string that is kept for long and seldom looked at: eight bytes when it is empty, one piece of
/// memory of its size when not.
class Text {
 public:
  Text() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it is one
  Text(std::string_view text) {
    assert(text.size() <= std::numeric_limits<Size>::max());
    if (text.empty()) {
      return;
    }
    const auto size = static_cast<Size>(text.size());
    bytes_ = std::make_unique_for_overwrite<char[]>(sizeof(size) + text.size());
    std::memcpy(bytes_.get(), &size, sizeof(size));
    std::memcpy(bytes_.get() + sizeof(size), text.data(), text.size());
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  Text(const std::string& text) : Text(std::string_view(text)) {}
  Text(Text&& other) noexcept = default;
  Text& operator=(Text&& other) noexcept = default;
  Text(const Text& other) : Text(other.view()) {}
  Text& operator=(const Text& other) { return *this = Text(other.view()); }
  ~Text() = default;

  [[nodiscard]] std::string_view view() const noexcept {
    if (!bytes_) {
      return {};
    }
    Size size = 0;
    std::memcpy(&size, bytes_.get(), sizeof(size));
    return {bytes_.get() + sizeof(size), size};
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string() const { return std::string(view()); }

  friend bool operator==(const Text& left, const Text& right) noexcept {
    return left.view() == right.view();
  }
  friend bool operator==(const Text& left, std::string_view right) noexcept {
    return left.view() == right;
  }

 private:
  using Size = std::uint32_t;

  std::unique_ptr<char[]> bytes_;  ///< The size, then the text.
};

}  // namespace tenure::core
