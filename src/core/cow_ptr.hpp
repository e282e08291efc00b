#pragma once

#include <memory>
#include <utility>

#include "core/ref_count.hpp"

namespace tenure::core {

/// Copy-on-write pointer: copies share one value until edit() gives a copy its own. May be null;
/// takes eight bytes. Copying is O(1).
///
/// Thread safety: different threads may use different copies; one copy is for one thread at a time.
template <class Value>
class CowPtr {
 public:
  CowPtr() noexcept = default;
  explicit CowPtr(Value value) : cell_(std::make_unique<Cell>(std::move(value)).release()) {}
  CowPtr(const CowPtr& other) noexcept : cell_(other.cell_) {
    if (cell_ != nullptr) {
      cell_->references.add();
    }
  }
  CowPtr(CowPtr&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  CowPtr& operator=(const CowPtr& other) noexcept { return *this = CowPtr(other); }
  CowPtr& operator=(CowPtr&& other) noexcept {
    // The old value is dropped with `other`.
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~CowPtr() {
    if (cell_ != nullptr && cell_->references.drop()) {
      std::unique_ptr<Cell>(cell_).reset();
    }
  }

  explicit operator bool() const noexcept { return cell_ != nullptr; }
  // REQUIRES for the accessors: the pointer is not null.
  [[nodiscard]] const Value& operator*() const noexcept { return cell_->value; }
  [[nodiscard]] const Value* operator->() const noexcept { return &cell_->value; }
  /// Mutable value. Copies the value first if it is shared; references obtained before then refer
  /// to the value of the other copies.
  [[nodiscard]] Value& edit() {
    if (!cell_->references.is_unique()) {
      // The assignment drops the shared cell, which the other copies keep alive.
      *this = CowPtr(Value(cell_->value));
    }
    return cell_->value;
  }

  friend bool operator==(const CowPtr& left, const CowPtr& right) {
    return left.cell_ == right.cell_ || (left && right && *left == *right);
  }

 private:
  struct Cell {
    explicit Cell(Value&& content) : value(std::move(content)) {}

    RefCount references;
    Value value;
  };

  Cell* cell_ = nullptr;  ///< Value and count; the last owner deletes it.
};

}  // namespace tenure::core
