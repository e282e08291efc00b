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

#include "core/ref_count.hpp"

namespace tenure::core {

/// Immutable reference-counted string: a lock, its holders and their events share one copy of the
/// name. Eight bytes, and one allocation if it is not empty. Copying is O(1).
///
/// Thread safety: different threads may use different copies; one copy is for one thread at a time.
class SharedString {
 public:
  SharedString() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, as for std::string
  SharedString(std::string_view text) {
    assert(text.size() <= std::numeric_limits<std::uint32_t>::max());
    if (text.empty()) {
      return;
    }
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(sizeof(Head) + text.size()).release();
    std::construct_at(head())->size = static_cast<std::uint32_t>(text.size());
    std::memcpy(bytes_ + sizeof(Head), text.data(), text.size());
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  SharedString(const std::string& text) : SharedString(std::string_view(text)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  SharedString(const char* text) : SharedString(std::string_view(text)) {}
  SharedString(const SharedString& other) noexcept : bytes_(other.bytes_) {
    if (bytes_ != nullptr) {
      head()->references.add();
    }
  }
  SharedString(SharedString&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}
  SharedString& operator=(const SharedString& other) noexcept {
    return *this = SharedString(other);
  }
  SharedString& operator=(SharedString&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedString() {
    if (bytes_ != nullptr && head()->references.drop()) {
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

  friend bool operator==(const SharedString& left, const SharedString& right) noexcept {
    return left.bytes_ == right.bytes_ || left.view() == right.view();
  }
  friend bool operator==(const SharedString& left, std::string_view right) noexcept {
    return left.view() == right;
  }
  friend bool operator==(const SharedString& left, const std::string& right) noexcept {
    return left.view() == right;
  }
  friend bool operator==(const SharedString& left, const char* right) noexcept {
    return left.view() == right;
  }
  friend auto operator<=>(const SharedString& left, const SharedString& right) noexcept {
    return left.view() <=> right.view();
  }

 private:
  /// Header of the allocation.
  struct Head {
    RefCount references;
    std::uint32_t size = 0;
  };

  [[nodiscard]] Head* head() const noexcept { return reinterpret_cast<Head*>(bytes_); }

  std::byte* bytes_ = nullptr;  ///< Head, then the text; the last owner deletes it. Null: empty.
};

}  // namespace tenure::core
