#include "client/event_stream.hpp"

#include <string>
#include <utility>

#include "client/session.hpp"

namespace tenure::detail {

EventStream::EventStream(std::shared_ptr<Session> session, std::size_t events_max)
    : session_(std::move(session)) {
  buffer_->events_max = events_max;
}

void EventStream::start(backends::WatchRequest request) {
  watch_ = session_->backend().watch(
      std::move(request),
      [buffer = buffer_](Result<LockEvent> event) { buffer->put(std::move(event)); });
}

void EventStream::Buffer::put(Result<LockEvent> event) {
  {
    const sys::MutexGuard lock(mutex);
    if (end) {
      return;
    }
    if (!event) {
      end = std::move(event).error();
    } else if (events.size() >= events_max) {
      // The event is dropped, so the stream has to end: a gap would break the guarantee of order
      // without gaps. The reader resumes from its revision.
      end = Error{.code = Errc::resource_exhausted,
                  .detail = "the reader is too slow; watch again from revision " +
                            std::to_string(event->revision.get())};
    } else {
      events.push_back(*std::move(event));
    }
  }
  changed.notify_all();
}

Result<LockEvent> EventStream::next(std::optional<std::chrono::steady_clock::time_point> deadline,
                                    const std::stop_token& cancel) {
  if (session_->is_inherited()) {
    return std::unexpected(backends::inherited_error());
  }
  // With the mutex: between the check of the token and the wait below, no notification is lost.
  const std::stop_callback on_stop(cancel, [this] {
    const sys::MutexGuard lock(buffer_->mutex);
    buffer_->changed.notify_all();
  });
  const sys::MutexGuard lock(buffer_->mutex);
  for (;;) {
    if (!buffer_->events.empty()) {
      auto event = std::move(buffer_->events.front());
      buffer_->events.pop_front();
      return event;
    }
    if (buffer_->end) {
      return std::unexpected(*buffer_->end);
    }
    if (cancel.stop_requested()) {
      return fail(Errc::cancelled);
    }
    if (!deadline) {
      buffer_->changed.wait(buffer_->mutex);
      continue;
    }
    const auto left = *deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) {
      return fail(Errc::timed_out, "no event before the timeout");
    }
    buffer_->changed.wait_for(buffer_->mutex, left);
  }
}

void EventStream::stop() noexcept {
  if (session_->is_inherited()) {
    return;
  }
  if (watch_) {
    session_->backend().unwatch(*watch_);
  }
  // Wakes a reader that waits without a deadline.
  buffer_->put(fail(Errc::cancelled));
}

}  // namespace tenure::detail
