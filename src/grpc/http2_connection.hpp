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

/// One end of an HTTP/2 connection: passes bytes between a transport and nghttp2, and finds out
/// when the other end is on_closed. All on the loop's thread.
class Http2Connection : public std::enable_shared_from_this<Http2Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  struct KeepAlive {
    std::chrono::milliseconds ping_interval{10'000};
    /// Whoever does not answer for so long is on_closed, though no FIN came.
    std::chrono::milliseconds ping_timeout{5'000};
  };

  /// `executor` runs one handler at a time.
  Http2Connection(boost::asio::any_io_executor executor, std::unique_ptr<net::Transport> transport,
                  KeepAlive keep_alive);
  virtual ~Http2Connection() = default;
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  /// Sends a ping if it is quiet, and closes if the last one was not answered.
  void check(Clock::time_point now) { check(now, keep_alive_); }
  /// The same with another keep_alive, this time.
  void check(Clock::time_point now, const KeepAlive& keep_alive);
  void close();
  /// Why it closed, where the transport or the other end's bytes told.
  [[nodiscard]] const boost::system::error_code& close_error() const noexcept {
    return close_error_;
  }
  /// Null: it is plain text.
  [[nodiscard]] SSL* tls() noexcept { return transport_->tls(); }

 protected:
  enum class Side : std::uint8_t { server, client };

  /// Greets, then begins: start_session() and reading.
  void open();
  virtual void start_session() = 0;
  /// It is closed; called once.
  virtual void closed() = 0;
  /// After bytes went to the transport.
  virtual void wrote() {}
  /// Whether there is nothing more to do, so that it may close when all is written.
  [[nodiscard]] virtual bool is_done() const { return false; }
  /// Whether it must be closed now.
  [[nodiscard]] virtual bool is_overfull() const { return false; }
  /// Whether more bytes may be read before more is written. While it is false the transport is not
  /// read, which the other end notices by TCP flow control; asked again after each write.
  [[nodiscard]] virtual bool may_read() const { return true; }

  /// REQUIRES: once, in start_session(). Takes the callbacks over.
  void make_session(Side side, nghttp2_session_callbacks* events, nghttp2_option* options,
                    void* user);
  [[nodiscard]] nghttp2_session* session() const noexcept { return session_.get(); }
  /// At the end of what the loop is doing: what was submitted meanwhile leaves together.
  void flush_soon();
  /// A ping was answered.
  void on_pong() noexcept { is_ping_outstanding_ = false; }
  [[nodiscard]] bool is_open() const noexcept { return is_handshake_done_ && !is_closed_; }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  struct SessionDeleter {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  /// Reads the next bytes, unless that is under way or must wait.
  void resume_reading();
  void arrived(std::span<const std::uint8_t> bytes);
  void flush();

  boost::asio::any_io_executor executor_;
  std::unique_ptr<net::Transport> transport_;
  KeepAlive keep_alive_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  std::string out_;                  ///< Being written.
  Clock::time_point last_received_;  ///< When something last arrived,
  Clock::time_point last_ping_;      ///< and when we asked whether anybody is there.
  boost::system::error_code close_error_;
  bool is_ping_outstanding_ = false;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_flush_due_ = false;
  bool has_protocol_error_ = false;  ///< The other end does not speak HTTP/2.
  bool is_handshake_done_ = false;
  bool is_closed_ = false;
};

/// A header line for nghttp2, which takes pointers that it does not write to.
[[nodiscard]] nghttp2_nv header(std::string_view name, std::string_view value, std::uint8_t flags);
/// For lines that live for ever.
inline constexpr auto constant =
    static_cast<std::uint8_t>(NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);

}  // namespace tenure::grpc
