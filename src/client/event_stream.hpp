#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>

#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "sys/mutex.hpp"

namespace tenure::detail {

class Session;

/// Bounded buffer of one watch between the backend, which must not block, and the reader. If the
/// reader is too slow, the stream ends with the revision to resume from. Thread safe.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(std::shared_ptr<Session> session, std::size_t events_max);
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream() { stop(); }

  /// Registers the watch. REQUIRES: called once, before next().
  void start(backends::WatchRequest request);
  /// Blocks for the next event. Events that were received come before the error that ended the
  /// stream, so none is lost.
  [[nodiscard]] Result<LockEvent> next(
      std::optional<std::chrono::steady_clock::time_point> deadline, const std::stop_token& cancel);
  /// Ends the stream: next() returns `cancelled` after the buffered events. Idempotent.
  void stop() noexcept;

 private:
  /// Buffer that the backend writes to. Shared, because the backend may outlive the stream.
  struct Buffer {
    sys::Mutex mutex;
    sys::Signal changed;
    std::deque<LockEvent> events TENURE_GUARDED_BY(mutex);
    std::optional<Error> end
        TENURE_GUARDED_BY(mutex);  ///< End of the stream, reported after the events.
    /// Capacity. Written before start(), so it needs no mutex.
    std::size_t events_max = 0;

    /// Appends an event or the end of the stream; ignored after the end. Never blocks, because it
    /// runs on a thread of the backend.
    void put(Result<LockEvent> event);
  };

  std::shared_ptr<Session> session_;
  std::shared_ptr<Buffer> buffer_ = std::make_shared<Buffer>();
  std::optional<backends::WatchId> watch_;
};

}  // namespace tenure::detail
