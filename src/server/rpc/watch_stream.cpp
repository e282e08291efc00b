#include "server/rpc/watch_stream.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include "server/requests/errors.hpp"
#include "wire/errors.hpp"

namespace tenure::server {
namespace {

/// Events per message; with maximum metadata a message stays below the 4 MiB default limit of gRPC
/// clients.
constexpr std::size_t events_per_message_max = 500;

/// nullopt: unknown event type.
std::optional<WatchSpec> spec_of(const v1::WatchCreate& wanted) {
  WatchSpec spec{.key = wanted.key(),
                 .match = wanted.prefix() ? Match::prefix : Match::exact,
                 .start = core::Revision(wanted.start_revision())};
  if (wanted.only_size() > 0) {
    spec.types = EventTypes::none();
  }
  for (const auto type : wanted.only()) {
    if (type == v1::EVENT_TYPE_UNSPECIFIED || !v1::EventType_IsValid(type)) {
      return std::nullopt;
    }
    // The protobuf enumeration starts with UNSPECIFIED, the one of core does not.
    spec.types.add(static_cast<core::EventType>(static_cast<int>(type) - 1));
  }
  return spec;
}

}  // namespace

void WatchStream::on_request(v1::WatchRequest& request) {
  if (finish_if_unauthenticated()) {
    return;
  }
  // Reading resumes when this request is handled.
  pause_reading();
  const bool is_create = request.has_create();
  // A linearizable read can fail while this member still believes that it leads, because it cannot
  // reach a majority. Then only the new watch fails.
  auto look = [self = self(), request = std::move(request)](Result<View> view) {
    if (view) {
      self->handle(request, *view);
    } else if (request.has_create() && view.error() == Errc::unavailable &&
               self->context_.leadership.is_leader() && !self->context_.is_stopping) {
      self->defer(request.create(), view.error());
    } else {
      self->fail_stream(view.error());
    }
  };
  if (is_create) {
    context_.store.read(std::move(look));
  } else {
    // Cancelling a watch changes no replicated state, so it needs no majority.
    context_.store.peek(std::move(look));
  }
}

void WatchStream::handle(const v1::WatchRequest& request, const View& view) {
  term_ = view.log.term;
  revision_ = view.state.revision;
  switch (request.request_case()) {
    case v1::WatchRequest::kCreate: create(request.create(), view); break;
    case v1::WatchRequest::kCancel: cancel(request.cancel().watch_id(), view); break;
    case v1::WatchRequest::REQUEST_NOT_SET:
      finish({grpc::StatusCode::invalid_argument, "create or cancel is required"});
      return;
  }
  resume_reading();
}

void WatchStream::defer(const v1::WatchCreate& wanted, const Error& why) {
  context_.store.peek([self = self(), wanted, why](const Result<View>& view) {
    if (self->is_closed_) {
      return;
    }
    if (!view) {
      self->fail_stream(why);
      return;
    }
    v1::WatchResponse response;
    self->context_.write_header(*view, *response.mutable_header());
    // An existing watch with this id continues, as in create().
    response.set_watch_id(self->watches_.contains(wanted.watch_id()) ? 0 : wanted.watch_id());
    response.set_cancelled(true);
    response.set_detail(why.detail + "; resume from resume_revision");
    // The local state may be outdated but never ahead, so the client may receive some events twice.
    const auto next = view->state.revision.get() + 1;
    response.set_resume_revision(wanted.start_revision() != 0 ? wanted.start_revision() : next);
    self->send(std::move(response));
    self->resume_reading();
  });
}

void WatchStream::create(const v1::WatchCreate& wanted, const View& view) {
  if (is_closed_) {
    return;
  }
  auto id = wanted.watch_id();
  while (id == 0 || (wanted.watch_id() == 0 && watches_.contains(id))) {
    id = ++last_id_;
  }
  auto spec = spec_of(wanted);
  if (!spec) {
    reject(id, "unknown event type in `only`", {});
    return;
  }
  spec->buffer_events_max = context_.limits.watch_buffer_events_max;
  if (spec->key.empty() && spec->match == Match::exact) {
    reject(id, "key is required; an empty key with `prefix` watches all locks", {});
    return;
  }
  if (principal_ && !may_watch(*spec)) {
    reject(id, principal_->access().denial(auth::Verb::read, spec->key).detail, {},
           v1::CODE_PERMISSION_DENIED);
    return;
  }
  if (watches_.contains(id)) {
    // The existing watch continues; the reply uses id 0, so that it cannot be mistaken for it.
    reject(0, "watch_id " + std::to_string(id) + " is in use on this stream", {});
    return;
  }
  if (watches_.size() >= context_.limits.watches_per_stream_max) {
    reject(id, "too many watches on one stream (service.watches_per_stream_max)", {});
    return;
  }
  auto watch = context_.watches.add(*std::move(spec), view.state, [weak = std::weak_ptr(self())] {
    if (const auto stream = weak.lock()) {
      stream->pump_soon();
    }
  });
  if (!watch) {
    reject(id, "the requested events are compacted", watch.error().revision);
    return;
  }
  watches_.emplace(id, Entry{.watch = *std::move(watch),
                             .previous = wanted.previous_record() ? wire::PreviousRecord::include
                                                                  : wire::PreviousRecord::omit});
  v1::WatchResponse response;
  context_.write_header(view, *response.mutable_header());
  response.set_watch_id(id);
  response.set_created(true);
  send(std::move(response));
  pump();
}

bool WatchStream::may_watch(const WatchSpec& spec) {
  return (spec.match == Match::prefix &&
          principal_->access().may_any(auth::Verb::read, spec.key)) ||
         !principal_->authorize(auth::Verb::read, spec.key);
}

void WatchStream::reject(WatchId id, std::string detail, core::Revision compacted, v1::Code code) {
  v1::WatchResponse response;
  context_.write_header(revision_, term_, *response.mutable_header());
  response.set_watch_id(id);
  response.set_cancelled(true);
  response.set_detail(std::move(detail));
  response.set_compact_revision(compacted.get());
  response.set_code(code);
  if (compacted != core::Revision{}) {
    response.set_resume_revision(compacted.get() + 1);
  }
  send(std::move(response));
}

void WatchStream::cancel(WatchId id, const View& view) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) {
    reject(id, "unknown watch_id", {});
    return;
  }
  // Events that were not sent yet are dropped.
  const auto resume =
      it->second.watch->resume_revision(core::Revision{view.state.revision.get() + 1});
  context_.watches.remove(it->second.watch);
  watches_.erase(it);
  v1::WatchResponse response;
  context_.write_header(view, *response.mutable_header());
  response.set_watch_id(id);
  response.set_cancelled(true);
  response.set_detail("cancelled by the client");
  response.set_resume_revision(resume.get());
  send(std::move(response));
}

