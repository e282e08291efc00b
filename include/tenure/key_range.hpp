#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tenure {

/// Non-empty interval of 64-bit keys. Represented as the closed interval [start, end], so that the
/// largest key needs no special case; open and unbounded ends are converted.
class KeyRange {
 public:
  /// [start, end]. std::nullopt if start > end.
  [[nodiscard]] static constexpr std::optional<KeyRange> of(std::uint64_t start,
                                                            std::uint64_t end) noexcept {
    return start > end ? std::nullopt : std::optional(KeyRange(start, end));
  }

  /// [start, end) and (start, end). std::nullopt if the interval is empty.
  [[nodiscard]] static constexpr std::optional<KeyRange> half_open(std::uint64_t start,
                                                                   std::uint64_t end) noexcept {
    return start >= end ? std::nullopt : std::optional(KeyRange(start, end - 1));
  }
  [[nodiscard]] static constexpr std::optional<KeyRange> open(std::uint64_t start,
                                                              std::uint64_t end) noexcept {
    return start >= end ? std::nullopt : half_open(start + 1, end);
  }

  /// [key, key].
  [[nodiscard]] static constexpr KeyRange point(std::uint64_t key) noexcept { return {key, key}; }

  /// [start, ∞), (-∞, end] and all keys.
  [[nodiscard]] static constexpr KeyRange at_least(std::uint64_t start) noexcept {
    return {start, last_key};
  }
  [[nodiscard]] static constexpr KeyRange at_most(std::uint64_t end) noexcept { return {0, end}; }
  [[nodiscard]] static constexpr KeyRange all() noexcept { return {0, last_key}; }

  /// First and last key of the interval.
  [[nodiscard]] constexpr std::uint64_t start() const noexcept { return start_; }
  [[nodiscard]] constexpr std::uint64_t end() const noexcept { return end_; }

  /// Whether it contains this key, contains all keys of `other`, contains any key of `other`.
  [[nodiscard]] constexpr bool contains(std::uint64_t key) const noexcept {
    return start_ <= key && key <= end_;
  }
  [[nodiscard]] constexpr bool contains(const KeyRange& other) const noexcept {
    return start_ <= other.start_ && other.end_ <= end_;
  }
  [[nodiscard]] constexpr bool overlaps(const KeyRange& other) const noexcept {
    return start_ <= other.end_ && other.start_ <= end_;
  }

  friend constexpr auto operator<=>(const KeyRange&, const KeyRange&) = default;

 private:
  static constexpr std::uint64_t last_key = std::numeric_limits<std::uint64_t>::max();

  constexpr KeyRange(std::uint64_t start, std::uint64_t end) noexcept : start_(start), end_(end) {}

  std::uint64_t start_;
  std::uint64_t end_;
};

/// Non-empty interval of byte strings in lexicographic order of unsigned bytes. Represented as
/// [start, end) or [start, ∞); the successor of a string is the string with a zero byte appended,
/// so every other kind of end can be converted.
class BytesRange {
 public:
  /// [start, end]. std::nullopt if start > end.
  [[nodiscard]] static std::optional<BytesRange> of(std::string_view start, std::string_view end) {
    return half_open(start, after(end));
  }

  /// [start, end) and (start, end). std::nullopt if the interval is empty.
  [[nodiscard]] static std::optional<BytesRange> half_open(std::string_view start,
                                                           std::string_view end) {
    return start >= end ? std::nullopt
                        : std::optional(BytesRange(std::string(start), std::string(end)));
  }
  [[nodiscard]] static std::optional<BytesRange> open(std::string_view start,
                                                      std::string_view end) {
    return half_open(after(start), end);
  }

  /// [key, key].
  [[nodiscard]] static BytesRange point(std::string_view key) {
    return {std::string(key), after(key)};
  }

  /// All strings with this prefix; the empty prefix selects all strings.
  [[nodiscard]] static BytesRange prefix(std::string_view prefix) {
    std::string end(prefix);
    while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) {
      end.pop_back();
    }
    if (end.empty()) {
      return {std::string(prefix), std::nullopt};
    }
    end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
    return {std::string(prefix), std::move(end)};
  }

  /// [start, ∞), (-∞, end] and all strings.
  [[nodiscard]] static BytesRange at_least(std::string_view start) {
    return {std::string(start), std::nullopt};
  }
  [[nodiscard]] static BytesRange at_most(std::string_view end) { return {{}, after(end)}; }
  [[nodiscard]] static BytesRange all() { return {{}, std::nullopt}; }

  /// First string of the interval, and first string after it (std::nullopt if unbounded).
  [[nodiscard]] const std::string& start() const noexcept { return start_; }
  [[nodiscard]] const std::optional<std::string>& end() const noexcept { return end_; }

  /// Whether it contains this string, contains all strings of `other`, contains any string of
  /// `other`.
  [[nodiscard]] bool contains(std::string_view key) const noexcept {
    return start_ <= key && (!end_ || key < *end_);
  }
  [[nodiscard]] bool contains(const BytesRange& other) const noexcept {
    return start_ <= other.start_ && (!end_ || (other.end_ && *other.end_ <= *end_));
  }
  [[nodiscard]] bool overlaps(const BytesRange& other) const noexcept {
    return (!other.end_ || start_ < *other.end_) && (!end_ || other.start_ < *end_);
  }

  friend bool operator==(const BytesRange&, const BytesRange&) = default;

 private:
  BytesRange(std::string start, std::optional<std::string> end)
      : start_(std::move(start)), end_(std::move(end)) {}

  [[nodiscard]] static std::string after(std::string_view key) {
    std::string next(key);
    next.push_back('\0');
    return next;
  }

  std::string start_;
  std::optional<std::string> end_;
};

}  // namespace tenure
