#include "grpc/channel.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "grpc/transport_status.hpp"

namespace tenure::grpc {
namespace {

/// Flow-control windows. Large, because the client always reads.
constexpr std::uint32_t client_call_window = 4 * 1024 * 1024;
constexpr std::int32_t client_connection_window = 16 * 1024 * 1024;
/// Maximum size of a reply; above every limit of the server, so it only detects garbage.
constexpr std::size_t message_bytes_max = std::size_t{64} << 20;

/// Inverse of percent_encoded(). Keeps invalid escapes as they are, as the gRPC specification asks.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const auto digits = text.substr(at + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (text[at] == '%' && error == std::errc{} && end == digits.data() + 2) {
      decoded += static_cast<char>(byte);
      at += 2;
    } else {
      decoded += text[at];
    }
  }
  return decoded;
}

/// `unknown` for a number that gRPC does not define.
StatusCode code_from(std::string_view text) {
  unsigned code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  constexpr auto last = static_cast<unsigned>(StatusCode::unauthenticated);
  return error == std::errc{} && code <= last ? static_cast<StatusCode>(code) : StatusCode::unknown;
}

}  // namespace

/// nghttp2 callbacks; `user` is the Channel.
struct Channel::Events {
  static Channel& of(void* user) { return *static_cast<Channel*>(user); }

  static int one_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                        const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                        std::size_t value_size, std::uint8_t /*flags*/, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS) {
      of(user).add_header(frame->hd.stream_id, {reinterpret_cast<const char*>(name), name_size},
                          {reinterpret_cast<const char*>(value), value_size});
    }
    return 0;
  }

  static int frame_received(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
      of(user).on_pong();
    }
    return 0;
  }

  static int piece(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t stream,
                   const std::uint8_t* bytes, std::size_t size, void* user) {
    of(user).on_data(stream, {bytes, size});
    return 0;
  }

  static int stream_closed(nghttp2_session* /*session*/, std::int32_t stream, std::uint32_t error,
                           void* user) {
    of(user).end(stream, error);
    return 0;
  }

  static ssize_t read_pending(nghttp2_session* /*session*/, std::int32_t /*stream*/,
                              std::uint8_t* room, std::size_t size, std::uint32_t* flags,
                              nghttp2_data_source* source, void* /*user*/) {
    return Channel::read_pending(*static_cast<ClientCall*>(source->ptr), {room, size}, *flags);
  }
};

ClientCall::ClientCall() : reader_(message_bytes_max) {}

void ClientCall::send(const google::protobuf::MessageLite& message) {
  if (channel_ != nullptr && !is_half_closed_) {
    append_framed(message, out_);
    channel_->schedule_write(*this);
  }
}

void ClientCall::half_close() {
  if (channel_ != nullptr && !is_half_closed_) {
    is_half_closed_ = true;
    channel_->schedule_write(*this);
  }
}

void ClientCall::cancel() {
  if (channel_ != nullptr) {
    channel_->cancel(*this);
  }
}

Channel::Channel(boost::asio::io_context& loop, std::unique_ptr<net::Transport> transport,
                 Origin origin, KeepAlive keep_alive)
    : Http2Connection(loop.get_executor(), std::move(transport), keep_alive),
      origin_(std::move(origin)) {}

void Channel::open(OnReady on_ready, OnClosed on_closed) {
  on_ready_ = std::move(on_ready);
  on_closed_ = std::move(on_closed);
  Http2Connection::open();
}

