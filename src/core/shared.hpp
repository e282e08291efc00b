#pragma once

#include <memory>
#include <utility>

#include "core/owners.hpp"

namespace tenure::core {

/// A value that its copies share until one of them is changed. May be absent; takes eight bytes.
/// Copies may be read, changed and dropped by different threads, one copy by one thread.
template <class Value>
class Shared {
 public:
  Shared() noexcept = default;
  explicit Shared(Value value) : cell_(std::make_unique<Cell>(std::move(value)).release()) {}
  Shared(const Shared& other) noexcept : cell_(other.cell_) {
    if (cell_ != nullptr) {
      cell_->owners.join();
    }
  }
  Shared(Shared&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  Shared& operator=(const Shared& other) noexcept { return *this = Shared(other); }
  Shared& operator=(Shared&& other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~Shared() {
    if (cell_ != nullptr && cell_->owners.leave()) {
      std::unique_ptr<Cell>(cell_).reset();
    }
  }

  explicit operator bool() const noexcept { return cell_ != nullptr; }
  /// REQUIRES of these: it is not absent.
  [[nodiscard]] const Value& operator*() const noexcept { return cell_->value; }
  [[nodiscard]] const Value* operator->() const noexcept { return &cell_->value; }
  /// To be changed. Copies keep what they have, and references to it are theirs from now on.
  [[nodiscard]] Value& edit() {
    if (!cell_->owners.is_one()) {
      *this = Shared(Value(cell_->value));
    }
    return cell_->value;
  }

  friend bool operator==(const Shared& left, const Shared& right) {
    return left.cell_ == right.cell_ || (left && right && *left == *right);
  }

 private:
  struct Cell {
    explicit Cell(Value&& content) : value(std::move(content)) {}

    Owners owners;
    Value value;
  };

  Cell* cell_ = nullptr;  ///< Deleted by its last owner.
};

}  // namespace tenure::core
