#pragma once

#include <cstddef>
#include <utility>

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::backends {

/// Fan-in: an operation that is complete when all of its parts are. The first part is the function
/// that starts the others, so that the operation cannot end while it does. Not thread safe.
template <class T>
class FanIn {
 public:
  explicit FanIn(Backend::Done<T> done, Result<T> result = {})
      : done_(std::move(done)), result_(std::move(result)) {}

  /// Result so far: that of the constructor, or the last error.
  [[nodiscard]] Result<T>& result() noexcept { return result_; }
  /// The operation fails when all parts are complete.
  void fail(Error why) { result_ = std::unexpected(std::move(why)); }

  void add() noexcept { ++parts_; }
  /// Calls `done` with the result after the last part.
  void part_done() {
    if (--parts_ == 0) {
      done_(std::move(result_));
    }
  }

 private:
  Backend::Done<T> done_;
  Result<T> result_;
  /// Parts that are not complete.
  std::size_t parts_ = 1;
};

/// A part of a renewal has found that this lease has ended.
inline void mark_lost(FanIn<Renewed>& renewal, std::size_t index) {
  if (auto& alive = renewal.result()) {
    (*alive)[index] = false;
  }
}

}  // namespace tenure::backends
