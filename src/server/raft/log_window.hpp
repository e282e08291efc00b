#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "server/raft/entry.hpp"

namespace tenure::server::raft {

/// Contiguous suffix of the log in memory, from first() to last(). Not thread safe.
class LogWindow {
 public:
  LogWindow() = default;
  LogWindow(Index first, const std::vector<Entry>& entries)
      : first_(first), entries_(entries.begin(), entries.end()) {}

  [[nodiscard]] Index first() const noexcept { return first_; }
  [[nodiscard]] Index last() const noexcept { return Index{first_.get() + entries_.size() - 1}; }
  [[nodiscard]] bool contains(Index index) const noexcept {
    return index >= first_ && index <= last();
  }
  /// Entry at `index`; null: not in the window.
  [[nodiscard]] const Entry* find(Index index) const {
    return contains(index) ? &entries_[offset(index)] : nullptr;
  }
  /// Copy of `count` entries from `first` on. REQUIRES: the window contains them.
  [[nodiscard]] std::vector<Entry> copy(Index first, std::size_t count) const {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(offset(first));
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

  /// Replaces everything from `first` on.
  void replace_from(Index first, const std::vector<Entry>& entries) {
    if (entries_.empty()) {
      first_ = first;
    }
    entries_.resize(std::min(entries_.size(), offset(std::max(first, first_))));
    entries_.insert(entries_.end(), entries.begin(), entries.end());
  }
  /// Drops everything up to `last`.
  void cut_to(Index last) {
    while (!entries_.empty() && first_ <= last) {
      entries_.pop_front();
      first_ = next(first_);
    }
  }
  /// Drops everything; the next entry has index `first`.
  void restart_at(Index first) {
    entries_.clear();
    first_ = first;
  }

 private:
  [[nodiscard]] std::size_t offset(Index index) const noexcept {
    return index.get() - first_.get();
  }

  Index first_{1};
  std::deque<Entry> entries_;
};

}  // namespace tenure::server::raft
