#include "grpc/connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ranges>
#include <utility>

namespace tenure::grpc {
namespace {

/// Flow-control windows per call and per connection.
constexpr std::uint32_t call_window = 256 * 1024;
constexpr std::int32_t connection_window = 4 * 1024 * 1024;
/// Advertised limit of the header list; room for a bearer token and a trace context.
constexpr std::uint32_t header_bytes_max = 16 * 1024;
/// Stream reset limit: burst and rate per second; beyond it the connection is closed. A reset costs
/// the client nothing and the server a whole call (HTTP/2 rapid reset, CVE-2023-44487).
constexpr std::uint64_t resets_burst = 1000;
constexpr std::uint64_t resets_per_second = 100;
/// Memory charged per call besides its messages: its objects here and in nghttp2.
constexpr std::size_t call_bytes = 1024;
/// Outbound frames that pause reading. nghttp2 has no limit of its own, and one read can add up to
/// a thousand (for example PING replies).
constexpr std::size_t outbound_frames_max = 1024;
/// Buffer capacity that an idle call may keep; empty buffers are not charged.
constexpr std::size_t idle_bytes = 16 * 1024;
/// Length of an unknown path repeated in the error.
constexpr std::size_t path_bytes_max = 128;

std::string_view number_of(StatusCode code) {
  static constexpr std::array<std::string_view, 17> numbers{
      "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"};
  return numbers[static_cast<std::size_t>(code)];
}

}  // namespace

/// nghttp2 callbacks; `user` is the Connection.
struct Connection::Events {
  static Connection& of(void* user) { return *static_cast<Connection*>(user); }

  static int begin_headers(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      // nghttp2 delivers the header blocks of a connection one after the other, so one Head
      // suffices.
      of(user).head_ = {};
    }
    return 0;
  }

