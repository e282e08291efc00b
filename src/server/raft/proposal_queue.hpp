#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/command.hpp"
#include "server/store/store.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// About how many bytes the command takes in the log; not less than it does.
[[nodiscard]] std::size_t encoded_size(const core::Command& command);
/// Whether it can make the state larger. The others are let through for longer when space is short,
/// so that what is held can still be renewed and given back.
[[nodiscard]] bool may_grow(const core::Command& command);

struct Proposal {
  core::Command command;
  Store::Decision decided;  ///< Empty: nobody wants to know.
  std::size_t bytes = 0;
};

/// Where commands from all threads wait for the store's thread. Bounded: what was pushed and is not
/// finished counts. Tells which push has to wake the store; the others find it awake. Thread safe.
class ProposalQueue {
 public:
  struct Limits {
    std::size_t commands = 100'000;
    std::size_t bytes = std::size_t{64} << 20;
  };
  enum class PushResult : std::uint8_t { queued, queued_first, full, closed };

  explicit ProposalQueue(Limits limits) : limits_(limits) {}

  /// `queued_first`: the store's thread must be woken to take it. The proposal is moved from only
  /// if it is queued.
  [[nodiscard]] PushResult push(Proposal& proposal);
  /// The oldest ones, at most so many, and at least one if there are any.
  [[nodiscard]] std::vector<Proposal> take(std::size_t commands_max, std::size_t bytes_max);
  /// Whether nothing waits. If so, the next push has to wake.
  [[nodiscard]] bool go_idle();
  void finished(std::size_t commands, std::size_t bytes);
  /// From now on everything is refused. What waited.
  [[nodiscard]] std::vector<Proposal> close();

 private:
  [[nodiscard]] std::vector<Proposal>::iterator at(std::size_t index) TENURE_REQUIRES(mutex_);

  const Limits limits_;
  sys::Mutex mutex_;  ///< Guards: the rest.
  std::vector<Proposal> waiting_ TENURE_GUARDED_BY(mutex_);
  std::size_t gone_ TENURE_GUARDED_BY(mutex_) = 0;      ///< Of them, the first so many are taken.
  std::size_t commands_ TENURE_GUARDED_BY(mutex_) = 0;  ///< Waiting and taken, not finished.
  std::size_t bytes_ TENURE_GUARDED_BY(mutex_) = 0;
  bool is_awake_ TENURE_GUARDED_BY(mutex_) = false;
  bool is_closed_ TENURE_GUARDED_BY(mutex_) = false;
};

}  // namespace tenure::server::raft
