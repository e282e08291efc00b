#include "client/event_stream.hpp"

#include <string>
#include <utility>

#include "client/session.hpp"

namespace tenure::detail {

EventStream::EventStream(std::shared_ptr<Session> session, std::size_t events_max)
    : session_(std::move(session)) {
  inbox_->events_max = events_max;
}

void EventStream::start(backends::WatchRequest request) {
  watch_ = session_->backend().watch(std::move(request), [inbox = inbox_](Result<LockEvent> event) {
    inbox->put(std::move(event));
  });
}

void EventStream::Inbox::put(Result<LockEvent> event) {
  {
    const sys::MutexGuard lock(mutex);
    if (end) {
      return;
    }
    if (!event) {
      end = std::move(event).error();
    } else if (events.size() >= events_max) {
      end = Error{.code = Errc::resource_exhausted,
                  .detail = "events came faster than they were read; watch again from revision " +
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
  const std::stop_callback on_stop(cancel, [this] {
    const sys::MutexGuard lock(inbox_->mutex);
    inbox_->changed.notify_all();
  });
  const sys::MutexGuard lock(inbox_->mutex);
  for (;;) {
    if (!inbox_->events.empty()) {
      auto event = std::move(inbox_->events.front());
      inbox_->events.pop_front();
      return event;
    }
    if (inbox_->end) {
      return std::unexpected(*inbox_->end);
    }
    if (cancel.stop_requested()) {
      return fail(Errc::cancelled);
    }
    if (!deadline) {
      inbox_->changed.wait(inbox_->mutex);
      continue;
    }
    const auto left = *deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) {
      return fail(Errc::timed_out, "no event in time");
    }
    inbox_->changed.wait_for(inbox_->mutex, left);
  }
}

void EventStream::stop() noexcept {
  if (session_->is_inherited()) {
    return;
  }
  if (watch_) {
    session_->backend().unwatch(*watch_);
  }
  inbox_->put(fail(Errc::cancelled));
}

}  // namespace tenure::detail
