#include "grpc/http2_connection.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

namespace tenure::grpc {
namespace {

/// Maximum bytes per write.
constexpr std::size_t write_bytes = 256 * 1024;
/// Write buffer capacity that an idle connection may keep.
constexpr std::size_t idle_write_bytes = 16 * 1024;

}  // namespace

nghttp2_nv header(std::string_view name, std::string_view value, std::uint8_t flags) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT
  };
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

Http2Connection::Http2Connection(boost::asio::any_io_executor executor,
                                 std::unique_ptr<net::Transport> transport, KeepAlive keep_alive)
    : executor_(std::move(executor)),
      transport_(std::move(transport)),
      keep_alive_(keep_alive),
      last_received_(Clock::now()) {}

void Http2Connection::open() {
  transport_->handshake([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->is_closed_) {
      self->close_error_ = error;
      self->close();
      return;
    }
    self->is_handshake_done_ = true;
    self->start_session();
    self->flush_soon();
    self->resume_reading();
  });
}

void Http2Connection::make_session(Side side, nghttp2_session_callbacks* events,
                                   nghttp2_option* options, void* user) {
  nghttp2_session* session = nullptr;
  if (side == Side::server) {
    nghttp2_session_server_new2(&session, events, user, options);
  } else {
    nghttp2_session_client_new2(&session, events, user, options);
  }
  session_.reset(session);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(events);
}

void Http2Connection::check(Clock::time_point now, const KeepAlive& keep_alive) {
  if (!is_handshake_done_ || is_done()) {
    // The handshake and the final flush get the same time as a silent peer.
    if (now - last_received_ > keep_alive.ping_interval + keep_alive.ping_timeout) {
      close();
    }
    return;
  }
  if (is_ping_outstanding_) {
    // Any received byte proves that the peer lives, also while its answer to the ping is behind
    // them.
    if (now - std::max(last_ping_, last_received_) > keep_alive.ping_timeout) {
      close();
    }
    return;
  }
  if (now - last_received_ >= keep_alive.ping_interval) {
    is_ping_outstanding_ = true;
    last_ping_ = now;
    nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
    flush_soon();
  }
}

void Http2Connection::close() {
  if (std::exchange(is_closed_, true)) {
    return;
  }
  // closed() may release the last reference of the owner.
  const auto self = shared_from_this();
  transport_->close();
  closed();
}

void Http2Connection::resume_reading() {
  if (!is_handshake_done_ || is_closed_ || has_protocol_error_ || is_reading_ || !may_read()) {
    return;
  }
  is_reading_ = true;
  transport_->read([self = shared_from_this()](const boost::system::error_code& error,
                                               std::span<const std::uint8_t> bytes) {
    self->is_reading_ = false;
    if (self->is_closed_) {
      return;
    }
    if (error) {
      self->close_error_ = error;
      self->close();
      return;
    }
    self->arrived(bytes);
  });
}

void Http2Connection::arrived(std::span<const std::uint8_t> bytes) {
  last_received_ = Clock::now();
  const auto used = nghttp2_session_mem_recv(session_.get(), bytes.data(), bytes.size());
  flush_soon();
  if (used < 0) {
    // Not HTTP/2, or a flood. The GOAWAY that nghttp2 has queued is written first.
    has_protocol_error_ = true;
    close_error_ = make_error_code(boost::system::errc::protocol_error);
    return;
  }
  resume_reading();
}

void Http2Connection::flush_soon() {
  if (!std::exchange(is_flush_due_, true)) {
    boost::asio::post(executor_, [self = shared_from_this()] {
      self->is_flush_due_ = false;
      self->flush();
      self->resume_reading();
    });
  }
}

void Http2Connection::flush() {
  if (is_overfull()) {
    close();
  }
  // A pending write calls flush() again when it ends.
  if (is_closed_ || is_writing_ || !session_) {
    return;
  }
  out_.clear();
  while (out_.size() < write_bytes) {
    const std::uint8_t* bytes = nullptr;
    const auto size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size <= 0) {
      break;
    }
    out_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  if (out_.empty()) {
    if (out_.capacity() > idle_write_bytes) {
      std::string().swap(out_);
    }
    const bool is_over = nghttp2_session_want_read(session_.get()) == 0 &&
                         nghttp2_session_want_write(session_.get()) == 0;
    if (is_over || has_protocol_error_ || is_done()) {
      close();
    }
    return;
  }
  is_writing_ = true;
  transport_->write(out_, [self = shared_from_this()](const boost::system::error_code& error) {
    if (error && !self->has_protocol_error_) {
      // The pending read fails too and delivers what the peer sent last, for example an alert.
      return;
    }
    self->is_writing_ = false;
    error ? self->close() : self->flush();
    self->resume_reading();
  });
  // Last: it may submit more output, which the end of this write sends.
  wrote();
}

}  // namespace tenure::grpc
