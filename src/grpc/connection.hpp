#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <nghttp2/nghttp2.h>

#include "grpc/call.hpp"
#include "grpc/http2_connection.hpp"
#include "grpc/router.hpp"
#include "net/shares.hpp"
#include "net/transport.hpp"

namespace tenure::grpc {

class Connection;

/// Options and counters shared by all connections of a server. Loop thread only.
/// Outlives the server and its connections.
struct ServerContext {
  boost::asio::io_context& loop;
  /// Runs connection handlers, on the loop's thread.
  boost::asio::any_io_executor work{loop.get_executor()};
  Router router{};
  /// Maximum size of a request message, unless the route has its own limit.
  std::size_t message_bytes_max = 64 * 1024;
  /// HTTP/2 SETTINGS_MAX_CONCURRENT_STREAMS; nghttp2 refuses further streams.
  std::size_t calls_per_connection_max = 20'000;
  /// Bytes buffered for calls, responses and incomplete messages, per connection and in total. A
  /// connection over its limit is closed; over the total, the connection with the largest buffers
  /// is closed.
  std::size_t connection_bytes_max = std::size_t{64} << 20;
  std::size_t memory_bytes_max = std::size_t{512} << 20;
  /// Time from the headers of a unary call to the end of its message.
  std::chrono::milliseconds request_time{10'000};
  /// Concurrent unauthenticated calls per connection; also the maximum number of rejected calls
  /// whose response is not written yet.
  std::size_t open_calls_max = 100;
  Http2Connection::KeepAlive keep_alive{};
  /// Called for each call to an unknown path.
  std::function<void(StatusCode)> refused = [](StatusCode) {};
  /// Called with the name of a limit whenever it rejects something.
  std::function<void(std::string_view)> limited = [](std::string_view) {};

  std::size_t buffered = 0;  ///< Bytes buffered by all connections that are not being closed.
  absl::flat_hash_set<Connection*> connections{};  ///< Open connections.

  /// Closes the connection with the largest buffers.
  void shed();
};

/// Server side of one HTTP/2 connection; owns its calls. Loop thread only.
///
/// Memory accounting: the connection counts the bytes that it buffers for each call, and sheds load
/// by closing. Flow control alone does not bound the output of streams to a client that does not
/// read.
class Connection final : public Http2Connection {
 public:
  using OnClosed = std::function<void(const std::shared_ptr<Connection>&)>;

  Connection(ServerContext& context, std::unique_ptr<net::Transport> transport, std::string peer);

  /// Slots held in the limits of the server: one connection until it is closed, one TLS handshake
  /// until it completes.
  struct LimitShares {
    net::Shares::Share connection{};
    net::Shares::Share handshake{};
  };
  /// REQUIRES: before open().
  void hold(LimitShares shares) { shares_ = std::move(shares); }

  /// `on_closed` is called once.
  void open(OnClosed on_closed);
  /// Graceful shutdown: ends the calls with `unavailable`, sends GOAWAY and closes when everything
  /// is written.
  void drain();

  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] std::size_t message_bytes_max() const noexcept {
    return context_.message_bytes_max;
  }
  /// Bytes buffered for its calls.
  [[nodiscard]] std::size_t buffered() const noexcept { return buffered_; }
  [[nodiscard]] bool is_shed() const noexcept { return is_overfull_; }
  /// Sheds load: excludes its buffers from the total and closes the connection.
  void shed();
  /// Fails unary calls whose message is incomplete after request_time.
  void expire_requests(Clock::time_point now);

  // Interface for Call.
  /// Called when a call has new output or a status.
  void schedule_write(Call& call);
  /// Called when a call has delivered messages: returns their bytes to the flow-control window.
  void on_delivered(Call& call);

 private:
  /// Header fields of a request that the server uses.
  struct Head {
    std::string path;
    std::string method;
    std::string content_type;
    std::string authorization;
  };
  /// nghttp2 callbacks; see connection.cpp.
  struct Events;
  friend struct Events;

  void start_session() override;
  void closed() override;
  /// Notifies the calls whose output was written; they may send more and read more.
  void wrote() override;
  [[nodiscard]] bool is_done() const override { return is_draining_ && calls_.empty(); }
  [[nodiscard]] bool is_overfull() const override { return is_overfull_; }
  [[nodiscard]] bool may_read() const override;

  /// Call of a stream; null: refused or ended.
  [[nodiscard]] Call* call_of(std::int32_t stream) const;
  /// Finds the route and opens the call, or refuses it. All headers have been received.
  void begin_call(std::int32_t stream);
  void on_data(std::int32_t stream, std::span<const std::uint8_t> piece);
  /// The client has sent its last message.
  void half_close(std::int32_t stream);
  /// The stream is closed: removes the call and calls its closed().
  void end_call(std::int32_t stream);
  void accept_call(std::int32_t stream, const Router::Route& route);
  /// Submits the response headers; the messages follow through read_pending().
  void begin_response(Call& call);
  /// Answers without a call: headers and status in one frame ("trailers-only" response).
  void refuse(std::int32_t stream, const Status& status);
  /// Answers a request that is not gRPC.
  void refuse_http(std::int32_t stream, const char* http_status);
  /// Counts a rejected call until its response is written. False: too many; the stream is reset
  /// without a response, so rejections cannot fill the memory.
  [[nodiscard]] bool note_refusal(std::int32_t stream);
  /// Submits the status as trailers, or with the headers if the call has sent no message.
  void submit_end(Call& call, bool with_head);
  [[nodiscard]] std::ptrdiff_t read_pending(Call& call, std::span<std::uint8_t> room,
                                            std::uint32_t& flags);
  /// Updates the buffered bytes of a call.
  void count(Call& call);
  /// Changes a counted size, the sums of the connection and of the server, and sheds load over a
  /// limit.
  void recount(std::size_t& counted, std::size_t bytes);

  ServerContext& context_;
  std::string peer_;
  OnClosed on_closed_;
  /// Open calls by stream; owns them.
  absl::flat_hash_map<std::int32_t, std::shared_ptr<Call>> calls_;
  std::vector<std::shared_ptr<Call>>
      drained_;  ///< Calls whose queue has become empty; drained() is pending.
  Head head_;    ///< Headers of the call being received.
  /// Deadlines of unary calls with an incomplete message. Stream ids only grow, so the first is the
  /// oldest.
  absl::btree_map<std::int32_t, Clock::time_point> arriving_;
  absl::flat_hash_set<std::int32_t>
      refused_;                    ///< Rejected streams whose response is not written yet.
  std::size_t refused_bytes_ = 0;  ///< Bytes in `buffered_` for rejected streams.
  std::size_t open_calls_ = 0;     ///< Number of open unauthenticated calls.
  std::size_t buffered_ = 0;       ///< Bytes buffered for the calls.
  LimitShares shares_;
  bool is_draining_ = false;
  bool is_overfull_ = false;  ///< Marked for closing because too much is buffered.
};

}  // namespace tenure::grpc
