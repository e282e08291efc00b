#pragma once

#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/owners.hpp"

namespace tenure::core {

/// A string that does not change and that its copies share: a lock, its holder and the events about
/// it have one name in memory. Eight bytes when it is empty, one piece of memory of its size when
/// not. Copies may live in different threads.
class Text {
 public:
  Text() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it is one
  Text(std::string_view text) {
    assert(text.size() <= std::numeric_limits<std::uint32_t>::max());
    if (text.empty()) {
      return;
    }
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(sizeof(Head) + text.size()).release();
    std::construct_at(head())->size = static_cast<std::uint32_t>(text.size());
    std::memcpy(bytes_ + sizeof(Head), text.data(), text.size());
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  Text(const std::string& text) : Text(std::string_view(text)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Text(const char* text) : Text(std::string_view(text)) {}
  Text(const Text& other) noexcept : bytes_(other.bytes_) {
    if (bytes_ != nullptr) {
      head()->owners.join();
    }
  }
  Text(Text&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}
  Text& operator=(const Text& other) noexcept { return *this = Text(other); }
  Text& operator=(Text&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Text() {
    if (bytes_ != nullptr && head()->owners.leave()) {
      std::unique_ptr<std::byte[]>(bytes_).reset();
    }
  }

  [[nodiscard]] std::string_view view() const noexcept {
    if (bytes_ == nullptr) {
      return {};
    }
    return {reinterpret_cast<const char*>(bytes_ + sizeof(Head)), head()->size};
  }
  [[nodiscard]] bool empty() const noexcept { return bytes_ == nullptr; }
  [[nodiscard]] bool starts_with(std::string_view prefix) const noexcept {
    return view().starts_with(prefix);
  }
  [[nodiscard]] std::size_t size() const noexcept { return view().size(); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string() const { return std::string(view()); }

  friend bool operator==(const Text& left, const Text& right) noexcept {
    return left.bytes_ == right.bytes_ || left.view() == right.view();
  }
  friend bool operator==(const Text& left, std::string_view right) noexcept {
    return left.view() == right;
  }
  friend bool operator==(const Text& left, const std::string& right) noexcept {
    return left.view() == right;
  }
  friend bool operator==(const Text& left, const char* right) noexcept {
    return left.view() == right;
  }
  friend auto operator<=>(const Text& left, const Text& right) noexcept {
    return left.view() <=> right.view();
  }

 private:
  /// What the bytes begin with.
  struct Head {
    Owners owners;
    std::uint32_t size = 0;
  };

  [[nodiscard]] Head* head() const noexcept { return reinterpret_cast<Head*>(bytes_); }

  std::byte* bytes_ = nullptr;  ///< A head, then the text. Deleted by the last owner.
};

}  // namespace tenure::core
