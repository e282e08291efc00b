#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <utility>

namespace tenure {

/// A value that mixes only with its own kind: `Strong<u64, struct TxnIdTag>` and
/// `Strong<u64, struct ResourceIdTag>` are different types, so passing one for the other, or a
/// bare integer for either, does not compile. Costs nothing at run time.
template <class Value, class Tag>
class Strong {
 public:
  /// Zero, or whatever `Value` begins with.
  constexpr Strong() = default;
  constexpr explicit Strong(Value value) noexcept : value_(std::move(value)) {}

  /// The way back to the raw value, for where it meets a wire format or a log line.
  [[nodiscard]] constexpr const Value& get() const noexcept { return value_; }
  [[nodiscard]] constexpr explicit operator Value() const { return value_; }

  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

 private:
  Value value_{};
};

}  // namespace tenure

template <class Value, class Tag>
struct std::hash<tenure::Strong<Value, Tag>> {
  [[nodiscard]] std::size_t operator()(const tenure::Strong<Value, Tag>& strong) const {
    return std::hash<Value>{}(strong.get());
  }
};
