#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "server/peers/frame.hpp"

namespace tenure::server::peers {

struct OutboxLimits {
  /// Messages queued for one peer. Further ones are dropped: Raft repeats them.
  std::size_t messages_max = 4096;
  /// Size of the entries in them. Entries are shared with the log, so this bounds the age of queued
  /// messages rather than memory. Messages without entries (votes, heartbeats, replies) are not
  /// limited by it: the slower a peer is, the more it needs them.
  std::size_t bytes_max = std::size_t{16} << 20;
  /// Limits of one write: bounds the time that the loop spends on one peer.
  std::size_t batch_bytes_max = std::size_t{256} << 10;
  std::size_t batch_messages_max = 32;
};

/// Bounded FIFO of frames for one peer. Not thread safe.
class Outbox {
 public:
  explicit Outbox(OutboxLimits limits) : limits_(limits) {}

  /// False: the outbox is full, and the frame is dropped.
  [[nodiscard]] bool push(Frame frame);
  /// Frames of the next write; at least one unless the outbox is empty.
  [[nodiscard]] std::vector<Frame> take_batch();
  void clear();

  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  [[nodiscard]] bool is_empty() const noexcept { return frames_.empty(); }

 private:
  OutboxLimits limits_;
  /// Queued frames, oldest first.
  std::deque<Frame> frames_;
  /// Size of their bodies.
  std::size_t body_bytes_ = 0;
};

}  // namespace tenure::server::peers
