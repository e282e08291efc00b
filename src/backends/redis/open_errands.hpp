#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  Id add(Errand errand) {
    slots_.emplace_back(std::move(errand));
    ++size_;
    return first_ + slots_.size() - 1;
  }
  /// Null: it is answered.
  [[nodiscard]] Errand* find(Id id) {
    if (id < first_ || id >= first_ + slots_.size() || !slots_[id - first_]) {
      return nullptr;
    }
    return &*slots_[id - first_];
  }
  /// REQUIRES: it is there.
  [[nodiscard]] Errand take(Id id) {
    auto& slot = slots_[id - first_];
    auto taken = *std::exchange(slot, std::nullopt);
    --size_;
    while (!slots_.empty() && !slots_.front()) {
      slots_.pop_front();
      ++first_;
    }
    return taken;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Those that there are.
  [[nodiscard]] std::vector<Id> ids() const {
    std::vector<Id> all;
    for (std::size_t at = 0; at < slots_.size(); ++at) {
      if (slots_[at]) {
        all.push_back(first_ + at);
      }
    }
    return all;
  }

 private:
  std::deque<std::optional<Errand>> slots_;
  Id first_ = 1;  ///< That of the first slot.
  std::size_t size_ = 0;
};

}  // namespace tenure::backends::redis
