#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace tenure::core {

/// Queue in one array with a gap at its front. push_back and pop_front take amortised O(1); insert
/// and erase elsewhere move the shorter side. Empty it owns no memory, unlike std::deque: there may
/// be a million locks, and most have no waiters. Thread safety: as std::vector.
template <class Value>
class FlatQueue {
 public:
  using Iterator = const Value*;

  [[nodiscard]] Iterator begin() const noexcept { return slots_.data() + gone_; }
  [[nodiscard]] Iterator end() const noexcept { return slots_.data() + slots_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - gone_; }
  [[nodiscard]] bool empty() const noexcept { return slots_.size() == gone_; }
  [[nodiscard]] const Value& operator[](std::size_t index) const { return slots_[gone_ + index]; }
  [[nodiscard]] const Value& front() const { return slots_[gone_]; }
  [[nodiscard]] const Value& back() const { return slots_.back(); }

  /// Mutable last value. REQUIRES: the queue is not empty.
  [[nodiscard]] Value& edit_back() { return slots_.back(); }

  void push_back(Value value) { slots_.push_back(std::move(value)); }

  void pop_front() {
    // Frees the heap memory of the value now, not when the gap is closed.
    slots_[gone_++] = Value{};
    close_gap();
  }

  void insert(Iterator before, Value value) {
    const auto position = slots_.begin() + (before - slots_.data());
    // Without a gap at the front, or closer to the end, the values behind move.
    if (gone_ == 0 || before - begin() > end() - before) {
      slots_.insert(position, std::move(value));
      return;
    }
    const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(gone_);
    std::move(first, position, first - 1);
    *(position - 1) = std::move(value);
    --gone_;
  }

  void erase(Iterator which) {
    const auto position = slots_.begin() + (which - slots_.data());
    if (which - begin() > end() - which) {
      slots_.erase(position);
      return;
    }
    const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(gone_);
    std::move_backward(first, position, position + 1);
    pop_front();
  }

 private:
  /// Moves the values down once the gap is half of the array: each value moves about once, so
  /// pop_front stays amortised O(1).
  void close_gap() {
    // Below 16 removed values the gap costs less than moving the rest.
    constexpr std::size_t small = 16;
    if (gone_ == slots_.size()) {
      slots_.clear();
      gone_ = 0;
    } else if (gone_ >= small && 2 * gone_ >= slots_.size()) {
      slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(gone_));
      gone_ = 0;
    }
  }

  std::vector<Value> slots_;
  std::size_t gone_ = 0;  ///< Size of the gap: slots whose values were removed.
};

/// Set as a sorted array, for values that are inserted and removed in nearly ascending order: both
/// are then O(1), else O(n). Thread safety: as std::vector.
template <class Value>
class SortedQueue {
 public:
  using Iterator = typename FlatQueue<Value>::Iterator;

  /// Does nothing if the set contains the value.
  void insert(const Value& value) {
    const auto position = lower_bound(value);
    if (position == end() || *position != value) {
      values_.insert(position, value);
    }
  }
  void erase(const Value& value) {
    const auto position = lower_bound(value);
    if (position != end() && *position == value) {
      values_.erase(position);
    }
  }
  void pop_front() { values_.pop_front(); }

  /// First value that is not less than `value`.
  [[nodiscard]] Iterator lower_bound(const Value& value) const {
    // Most values are inserted at the end: skip the binary search.
    return empty() || back() < value ? end() : std::lower_bound(begin(), end(), value);
  }
  [[nodiscard]] bool contains(const Value& value) const {
    const auto position = lower_bound(value);
    return position != end() && *position == value;
  }
  /// Number of values less than `value`.
  [[nodiscard]] std::size_t count_before(const Value& value) const {
    return static_cast<std::size_t>(lower_bound(value) - begin());
  }

  [[nodiscard]] Iterator begin() const noexcept { return values_.begin(); }
  [[nodiscard]] Iterator end() const noexcept { return values_.end(); }
  [[nodiscard]] const Value& operator[](std::size_t index) const { return values_[index]; }
  [[nodiscard]] const Value& front() const { return values_.front(); }
  [[nodiscard]] const Value& back() const { return values_.back(); }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }

 private:
  FlatQueue<Value> values_;  ///< Ascending.
};

}  // namespace tenure::core