void WatchStream::pump_soon() {
  if (!std::exchange(is_pump_due_, true)) {
    boost::asio::post(context_.client_work, [self = self()] {
      self->is_pump_due_ = false;
      self->pump();
    });
  }
}

void WatchStream::pump() {
  if (is_closed_ || has_queued()) {
    // drained() calls again.
    return;
  }
  for (std::size_t tried = 0; tried < watches_.size(); ++tried) {
    auto it = watches_.lower_bound(next_id_);
    if (it == watches_.end()) {
      it = watches_.begin();
    }
    // Moves on even if the watch has nothing to send, so each pump() starts at another watch.
    next_id_ = it->first + 1;
    if (send_next(it->first, it->second)) {
      return;
    }
  }
}

bool WatchStream::send_next(WatchId id, Entry& entry) {
  v1::WatchResponse response;
  response.set_watch_id(id);
  do {
    for (const auto& event : entry.watch->take(events_per_message_max)) {
      revision_ = std::max(revision_, event->revision);
      // Checked for each event, so a reload of the users takes effect on open watches.
      if (!principal_ || principal_->access().may(auth::Verb::read, event->item.name.view())) {
        wire::write(*event, entry.previous, *response.add_events());
      }
    }
    // All taken events may be unreadable for this principal. Then the loop takes the next ones: an
    // empty message would look like a heartbeat.
  } while (response.events_size() == 0 && entry.watch->has_events());
  // Requested after the last event was taken, so a slow reader holds at most one part in memory.
  if (entry.watch->is_replaying() && !entry.watch->has_events()) {
    fetch(id, entry);
  }
  if (const auto cut = entry.watch->cancelled_at(); cut && response.events_size() == 0) {
    response.set_cancelled(true);
    response.set_detail("slow reader: events were dropped; resume from resume_revision");
    response.set_resume_revision(cut->get());
    context_.watches.remove(entry.watch);
    watches_.erase(id);
  } else if (response.events_size() == 0) {
    return false;
  }
  context_.write_header(revision_, term_, *response.mutable_header());
  send(std::move(response));
  return true;
}

void WatchStream::fetch(WatchId id, Entry& entry) {
  if (std::exchange(entry.is_fetching, true)) {
    return;
  }
  context_.store.peek([self = self(), id](const Result<View>& view) {
    const auto it = self->watches_.find(id);
    // The id may have been reused after a cancel.
    if (!view || it == self->watches_.end() || !std::exchange(it->second.is_fetching, false)) {
      return;
    }
    self->context_.watches.replay(*it->second.watch, view->state);
    self->pump();
  });
}

void WatchStream::half_closed() {
  // A half-closed client can still receive events, but without a watch none will come.
  if (watches_.empty()) {
    finish({});
  }
}

void WatchStream::on_leadership_lost() {
  // A follower may install a snapshot and skip events, so its watches cannot continue.
  closed();
  fail_stream(leadership_lost());
}

void WatchStream::closed() {
  is_closed_ = true;
  for (const auto& [id, entry] : std::exchange(watches_, {})) {
    context_.watches.remove(entry.watch);
  }
}

}  // namespace tenure::server
