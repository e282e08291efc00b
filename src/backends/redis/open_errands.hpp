#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/redis/errand.hpp"

namespace tenure::backends::redis {

/// Errands that are not answered, in their order, by numbers that grow. The numbers of those that
/// are lie close together, since a server answers in order; so to find one is a step.
class OpenErrands {
 public:
  using Id = std::uint64_t;

  /// Never 0.
  Id add(Errand&& errand) {
    if (end_ - first_ == slots_.size()) {
      grow();
    }
    slot(end_).emplace(std::move(errand));
    ++size_;
    return end_++;
  }
  /// Null: it is answered.
  [[nodiscard]] Errand* find(Id id) {
    return id < first_ || id >= end_ || !slot(id) ? nullptr : &*slot(id);
  }
  /// REQUIRES: it is there.
  [[nodiscard]] Errand take(Id id) {
    auto taken = *std::move(slot(id));
    remove(id);
    return taken;
  }
  /// REQUIRES: it is there.
  void remove(Id id) {
    slot(id).reset();
    --size_;
    while (first_ < end_ && !slot(first_)) {
      ++first_;
    }
    if (size_ == 0 && slots_.size() > slots_kept) {
      slots_ = std::vector<Slot>(slots_min);
    }
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Those that there are.
  [[nodiscard]] std::vector<Id> ids() const {
    std::vector<Id> all;
    all.reserve(size_);
    for (auto id = first_; id < end_; ++id) {
      if (slots_[id & (slots_.size() - 1)]) {
        all.push_back(id);
      }
    }
    return all;
  }

 private:
  using Slot = std::optional<Errand>;
  static constexpr std::size_t slots_min = 16;
  static constexpr std::size_t slots_kept = 4096;  ///< When all are answered.

  [[nodiscard]] Slot& slot(Id id) { return slots_[id & (slots_.size() - 1)]; }
  void grow() {
    std::vector<Slot> larger(2 * slots_.size());
    for (auto id = first_; id < end_; ++id) {
      larger[id & (larger.size() - 1)] = std::move(slot(id));
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(slots_min);  ///< A power of two of them.
  Id first_ = 1;                                            ///< All before are answered.
  Id end_ = 1;                                              ///< The next one.
  std::size_t size_ = 0;
};

}  // namespace tenure::backends::redis
