#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/command.hpp"
#include "server/store/store.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// Upper bound of the encoded size of a command in the log.
[[nodiscard]] std::size_t encoded_size(const core::Command& command);
/// Whether the command can make the state larger. The others are admitted longer on a full disk, so
/// that locks can still be renewed and released.
[[nodiscard]] bool may_grow(const core::Command& command);

struct Proposal {
  core::Command command;
  Store::Decision decided;  ///< Callback for the result; may be empty.
  std::size_t bytes = 0;
};

/// Bounded MPSC queue of commands from all threads to the store's thread. The limits count
/// proposals from push() to finished(). Only the first push to an idle queue has to wake the
/// consumer. Thread safe.
class ProposalQueue {
 public:
  struct Limits {
    std::size_t commands = 100'000;
    std::size_t bytes = std::size_t{64} << 20;
  };
  enum class PushResult : std::uint8_t { queued, queued_first, full, closed };

  explicit ProposalQueue(Limits limits) : limits_(limits) {}

  /// `queued_first`: the caller has to wake the store's thread. The proposal is moved from only if
  /// it is queued.
  [[nodiscard]] PushResult push(Proposal& proposal);
  /// Removes the oldest proposals within the limits; at least one unless the queue is empty.
  [[nodiscard]] std::vector<Proposal> take(std::size_t commands_max, std::size_t bytes_max);
  /// Marks the consumer as idle if the queue is empty: the next push returns `queued_first`. False:
  /// more proposals wait.
  [[nodiscard]] bool go_idle();
  /// Returns the room of commands that were applied, refused or given up.
  void finished(std::size_t commands, std::size_t bytes);
  /// Refuses all further pushes; returns the waiting proposals.
  [[nodiscard]] std::vector<Proposal> close();

 private:
  /// Iterator to an element of waiting_.
  [[nodiscard]] std::vector<Proposal>::iterator at(std::size_t index) TENURE_REQUIRES(mutex_);

  const Limits limits_;
  sys::Mutex mutex_;  ///< Guards: all members below.
  std::vector<Proposal> waiting_ TENURE_GUARDED_BY(mutex_);
  std::size_t gone_ TENURE_GUARDED_BY(mutex_) =
      0;  ///< Number of leading elements of waiting_ that are taken.
  std::size_t commands_ TENURE_GUARDED_BY(mutex_) =
      0;  ///< Commands that are waiting or taken and not finished.
  /// Size of these commands.
  std::size_t bytes_ TENURE_GUARDED_BY(mutex_) = 0;
  /// Whether the consumer was woken since it went idle.
  bool is_awake_ TENURE_GUARDED_BY(mutex_) = false;
  /// Whether pushes are refused, because the server stops.
  bool is_closed_ TENURE_GUARDED_BY(mutex_) = false;
};

}  // namespace tenure::server::raft
