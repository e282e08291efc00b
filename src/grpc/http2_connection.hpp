#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <nghttp2/nghttp2.h>

#include "net/transport.hpp"

namespace tenure::grpc {

/// HTTP/2 connection, base of the server and the client side: moves bytes between a transport and
/// nghttp2, batches writes, and detects a dead peer by pings. Loop thread only.
///
/// Life: open() → TLS handshake → start_session() → closed(). Pending operations of the transport
/// hold a shared_ptr. Derived classes submit frames to session() and call flush_soon().
///
/// Batching: all frames submitted in one iteration of the loop leave in one write, which saves
/// system calls and TLS records when many calls end at the same time.
class Http2Connection : public std::enable_shared_from_this<Http2Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  /// Times of the check for a dead peer; see check().
  struct KeepAlive {
    /// Silence after which a ping is sent.
    std::chrono::milliseconds ping_interval{10'000};
    /// A peer that does not answer a ping within this time is considered dead, even without a FIN.
    std::chrono::milliseconds ping_timeout{5'000};
  };

  /// `executor` runs one handler at a time.
  Http2Connection(boost::asio::any_io_executor executor, std::unique_ptr<net::Transport> transport,
                  KeepAlive keep_alive);
  virtual ~Http2Connection() = default;
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  /// Sends a ping after silence, and closes if the last one was not answered.
  void check(Clock::time_point now) { check(now, keep_alive_); }
  /// The same with other intervals.
  void check(Clock::time_point now, const KeepAlive& keep_alive);
  /// Closes the transport and calls closed(). Idempotent.
  void close();
  /// Reason of the close, if the transport or a protocol error gave one.
  [[nodiscard]] const boost::system::error_code& close_error() const noexcept {
    return close_error_;
  }
  /// TLS session; null: plain text.
  [[nodiscard]] SSL* tls() noexcept { return transport_->tls(); }

 protected:
  enum class Side : std::uint8_t { server, client };

  /// Performs the TLS handshake, then calls start_session() and reads.
  void open();
  /// Called once, when bytes can be exchanged. Must call make_session().
  virtual void start_session() = 0;
  /// Called once, after the close.
  virtual void closed() = 0;
  /// Called after bytes were passed to the transport.
  virtual void wrote() {}
  /// Whether the connection may close once everything is written.
  [[nodiscard]] virtual bool is_done() const { return false; }
  /// Whether the connection must close now.
  [[nodiscard]] virtual bool is_overfull() const { return false; }
  /// Backpressure: while false, the transport is not read, and TCP flow control stops the peer.
  /// Evaluated again after each write.
  [[nodiscard]] virtual bool may_read() const { return true; }

  /// Creates the nghttp2 session; takes ownership of callbacks and options. REQUIRES: called once,
  /// in start_session().
  void make_session(Side side, nghttp2_session_callbacks* events, nghttp2_option* options,
                    void* user);
  [[nodiscard]] nghttp2_session* session() const noexcept { return session_.get(); }
  /// Flushes at the end of the current loop iteration, so that everything submitted until then is
  /// written together.
  void flush_soon();
  /// Records the answer to a ping.
  void on_pong() noexcept { is_ping_outstanding_ = false; }
  [[nodiscard]] bool is_open() const noexcept { return is_handshake_done_ && !is_closed_; }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  struct SessionDeleter {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  /// Starts the next read, unless one is pending or reading is paused.
  void resume_reading();
  /// Passes received bytes to nghttp2, which runs the callbacks of the derived class.
  void arrived(std::span<const std::uint8_t> bytes);
  /// Writes what nghttp2 has queued, unless a write is pending; closes if nothing is left to do.
  void flush();

  boost::asio::any_io_executor executor_;
  std::unique_ptr<net::Transport> transport_;
  KeepAlive keep_alive_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  std::string out_;                  ///< Bytes of the pending write.
  Clock::time_point last_received_;  ///< Time of the last received bytes.
  Clock::time_point last_ping_;      ///< Time of the last ping.
  boost::system::error_code close_error_;
  bool is_ping_outstanding_ = false;
  /// A read of the transport is pending.
  bool is_reading_ = false;
  /// A write of the transport is pending; it refers to out_.
  bool is_writing_ = false;
  /// flush() is posted to the executor.
  bool is_flush_due_ = false;
  bool has_protocol_error_ =
      false;  ///< The peer violated HTTP/2; the connection closes after the pending output.
  bool is_handshake_done_ = false;
  bool is_closed_ = false;
};

/// Header field for nghttp2, which takes non-const pointers and does not write to them.
[[nodiscard]] nghttp2_nv header(std::string_view name, std::string_view value, std::uint8_t flags);
/// Flags for fields with static storage.
inline constexpr auto constant =
    static_cast<std::uint8_t>(NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);

}  // namespace tenure::grpc
