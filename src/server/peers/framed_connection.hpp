#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include "net/transport.hpp"
#include "server/peers/frame.hpp"

namespace tenure::server::peers {

/// Transport with frames in both directions: TLS handshake, framing, at most one write in flight.
/// Keeps itself alive while an operation is pending. Not thread safe; belongs to the loop's thread.
class FramedConnection : public std::enable_shared_from_this<FramedConnection> {
 public:
  /// Callbacks of the owner. None is called after close().
  struct Events {
    std::function<void()> ready;  ///< The TLS handshake is complete; frames can be written.
    std::function<void(const ReceivedFrame&)> received;  ///< A frame arrived.
    std::function<void()> written;                       ///< The last write is complete.
    /// The connection is broken. The last call.
    std::function<void(const std::string& why)> failed;
  };

  FramedConnection(std::unique_ptr<net::Transport> transport, FrameLimits limits);

  /// Starts the TLS handshake, if there is one, and then reads.
  void open(Events events);
  void set_limits(FrameLimits limits) noexcept { reader_.set_limits(limits); }
  /// REQUIRES: !is_writing()
  void write(std::vector<Frame> frames);
  [[nodiscard]] bool is_writing() const noexcept { return !writing_.empty(); }
  void close();
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

  [[nodiscard]] SSL* tls() noexcept { return transport_->tls(); }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  [[nodiscard]] std::uint64_t bytes_written() const noexcept { return bytes_written_; }

 private:
  /// Reads once; received() continues, so that one handler serves one read.
  void read();
  /// Passes the frames in these bytes to the owner, and reads again.
  void received(std::span<const std::uint8_t> bytes);
  /// Closes the connection and reports the error once.
  void fail_with(const std::string& why);

  std::unique_ptr<net::Transport> transport_;
  FrameReader reader_;
  Events events_;
  /// Frames of the write in flight; empty: none is.
  std::vector<Frame> writing_;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
  bool is_closed_ = false;
};

/// Disables Nagle, and detects a dead peer by TCP_USER_TIMEOUT and keep-alives within `silence`.
void set_up(boost::asio::ip::tcp::socket& socket, std::chrono::milliseconds silence);

/// Human-readable text of a connection error, with a likely cause.
[[nodiscard]] std::string explain(const boost::system::error_code& error);

}  // namespace tenure::server::peers
