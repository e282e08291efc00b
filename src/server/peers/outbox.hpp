#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "server/peers/frame.hpp"

namespace tenure::server::peers {

struct OutboxLimits {
  /// Messages that wait for one peer. More are dropped; Raft says it again.
  std::size_t messages_max = 4096;
  /// Of entries in them. They are shared with the log, so this is about how old a message may be
  /// when it arrives, and less about memory. Messages without entries (votes, heartbeats, answers)
  /// are let in beyond it: the slower a peer is, the more it needs them.
  std::size_t bytes_max = std::size_t{16} << 20;
  /// What goes into one write: the loop is not held up for longer by one peer.
  std::size_t batch_bytes_max = std::size_t{256} << 10;
  std::size_t batch_messages_max = 32;
};

/// What waits to be written to one peer, oldest first.
class Outbox {
 public:
  explicit Outbox(OutboxLimits limits) : limits_(limits) {}

  /// False: it is full, and the message is gone.
  [[nodiscard]] bool push(Frame frame);
  /// The next ones to be written together; at least one if there is any.
  [[nodiscard]] std::vector<Frame> take_batch();
  void clear();

  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  [[nodiscard]] bool is_empty() const noexcept { return frames_.empty(); }

 private:
  OutboxLimits limits_;
  std::deque<Frame> frames_;
  std::size_t body_bytes_ = 0;
};

}  // namespace tenure::server::peers
