#include <utility>

#include <tenure/client/watch.hpp>

#include "client/event_stream.hpp"

namespace tenure {

std::string_view to_string(LockEventType type) noexcept {
  switch (type) {
    case LockEventType::queued: return "queued";
    case LockEventType::granted: return "granted";
    case LockEventType::released: return "released";
    case LockEventType::expired: return "expired";
    case LockEventType::revoked: return "revoked";
    case LockEventType::forced: return "forced";
    case LockEventType::abandoned: return "abandoned";
    case LockEventType::deadlock: return "deadlock";
    case LockEventType::downgraded: return "downgraded";
  }
  return "unknown";
}

Watch::Watch(std::shared_ptr<detail::EventStream> stream) noexcept : stream_(std::move(stream)) {}

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    // Unregisters the old stream, whose events no reader takes any more.
    stop();
    stream_ = std::move(other.stream_);
    error_ = std::move(other.error_);
  }
  return *this;
}

Watch::~Watch() {
  stop();
}

Result<LockEvent> Watch::next(std::stop_token cancel) {
  return stream_->next(std::nullopt, cancel);
}

Result<LockEvent> Watch::next_before(std::chrono::steady_clock::time_point deadline) {
  return stream_->next(deadline, {});
}

void Watch::stop() noexcept {
  if (stream_ != nullptr) {
    stream_->stop();
  }
}

Watch::Iterator& Watch::Iterator::operator++() {
  auto event = watch_->next();
  if (event) {
    event_ = *std::move(event);
  } else {
    if (event.error() != Errc::cancelled) {
      watch_->error_ = std::move(event).error();
    }
    // Equals end(). A cancelled watch ended on request; other errors are kept for Watch::error().
    watch_ = nullptr;
  }
  return *this;
}

}  // namespace tenure
