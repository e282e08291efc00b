#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <utility>

namespace tenure {

/// Strong typedef: `Strong<u64, struct TxnIdTag>` and `Strong<u64, struct ResourceIdTag>` are
/// different types, so passing one for the other, or a bare integer for either, does not compile.
/// Has the size and the cost of `Value`.
template <class Value, class Tag>
class Strong {
 public:
  /// Zero, or a default-constructed `Value`.
  constexpr Strong() = default;
  /// The id with this value. Explicit, so that a bare integer is not accepted as an id.
  constexpr explicit Strong(Value value) noexcept : value_(std::move(value)) {}

  /// Underlying value, for wire formats and logs.
  [[nodiscard]] constexpr const Value& get() const noexcept { return value_; }
  [[nodiscard]] constexpr explicit operator Value() const { return value_; }

  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

 private:
  Value value_{};
};

/// Writes the underlying value.
template <class Traits, class Value, class Tag>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Strong<Value, Tag>& strong) {
  return out << strong.get();
}

}  // namespace tenure

template <class Value, class Tag>
struct std::hash<tenure::Strong<Value, Tag>> {
  [[nodiscard]] std::size_t operator()(const tenure::Strong<Value, Tag>& strong) const {
    return std::hash<Value>{}(strong.get());
  }
};