  static int one_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                        const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                        std::size_t value_size, std::uint8_t /*flags*/, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
      return 0;
    }
    const std::string_view what(reinterpret_cast<const char*>(name), name_size);
    auto& head = of(user).head_;
    auto* wanted = what == ":path"           ? &head.path
                   : what == ":method"       ? &head.method
                   : what == "content-type"  ? &head.content_type
                   : what == "authorization" ? &head.authorization
                                             : nullptr;
    if (wanted != nullptr) {
      wanted->assign(reinterpret_cast<const char*>(value), value_size);
    }
    return 0;
  }

  static int frame_received(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    auto& connection = of(user);
    const auto stream = frame->hd.stream_id;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
          connection.begin_call(stream);
        }
        [[fallthrough]];
      case NGHTTP2_DATA:
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          connection.half_close(stream);
        }
        break;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
          connection.on_pong();
        }
        break;
      default: break;
    }
    return 0;
  }

  static int piece(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t stream,
                   const std::uint8_t* bytes, std::size_t size, void* user) {
    of(user).on_data(stream, {bytes, size});
    return 0;
  }

  static int stream_closed(nghttp2_session* /*session*/, std::int32_t stream,
                           std::uint32_t /*error*/, void* user) {
    of(user).end_call(stream);
    return 0;
  }

  static int frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* /*user*/) {
    // The reply is complete while the client still sends: reset the stream.
    const auto is_end =
        frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (is_end && nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static ssize_t read_pending(nghttp2_session* /*session*/, std::int32_t /*stream*/,
                              std::uint8_t* room, std::size_t size, std::uint32_t* flags,
                              nghttp2_data_source* source, void* user) {
    return of(user).read_pending(*static_cast<Call*>(source->ptr), {room, size}, *flags);
  }
};

Connection::Connection(ServerContext& context, std::unique_ptr<net::Transport> transport,
                       std::string peer)
    : Http2Connection(context.work, std::move(transport), context.keep_alive),
      context_(context),
      peer_(std::move(peer)) {}

// Lifecycle

void Connection::open(OnClosed on_closed) {
  on_closed_ = std::move(on_closed);
  context_.connections.insert(this);
  Http2Connection::open();
}

void Connection::start_session() {
  // The handshake is complete, so another client may start one.
  shares_.handshake.release();
  nghttp2_session_callbacks* events = nullptr;
  nghttp2_session_callbacks_new(&events);
  nghttp2_session_callbacks_set_on_begin_headers_callback(events, Events::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(events, Events::one_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(events, Events::frame_received);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(events, Events::piece);
  nghttp2_session_callbacks_set_on_stream_close_callback(events, Events::stream_closed);
  nghttp2_session_callbacks_set_on_frame_send_callback(events, Events::frame_sent);
  nghttp2_option* options = nullptr;
  nghttp2_option_new(&options);
  // The window is returned when messages are delivered, not when bytes arrive: backpressure.
  nghttp2_option_set_no_auto_window_update(options, 1);
  // Closed streams are kept only for priorities, which the server ignores.
  nghttp2_option_set_no_closed_streams(options, 1);
  nghttp2_option_set_stream_reset_rate_limit(options, resets_burst, resets_per_second);
  make_session(Side::server, events, options, this);
  const std::array<nghttp2_settings_entry, 3> settings{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
       static_cast<std::uint32_t>(context_.calls_per_connection_max)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, call_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, header_bytes_max},
  }};
  nghttp2_submit_settings(session(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session(), NGHTTP2_FLAG_NONE, 0, connection_window);
}

void Connection::drain() {
  if (!is_open()) {
    close();
    return;
  }
  is_draining_ = true;
  const auto calls = calls_;
  for (const auto& [stream, call] : calls) {
    call->finish({StatusCode::unavailable, "the server is stopping"});
  }
  // GOAWAY makes clients open a new connection; streams up to the last id are still answered.
  nghttp2_submit_goaway(session(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  flush_soon();
}

void Connection::closed() {
  shares_ = {};
  context_.connections.erase(this);
  // A copy: end_call() removes each call.
  const auto calls = calls_;
  for (const auto& [stream, call] : calls) {
    end_call(stream);
  }
  refused_.clear();
  recount(refused_bytes_, 0);
  if (on_closed_) {
    std::exchange(on_closed_, {})(std::static_pointer_cast<Connection>(shared_from_this()));
  }
}

void Connection::wrote() {
  for (const auto& call : std::exchange(drained_, {})) {
    // An earlier callback may have ended this call or given it output.
    if (call->connection_ != nullptr && !call->has_queued()) {
      call->drained();
      call->deliver_messages();
    }
  }
}

// Calls

Call* Connection::call_of(std::int32_t stream) const {
  return static_cast<Call*>(nghttp2_session_get_stream_user_data(session(), stream));
}

void Connection::begin_call(std::int32_t stream) {
  if (head_.method != "POST") {
    refuse_http(stream, "405");
    return;
  }
  if (!head_.content_type.starts_with("application/grpc")) {
    refuse_http(stream, "415");
    return;
  }
  const auto* route = context_.router.find(head_.path);
  if (route == nullptr) {
    context_.refused(StatusCode::unimplemented);
    refuse(stream,
           {StatusCode::unimplemented, "unknown method " + head_.path.substr(0, path_bytes_max)});
    return;
  }
  if (is_draining_) {
    refuse(stream, {StatusCode::unavailable, "the server is stopping"});
    return;
  }
  if (route->authentication == Router::Authentication::none &&
      open_calls_ >= context_.open_calls_max) {
    context_.limited("open_calls");
    refuse(stream,
           {StatusCode::resource_exhausted, "too many unauthenticated calls on one connection"});
    return;
  }
  accept_call(stream, *route);
}

void Connection::accept_call(std::int32_t stream, const Router::Route& route) {
  const auto bytes_max =
      route.message_bytes_max == 0 ? context_.message_bytes_max : route.message_bytes_max;
  const auto call = route.open({.connection = *this,
                                .stream = stream,
                                .authorization = head_.authorization,
                                .message_bytes_max = bytes_max});
  call->on_ended_ = &route.ended;
  if (route.authentication == Router::Authentication::none) {
    call->is_open_ = true;
    ++open_calls_;
  }
  nghttp2_session_set_stream_user_data(session(), stream, call.get());
  calls_.emplace(stream, call);
  if (route.request == Router::Request::unary) {
    arriving_.emplace(stream, Clock::now() + context_.request_time);
  }
  count(*call);
}

void Connection::expire_requests(Clock::time_point now) {
  while (!arriving_.empty() && arriving_.begin()->second <= now) {
    auto* call = call_of(arriving_.begin()->first);
    arriving_.erase(arriving_.begin());
    if (call != nullptr) {
      call->finish({StatusCode::deadline_exceeded, "the request did not arrive in time"});
    }
  }
}

void Connection::on_data(std::int32_t stream, std::span<const std::uint8_t> piece) {
  // The connection window is returned at once, so that one paused call does not block the others;
  // the window of the stream limits that call.
  nghttp2_session_consume_connection(session(), piece.size());
  auto* call = call_of(stream);
  if (call == nullptr || call->status_) {
    nghttp2_session_consume_stream(session(), stream, piece.size());
    return;
  }
  call->reader_.add(piece);
  call->unacknowledged_bytes_ += piece.size();
  call->deliver_messages();
}

void Connection::on_delivered(Call& call) {
  count(call);
  const auto waiting = call.reader_.waiting();
  if (call.unacknowledged_bytes_ > waiting) {
    nghttp2_session_consume_stream(session(), call.stream_, call.unacknowledged_bytes_ - waiting);
    call.unacknowledged_bytes_ = waiting;
    flush_soon();
  }
}

void Connection::half_close(std::int32_t stream) {
  arriving_.erase(stream);
  if (auto* call = call_of(stream); call != nullptr) {
    call->is_half_closed_ = true;
    call->deliver_messages();
  }
}

void Connection::end_call(std::int32_t stream) {
  arriving_.erase(stream);
  if (refused_.erase(stream) > 0) {
    recount(refused_bytes_, refused_.size() * call_bytes);
  }
  const auto node = calls_.extract(stream);
  if (node.empty()) {
    return;
  }
  const auto& call = node.mapped();
  open_calls_ -= call->is_open_ ? 1 : 0;
  call->reader_.clear();
  call->out_.clear();
  call->sent_ = 0;
  recount(call->accounted_bytes_, 0);
  // Before the callbacks: what they send is discarded.
  call->connection_ = nullptr;
  if (call->on_ended_ != nullptr && *call->on_ended_) {
    (*call->on_ended_)(call->status_ ? call->status_->code : StatusCode::cancelled);
  }
  call->closed();
}

void Connection::count(Call& call) {
  recount(call.accounted_bytes_,
          call_bytes + call.reader_.waiting() + call.out_.size() - call.sent_);
}

void Connection::recount(std::size_t& counted, std::size_t bytes) {
  const bool grows = bytes > counted;
  // A single response may exceed the limit; anything beyond it closes the connection.
  const bool is_full = buffered_ > context_.connection_bytes_max;
  const bool are_all_full = context_.buffered > context_.memory_bytes_max;
  buffered_ += bytes - counted;
  if (!is_overfull_) {
    context_.buffered += bytes - counted;
  }
  counted = bytes;
  if (!grows || is_overfull_) {
    return;
  }
  if (is_full) {
    shed();
  } else if (are_all_full) {
    context_.shed();
  }
}

void Connection::shed() {
  context_.limited("buffered_bytes");
  // Excluded at once, so that one overload closes one connection and not several.
  context_.buffered -= buffered_;
  is_overfull_ = true;
  flush_soon();
}

void ServerContext::shed() {
  Connection* largest = nullptr;
  for (auto* connection : connections) {
    if (!connection->is_shed() &&
        (largest == nullptr || connection->buffered() > largest->buffered())) {
      largest = connection;
    }
  }
  if (largest != nullptr) {
    largest->shed();
  }
}

bool Connection::may_read() const {
  return nghttp2_session_get_outbound_queue_size(session()) <= outbound_frames_max;
}

// Responses

void Connection::schedule_write(Call& call) {
  count(call);
  if (is_closed()) {
    return;
  }
  if (call.has_headers_) {
    nghttp2_session_resume_data(session(), call.stream_);
  } else if (call.has_queued()) {
    begin_response(call);
  } else {
    submit_end(call, true);
  }
  flush_soon();
}

void Connection::begin_response(Call& call) {
  call.has_headers_ = true;
  const std::array<nghttp2_nv, 2> head{header(":status", "200", constant),
                                       header("content-type", "application/grpc", constant)};
  nghttp2_data_provider source{.source = {.ptr = &call}, .read_callback = Events::read_pending};
  nghttp2_submit_response(session(), call.stream_, head.data(), head.size(), &source);
}

void Connection::submit_end(Call& call, bool with_head) {
  call.has_headers_ = true;
  const auto message = percent_encoded(call.status_->message);
  std::array<nghttp2_nv, 4 + trailers_max> lines;
  std::size_t count = 0;
  if (with_head) {
    lines[count++] = header(":status", "200", constant);
    lines[count++] = header("content-type", "application/grpc", constant);
  }
  lines[count++] = header("grpc-status", number_of(call.status_->code), constant);
  if (!message.empty()) {
    lines[count++] = header("grpc-message", message, NGHTTP2_NV_FLAG_NO_COPY_NAME);
  }
  for (const auto& trailer : call.status_->trailers | std::views::take(trailers_max)) {
    lines[count++] = header(trailer.name, trailer.value, NGHTTP2_NV_FLAG_NONE);
  }
  if (with_head) {
    nghttp2_submit_response(session(), call.stream_, lines.data(), count, nullptr);
  } else {
    nghttp2_submit_trailer(session(), call.stream_, lines.data(), count);
  }
}

bool Connection::note_refusal(std::int32_t stream) {
  if (refused_.size() >= context_.open_calls_max) {
    context_.limited("refusals");
    nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, stream, NGHTTP2_ENHANCE_YOUR_CALM);
    return false;
  }
  refused_.insert(stream);
  recount(refused_bytes_, refused_.size() * call_bytes);
  return true;
}

void Connection::refuse(std::int32_t stream, const Status& status) {
  if (!note_refusal(stream)) {
    return;
  }
  const auto message = percent_encoded(status.message);
  const std::array<nghttp2_nv, 4> lines{
      header(":status", "200", constant), header("content-type", "application/grpc", constant),
      header("grpc-status", number_of(status.code), constant),
      header("grpc-message", message, NGHTTP2_NV_FLAG_NO_COPY_NAME)};
  nghttp2_submit_response(session(), stream, lines.data(), lines.size(), nullptr);
}

void Connection::refuse_http(std::int32_t stream, const char* http_status) {
  if (!note_refusal(stream)) {
    return;
  }
  const auto line = header(":status", http_status, constant);
  nghttp2_submit_response(session(), stream, &line, 1, nullptr);
}

std::ptrdiff_t Connection::read_pending(Call& call, std::span<std::uint8_t> room,
                                        std::uint32_t& flags) {
  const auto size = std::min(room.size(), call.out_.size() - call.sent_);
  if (size == 0 && !call.status_) {
    return NGHTTP2_ERR_DEFERRED;
  }
  std::memcpy(room.data(), call.out_.data() + call.sent_, size);
  call.sent_ += size;
  if (!call.has_queued()) {
    call.out_.clear();
    call.sent_ = 0;
    if (call.out_.capacity() > idle_bytes) {
      std::string().swap(call.out_);
    }
    if (call.status_) {
      // The end of the data is not the end of the stream: the trailers follow.
      flags |= static_cast<std::uint32_t>(NGHTTP2_DATA_FLAG_EOF) |
               static_cast<std::uint32_t>(NGHTTP2_DATA_FLAG_NO_END_STREAM);
      submit_end(call, false);
    } else {
      drained_.push_back(call.shared_from_this());
    }
  }
  count(call);
  return static_cast<std::ptrdiff_t>(size);
}

}  // namespace tenure::grpc
