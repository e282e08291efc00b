#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::backends::zookeeper {

/// Strand: serialises watch callbacks, API calls and timers under one mutex, on the thread that
/// brings them. A reply therefore wakes its waiting thread directly, without a thread switch.
class Strand {
 public:
  using Job = std::move_only_function<void()>;

  Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  virtual ~Strand() = default;

  /// Runs `job` on the calling thread once the strand is free. REQUIRES: the calling thread is not
  /// on the strand.
  virtual void dispatch(Job job) = 0;
};

/// Base class of a backend whose work runs on a strand.
class StrandBackend : public Backend, protected Strand {
 protected:
  void post(Job job) { dispatch(std::move(job)); }
};

/// Callbacks deferred until the strand is unlocked: user code never runs while its mutex is held.
/// Not thread safe: used on the strand.
class DeferredCallbacks {
 public:
  void add(Strand::Job call) { calls_.push_back(std::move(call)); }
  template <class T>
  void complete(Backend::Done<T> done, std::type_identity_t<Result<T>> answer) {
    add([done = std::move(done), answer = std::move(answer)]() mutable {
      done(std::move(answer));
    });
  }
  [[nodiscard]] std::vector<Strand::Job> take() { return std::exchange(calls_, {}); }

 private:
  std::vector<Strand::Job> calls_;
};

}  // namespace tenure::backends::zookeeper