void Channel::start_session() {
  nghttp2_session_callbacks* events = nullptr;
  nghttp2_session_callbacks_new(&events);
  nghttp2_session_callbacks_set_on_header_callback(events, Events::one_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(events, Events::frame_received);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(events, Events::piece);
  nghttp2_session_callbacks_set_on_stream_close_callback(events, Events::stream_closed);
  nghttp2_option* options = nullptr;
  nghttp2_option_new(&options);
  make_session(Side::client, events, options, this);
  const std::array<nghttp2_settings_entry, 2> settings{{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, client_call_window},
  }};
  nghttp2_submit_settings(session(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session(), NGHTTP2_FLAG_NONE, 0, client_connection_window);
  if (const auto notify = std::exchange(on_ready_, {})) {
    notify();
  }
}

void Channel::closed() {
  // A copy: ended() may start or cancel calls.
  const auto exchanges = calls_;
  for (const auto& [stream, call] : exchanges) {
    end(stream, NGHTTP2_REFUSED_STREAM);
  }
  if (const auto notify = std::exchange(on_closed_, {})) {
    notify();
  }
}

void Channel::begin(const std::string& path, const std::shared_ptr<ClientCall>& call) {
  constexpr std::size_t fixed = 6;
  std::array<nghttp2_nv, fixed + metadata_fields_max> head{
      header(":method", "POST", constant),
      header(":scheme", origin_.is_tls ? "https" : "http", constant),
      header(":path", path, NGHTTP2_NV_FLAG_NO_COPY_NAME),
      header(":authority", origin_.authority, NGHTTP2_NV_FLAG_NO_COPY_NAME),
      header("content-type", "application/grpc", constant),
      header("te", "trailers", constant)};
  const auto size = fixed + std::min(metadata_.size(), metadata_fields_max);
  for (std::size_t n = fixed; n < size; ++n) {
    head[n] = header(metadata_[n - fixed].name, metadata_[n - fixed].value, NGHTTP2_NV_FLAG_NONE);
  }
  nghttp2_data_provider source{.source = {.ptr = call.get()},
                               .read_callback = Events::read_pending};
  const auto stream =
      nghttp2_submit_request(session(), nullptr, head.data(), size, &source, call.get());
  // For example: the stream ids of the connection are exhausted.
  if (stream < 0) {
    call->ended({StatusCode::unavailable, nghttp2_strerror(stream)});
    return;
  }
  call->channel_ = this;
  call->stream_ = stream;
  calls_.emplace(stream, call);
  flush_soon();
}

ClientCall* Channel::find(std::int32_t stream) const {
  const auto it = calls_.find(stream);
  return it == calls_.end() ? nullptr : it->second.get();
}

void Channel::add_header(std::int32_t stream, std::string_view name, std::string_view value) {
  auto* call = find(stream);
  if (call == nullptr) {
    return;
  }
  if (name == "grpc-status") {
    // Code and message are separate fields that may arrive in either order.
    auto message = call->status_ ? std::move(call->status_->message) : std::string();
    call->status_ = Status{code_from(value), std::move(message)};
  } else if (name == "grpc-message") {
    call->status_ =
        Status{call->status_ ? call->status_->code : StatusCode::unknown, percent_decoded(value)};
  } else if (name == ":status" && value != "200") {
    call->status_ = Status{StatusCode::unavailable,
                           "the server replied with HTTP status " + std::string(value)};
  } else if (name.starts_with("tenure-") && call->trailers_.size() < trailers_max) {
    call->trailers_.push_back({std::string(name), std::string(value)});
  }
}

void Channel::on_data(std::int32_t stream, std::span<const std::uint8_t> piece) {
  const auto it = calls_.find(stream);
  if (it == calls_.end()) {
    return;
  }
  // Shared ownership: received() may cancel the call.
  const auto call = it->second;
  call->reader_.add(piece);
  while (const auto message = call->reader_.next()) {
    call->received(*message);
  }
  if (call->reader_.error() != MessageReader::Error::none) {
    call->status_ = Status{StatusCode::internal, "unreadable message"};
    cancel(*call);
  }
}

void Channel::end(std::int32_t stream, std::uint32_t error) {
  const auto node = calls_.extract(stream);
  if (node.empty()) {
    return;
  }
  const auto& call = node.mapped();
  // Before ended(), so that the callback cannot send on a stream that no longer exists.
  call->channel_ = nullptr;
  if (!call->status_) {
    call->status_ = error == NGHTTP2_CANCEL ? Status{StatusCode::cancelled, "cancelled"}
                                            : status_from(close_error());
  }
  call->status_->trailers = std::move(call->trailers_);
  call->ended(*call->status_);
}

void Channel::schedule_write(ClientCall& call) {
  if (!is_closed()) {
    // The stream was deferred when its output was empty; see read_pending().
    nghttp2_session_resume_data(session(), call.stream_);
    flush_soon();
  }
}

void Channel::cancel(ClientCall& call) {
  if (!is_closed()) {
    nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, call.stream_, NGHTTP2_CANCEL);
    flush_soon();
  }
}

std::ptrdiff_t Channel::read_pending(ClientCall& call, std::span<std::uint8_t> room,
                                     std::uint32_t& flags) {
  const auto size = std::min(room.size(), call.out_.size() - call.sent_);
  // nghttp2 asks again after nghttp2_session_resume_data().
  if (size == 0 && !call.is_half_closed_) {
    return NGHTTP2_ERR_DEFERRED;
  }
  std::memcpy(room.data(), call.out_.data() + call.sent_, size);
  call.sent_ += size;
  if (call.sent_ == call.out_.size()) {
    call.out_.clear();
    call.sent_ = 0;
    if (call.is_half_closed_) {
      flags |= static_cast<std::uint32_t>(NGHTTP2_DATA_FLAG_EOF);
    }
  }
  return static_cast<std::ptrdiff_t>(size);
}

}  // namespace tenure::grpc
