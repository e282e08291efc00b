#include "grpc/channel.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "grpc/fault.hpp"

namespace tenure::grpc {
namespace {

/// What a server may send before it must wait. We always read.
constexpr std::uint32_t client_call_window = 4 * 1024 * 1024;
constexpr std::int32_t client_connection_window = 16 * 1024 * 1024;
constexpr std::size_t message_bytes_max = std::size_t{64} << 20;

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

StatusCode code_from(std::string_view text) {
  unsigned code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  constexpr auto last = static_cast<unsigned>(StatusCode::unauthenticated);
  return error == std::errc{} && code <= last ? static_cast<StatusCode>(code) : StatusCode::unknown;
}

}  // namespace

/// Translates nghttp2's calls into ours. `user` is the Channel.
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
      of(user).ponged();
    }
    return 0;
  }

  static int piece(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t stream,
                   const std::uint8_t* bytes, std::size_t size, void* user) {
    of(user).add_piece(stream, {bytes, size});
    return 0;
  }

  static int stream_closed(nghttp2_session* /*session*/, std::int32_t stream, std::uint32_t error,
                           void* user) {
    of(user).end(stream, error);
    return 0;
  }

  static ssize_t take_out(nghttp2_session* /*session*/, std::int32_t /*stream*/, std::uint8_t* room,
                          std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                          void* /*user*/) {
    return Channel::take_out(*static_cast<Exchange*>(source->ptr), {room, size}, *flags);
  }
};

Exchange::Exchange() : reader_(message_bytes_max) {}

void Exchange::send(const google::protobuf::MessageLite& message) {
  if (channel_ != nullptr && !is_half_closed_) {
    append_framed(message, out_);
    channel_->wants_to_write(*this);
  }
}

void Exchange::half_close() {
  if (channel_ != nullptr && !is_half_closed_) {
    is_half_closed_ = true;
    channel_->wants_to_write(*this);
  }
}

void Exchange::cancel() {
  if (channel_ != nullptr) {
    channel_->cancel(*this);
  }
}

Channel::Channel(boost::asio::io_context& loop, std::unique_ptr<net::Transport> transport,
                 Origin origin, Patience patience)
    : Link(loop.get_executor(), std::move(transport), patience), origin_(std::move(origin)) {}

void Channel::open(Ready ready, Gone gone) {
  ready_ = std::move(ready);
  gone_ = std::move(gone);
  Link::open();
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
  if (const auto tell = std::exchange(ready_, {})) {
    tell();
  }
}

void Channel::closed() {
  const auto exchanges = exchanges_;
  for (const auto& [stream, exchange] : exchanges) {
    end(stream, NGHTTP2_REFUSED_STREAM);
  }
  if (const auto tell = std::exchange(gone_, {})) {
    tell();
  }
}

void Channel::begin(const std::string& path, const std::shared_ptr<Exchange>& exchange) {
  constexpr std::size_t fixed = 6;
  std::array<nghttp2_nv, fixed + lines_max> head{
      header(":method", "POST", constant),
      header(":scheme", origin_.is_tls ? "https" : "http", constant),
      header(":path", path, NGHTTP2_NV_FLAG_NO_COPY_NAME),
      header(":authority", origin_.authority, NGHTTP2_NV_FLAG_NO_COPY_NAME),
      header("content-type", "application/grpc", constant),
      header("te", "trailers", constant)};
  const auto size = fixed + std::min(lines_.size(), lines_max);
  for (std::size_t n = fixed; n < size; ++n) {
    head[n] = header(lines_[n - fixed].name, lines_[n - fixed].value, NGHTTP2_NV_FLAG_NONE);
  }
  nghttp2_data_provider source{.source = {.ptr = exchange.get()},
                               .read_callback = Events::take_out};
  const auto stream =
      nghttp2_submit_request(session(), nullptr, head.data(), size, &source, exchange.get());
  if (stream < 0) {
    exchange->ended({StatusCode::unavailable, nghttp2_strerror(stream)});
    return;
  }
  exchange->channel_ = this;
  exchange->stream_ = stream;
  exchanges_.emplace(stream, exchange);
  flush_soon();
}

Exchange* Channel::find(std::int32_t stream) const {
  const auto it = exchanges_.find(stream);
  return it == exchanges_.end() ? nullptr : it->second.get();
}

void Channel::add_header(std::int32_t stream, std::string_view name, std::string_view value) {
  auto* exchange = find(stream);
  if (exchange == nullptr) {
    return;
  }
  if (name == "grpc-status") {
    auto message = exchange->status_ ? std::move(exchange->status_->message) : std::string();
    exchange->status_ = Status{code_from(value), std::move(message)};
  } else if (name == "grpc-message") {
    exchange->status_ = Status{exchange->status_ ? exchange->status_->code : StatusCode::unknown,
                               percent_decoded(value)};
  } else if (name == ":status" && value != "200") {
    exchange->status_ =
        Status{StatusCode::unavailable, "the server answered HTTP " + std::string(value)};
  } else if (name.starts_with("tenure-") && exchange->trailers_.size() < trailers_max) {
    exchange->trailers_.push_back({std::string(name), std::string(value)});
  }
}

void Channel::add_piece(std::int32_t stream, std::span<const std::uint8_t> piece) {
  const auto it = exchanges_.find(stream);
  if (it == exchanges_.end()) {
    return;
  }
  const auto exchange = it->second;
  exchange->reader_.add(piece);
  while (const auto message = exchange->reader_.next()) {
    exchange->received(*message);
  }
  if (exchange->reader_.fault() != MessageReader::Fault::none) {
    exchange->status_ = Status{StatusCode::internal, "a message that cannot be read"};
    cancel(*exchange);
  }
}

void Channel::end(std::int32_t stream, std::uint32_t error) {
  const auto node = exchanges_.extract(stream);
  if (node.empty()) {
    return;
  }
  const auto& exchange = node.mapped();
  exchange->channel_ = nullptr;
  if (!exchange->status_) {
    exchange->status_ =
        error == NGHTTP2_CANCEL ? Status{StatusCode::cancelled, "called off"} : explain(fault());
  }
  exchange->status_->trailers = std::move(exchange->trailers_);
  exchange->ended(*exchange->status_);
}

void Channel::wants_to_write(Exchange& exchange) {
  if (!is_closed()) {
    nghttp2_session_resume_data(session(), exchange.stream_);
    flush_soon();
  }
}

void Channel::cancel(Exchange& exchange) {
  if (!is_closed()) {
    nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, exchange.stream_, NGHTTP2_CANCEL);
    flush_soon();
  }
}

std::ptrdiff_t Channel::take_out(Exchange& exchange, std::span<std::uint8_t> room,
                                 std::uint32_t& flags) {
  const auto size = std::min(room.size(), exchange.out_.size() - exchange.sent_);
  if (size == 0 && !exchange.is_half_closed_) {
    return NGHTTP2_ERR_DEFERRED;
  }
  std::memcpy(room.data(), exchange.out_.data() + exchange.sent_, size);
  exchange.sent_ += size;
  if (exchange.sent_ == exchange.out_.size()) {
    exchange.out_.clear();
    exchange.sent_ = 0;
    if (exchange.is_half_closed_) {
      flags |= static_cast<std::uint32_t>(NGHTTP2_DATA_FLAG_EOF);
    }
  }
  return static_cast<std::ptrdiff_t>(size);
}

}  // namespace tenure::grpc
