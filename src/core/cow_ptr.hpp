#pragma once

#include <memory>
#include <utility>

#include "core/ref_count.hpp"

namespace tenure::core {

/// A value that its copies share until one of them is changed. May be absent; takes eight bytes.
/// Copies may be read, changed and dropped by different threads, one copy by one thread.
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
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~CowPtr() {
    if (cell_ != nullptr && cell_->references.drop()) {
      std::unique_ptr<Cell>(cell_).reset();
    }
  }

  explicit operator bool() const noexcept { return cell_ != nullptr; }
  /// REQUIRES of these: it is not absent.
  [[nodiscard]] const Value& operator*() const noexcept { return cell_->value; }
  [[nodiscard]] const Value* operator->() const noexcept { return &cell_->value; }
  /// To be changed. Copies keep what they have, and references to it are theirs from now on.
  [[nodiscard]] Value& edit() {
    if (!cell_->references.is_unique()) {
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

  Cell* cell_ = nullptr;  ///< Deleted by its last owner.
};

}  // namespace tenure::core
