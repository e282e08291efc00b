#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::backends::zookeeper {

/// Where whatever happens is dealt with, one thing after the other: what the servers say, what is
/// asked, what time brings.
class Strand {
 public:
  using Job = std::move_only_function<void()>;

  Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  virtual ~Strand() = default;

  /// Does it now, on this thread, when nobody else is at the desk. REQUIRES: not there already.
  virtual void dispatch(Job job) = 0;
};

/// What is to be told to others when the desk is free again: never while somebody is there.
class DeferredCallbacks {
 public:
  void add(Strand::Job call) { calls_.push_back(std::move(call)); }
  template <class T>
  void complete(Backend::Done<T> done, Result<T> answer) {
    add([done = std::move(done), answer = std::move(answer)]() mutable {
      done(std::move(answer));
    });
  }
  [[nodiscard]] std::vector<Strand::Job> take() { return std::exchange(calls_, {}); }

 private:
  std::vector<Strand::Job> calls_;
};

}  // namespace tenure::backends::zookeeper
