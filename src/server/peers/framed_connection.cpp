#include "server/peers/framed_connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "net/connection_error.hpp"

namespace tenure::server::peers {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The reasons that OpenSSL reports when the first bytes are plain text or another TLS version.
bool is_not_tls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_BAD_RECORD_TYPE;
}

}  // namespace

FramedConnection::FramedConnection(std::unique_ptr<net::Transport> transport, FrameLimits limits)
    : transport_(std::move(transport)), reader_(limits) {}

void FramedConnection::open(Events events) {
  events_ = std::move(events);
  transport_->handshake([self = shared_from_this()](const error_code& error) {
    if (self->is_closed_) {
      return;
    }
    if (error) {
      self->fail_with(explain(error));
      return;
    }
    self->read();
    self->events_.ready();
  });
}

void FramedConnection::read() {
  transport_->read(
      [self = shared_from_this()](const error_code& error, std::span<const std::uint8_t> bytes) {
        if (self->is_closed_) {
          return;
        }
        if (error) {
          self->fail_with(explain(error));
          return;
        }
        self->received(bytes);
      });
}

void FramedConnection::received(std::span<const std::uint8_t> bytes) {
  bytes_read_ += bytes.size();
  // A callback may close the connection, so every frame and the code behind the loop check it.
  const auto fed = reader_.feed({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                [this](const ReceivedFrame& frame) {
                                  events_.received(frame);
                                  return !is_closed_;
                                });
  if (is_closed_) {
    return;
  }
  if (!fed) {
    fail_with(fed.error().detail);
    return;
  }
  read();
}

void FramedConnection::write(std::vector<Frame> frames) {
  if (is_closed_ || frames.empty()) {
    return;
  }
  writing_ = std::move(frames);
  std::vector<asio::const_buffer> parts;
  for (const auto& frame : writing_) {
    parts.emplace_back(asio::buffer(frame.head));
    bytes_written_ += frame.bytes();
    for (const auto& body : frame.bodies) {
      if (!body.bytes.empty()) {
        parts.emplace_back(asio::buffer(body.bytes));
      }
    }
  }
  // `writing_` keeps the bytes alive until the write is complete.
  transport_->write(std::move(parts), [self = shared_from_this()](const error_code& error) {
    self->writing_.clear();
    if (self->is_closed_) {
      return;
    }
    if (error) {
      self->fail_with(explain(error));
      return;
    }
    self->events_.written();
  });
}

void FramedConnection::close() {
  if (!std::exchange(is_closed_, true)) {
    transport_->close();
  }
}

void FramedConnection::fail_with(const std::string& why) {
  close();
  events_.failed(why);
}

void set_up(asio::ip::tcp::socket& socket, std::chrono::milliseconds silence) {
  error_code ignored;
  // Each write is a whole batch already, so Nagle's algorithm would only delay it.
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  // TCP_USER_TIMEOUT covers unacknowledged data, the keep-alives cover an idle connection.
  set(TCP_USER_TIMEOUT, static_cast<int>(silence.count()));
  const auto seconds =
      std::max(1, static_cast<int>(std::chrono::ceil<std::chrono::seconds>(silence).count()));
  // Probes start after `seconds` of silence and repeat every second.
  set(TCP_KEEPIDLE, seconds);
  set(TCP_KEEPINTVL, 1);
  set(TCP_KEEPCNT, seconds);
}

std::string explain(const error_code& error) {
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return "connection closed by the peer";
  }
  if (error.category() == net::certificate_category()) {
    return "certificate of the peer rejected (" + error.message() +
           "); it must be signed by peer_tls.ca";
  }
  if (error.category() != asio::error::get_ssl_category()) {
    return error.message();
  }
  const auto reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  if (is_not_tls(reason)) {
    return "the peer does not use TLS 1.3 (" + error.message() + ")";
  }
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    return "the peer presented no certificate";
  }
  if (reason >= SSL_AD_REASON_OFFSET) {
    return "the peer rejected the certificate of this member (" + error.message() +
           "); peer_tls.cert may belong to another cluster";
  }
  return error.message();
}

}  // namespace tenure::server::peers
