#pragma once

#include <memory>
#include <utility>

namespace tenure::core {

/// Optional value on the heap with value semantics: eight bytes while it is empty, and copies copy
/// the value. For fields that few of many records have. Thread safety: as the value.
template <class Value>
class Box {
 public:
  Box() noexcept = default;
  explicit Box(Value value) : value_(std::make_unique<Value>(std::move(value))) {}
  Box(Box&& other) noexcept = default;
  Box& operator=(Box&& other) noexcept = default;
  Box(const Box& other) : value_(other.value_ ? std::make_unique<Value>(*other.value_) : nullptr) {}
  Box& operator=(const Box& other) {
    if (this != &other) {
      *this = Box(other);
    }
    return *this;
  }
  ~Box() = default;

  explicit operator bool() const noexcept { return value_ != nullptr; }
  /// REQUIRES: the box is not empty.
  [[nodiscard]] const Value& operator*() const noexcept { return *value_; }
  [[nodiscard]] Value& operator*() noexcept { return *value_; }
  [[nodiscard]] const Value* operator->() const noexcept { return value_.get(); }
  [[nodiscard]] Value* operator->() noexcept { return value_.get(); }

  friend bool operator==(const Box& left, const Box& right) {
    return left && right ? *left == *right : !left && !right;
  }

 private:
  std::unique_ptr<Value> value_;
};

}  // namespace tenure::core
