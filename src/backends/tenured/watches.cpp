#include "backends/tenured/watches.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

/// Delays before a refused watch is requested again.
constexpr net::Backoff::Options retry{.min = std::chrono::milliseconds(50),
                                      .max = std::chrono::milliseconds(1000)};

}  // namespace

Watches::Watches(boost::asio::io_context& loop) : retry_timer_(loop), backoff_(retry) {}

void Watches::add(WatchId id, WatchRequest request, Backend::Sink sink,
                  std::function<void()> begun) {
  const auto next = request.start;
  const auto [it, is_new] =
      watches_.emplace(id, Watch{.request = std::move(request),
                                 .sink = std::make_shared<Backend::Sink>(std::move(sink)),
                                 .next = next,
                                 .begun = std::move(begun)});
  begin(id, it->second);
}

void Watches::begin(WatchId id, Watch& watch) {
  if (!channel_ || watch.phase != Phase::idle) {
    return;
  }
  if (!stream_) {
    stream_ = std::make_shared<MessageStream<v1::WatchResponse>>(
        [this](const v1::WatchResponse& response) { received(response); },
        [this](const grpc::Status& status) { ended(status); });
    channel_->begin("/tenure.v1.LockService/Watch", stream_);
    if (!stream_) {
      return;  // The stream failed at once; the connection is ending.
    }
  }
  v1::WatchRequest request;
  write(watch.request, watch.next, *request.mutable_create());
  request.mutable_create()->set_watch_id(id.get());
  watch.phase = Phase::requested;
  stream_->send(request);
}

void Watches::begin_all() {
  for (auto& [id, watch] : watches_) {
    begin(id, watch);
    if (!stream_) {
      return;
    }
  }
}

void Watches::begin_all_after_delay() {
  if (std::exchange(is_retry_due_, true)) {
    return;
  }
  retry_timer_.expires_after(backoff_.next());
  retry_timer_.async_wait(
      [this, alive = std::weak_ptr(life_)](const boost::system::error_code& cancelled) {
        if (!cancelled && !alive.expired() && std::exchange(is_retry_due_, false)) {
          begin_all();
        }
      });
}

void Watches::remove(WatchId id) {
  if (watches_.erase(id) > 0 && stream_) {
    v1::WatchRequest request;
    request.mutable_cancel()->set_watch_id(id.get());
    stream_->send(request);
  }
}

void Watches::connected(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  begin_all();
}

// Each watch keeps its next revision, so it resumes without gap on the next connection.
void Watches::disconnected() {
  channel_.reset();
  retry_timer_.cancel();
  is_retry_due_ = false;
  backoff_.reset();
  for (auto& [id, watch] : watches_) {
    watch.phase = Phase::idle;
  }
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->detach();
  }
}

void Watches::end() {
  disconnected();
  for (const auto& [id, watch] : std::exchange(watches_, {})) {
    (*watch.sink)(fail(Errc::unavailable, "the client is closed"));
  }
}

void Watches::received(const v1::WatchResponse& response) {
  const WatchId id{response.watch_id()};
  const auto it = watches_.find(id);
  if (it == watches_.end()) {
    return;
  }
  if (response.cancelled()) {
    cancelled(id, response);
    return;
  }
  if (response.created()) {
    it->second.phase = Phase::active;
    backoff_.reset();
    if (it->second.next == Revision{}) {
      it->second.next = Revision{response.header().revision() + 1};
    }
    if (const auto begun = std::exchange(it->second.begun, {})) {
      begun();
    }
  }
  // The sink may remove the watch.
  const auto sink = it->second.sink;
  for (const auto& event : response.events()) {
    it->second.next = Revision{event.revision() + 1};
  }
  for (const auto& event : response.events()) {
    (*sink)(event_from(event));
  }
}

// A resume revision means that the server still has the events; otherwise the watch cannot
// continue.
void Watches::cancelled(WatchId id, const v1::WatchResponse& response) {
  const auto it = watches_.find(id);
  if (response.compact_revision() == 0 && response.resume_revision() != 0) {
    it->second.next = Revision{response.resume_revision()};
    if (std::exchange(it->second.phase, Phase::idle) == Phase::active) {
      // This client was too slow; the server still has the dropped events.
      begin(id, it->second);
    } else {
      // The server could not register the watch; it may succeed later.
      begin_all_after_delay();
    }
    return;
  }
  const auto sink = it->second.sink;
  const auto begun = std::move(it->second.begun);
  watches_.erase(it);
  if (begun) {
    begun();  // Unblocks the caller of watch().
  }
  const auto code = response.code() == v1::CODE_PERMISSION_DENIED ? Errc::permission_denied
                    : response.compact_revision() != 0            ? Errc::invalid_argument
                                                                  : Errc::resource_exhausted;
  const auto from =
      response.compact_revision() != 0
          ? "; the oldest known revision is " + std::to_string(response.compact_revision() + 1)
          : std::string();
  (*sink)(fail(code, response.detail() + from));
}

void Watches::ended(const grpc::Status& status) {
  stream_.reset();
  const auto error = error_from(status, channel_->authority());
  for (auto& [id, watch] : watches_) {
    watch.phase = Phase::idle;
  }
  if (error == Errc::unavailable) {
    // With a new connection, connected() requests the watches again. If only the stream ended, this
    // is the only retry.
    if (!channel_->is_closed()) {
      begin_all_after_delay();
    }
    return;
  }
  for (const auto& [id, watch] : std::exchange(watches_, {})) {
    if (watch.begun) {
      watch.begun();  // Unblocks the caller of watch().
    }
    (*watch.sink)(std::unexpected(error));
  }
}

}  // namespace tenure::backends::tenured
