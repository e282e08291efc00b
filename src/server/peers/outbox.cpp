#include "server/peers/outbox.hpp"

#include <utility>

namespace tenure::server::peers {

bool Outbox::push(Frame frame) {
  const auto bytes = frame.body_bytes();
  // A frame above bytes_max is accepted if no other entries are queued; otherwise it could never be
  // sent.
  const bool has_room = bytes == 0 || body_bytes_ == 0 || body_bytes_ + bytes <= limits_.bytes_max;
  if (frames_.size() >= limits_.messages_max || !has_room) {
    return false;
  }
  body_bytes_ += bytes;
  frames_.push_back(std::move(frame));
  return true;
}

std::vector<Frame> Outbox::take_batch() {
  std::vector<Frame> batch;
  std::size_t bytes = 0;
  while (!frames_.empty() && batch.size() < limits_.batch_messages_max) {
    // The first frame is taken whatever its size, or a large one would never be sent.
    const auto next = frames_.front().bytes();
    if (!batch.empty() && bytes + next > limits_.batch_bytes_max) {
      break;
    }
    bytes += next;
    body_bytes_ -= frames_.front().body_bytes();
    batch.push_back(std::move(frames_.front()));
    frames_.pop_front();
  }
  return batch;
}

void Outbox::clear() {
  frames_.clear();
  body_bytes_ = 0;
}

}  // namespace tenure::server::peers
