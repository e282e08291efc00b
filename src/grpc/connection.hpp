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

/// What all connections of a server have in common. Of the loop's thread.
struct ServerContext {
  boost::asio::io_context& loop;
  /// Runs the handlers of the connections, on the thread of the loop.
  boost::asio::any_io_executor work{loop.get_executor()};
  Router router{};
  std::size_t message_bytes_max = 64 * 1024;
  std::size_t calls_per_connection_max = 20'000;
  /// Bytes buffered for calls, responses and incomplete messages: of one connection, which is
  /// closed when its calls add to more than that, and of all connections, of which the one with the
  /// largest buffers is closed.
  std::size_t connection_bytes_max = std::size_t{64} << 20;
  std::size_t memory_bytes_max = std::size_t{512} << 20;
  /// From the headers of a unary call to the end of its message.
  std::chrono::milliseconds request_time{10'000};
  /// Concurrent calls of one connection that need no authentication; also its refused calls whose
  /// response is not written yet.
  std::size_t open_calls_max = 100;
  Http2Connection::KeepAlive keep_alive{};
  /// Called for each call to an unknown path.
  std::function<void(StatusCode)> refused = [](StatusCode) {};
  /// Called with the name of a limit, each time that something is refused because of it.
  std::function<void(std::string_view)> limited = [](std::string_view) {};

  std::size_t buffered = 0;  ///< Of all connections that are not being closed.
  absl::flat_hash_set<Connection*> connections{};  ///< All that are open.

  /// Closes the connection with the largest buffers.
  void shed();
};

/// A server's end of a connection, and on it the calls.
class Connection final : public Http2Connection {
 public:
  using OnClosed = std::function<void(const std::shared_ptr<Connection>&)>;

  Connection(ServerContext& context, std::unique_ptr<net::Transport> transport, std::string peer);

  /// What it uses of the limits of its server: a place among the connections, until it is closed,
  /// and one among the TLS handshakes, until that is done.
  struct LimitShares {
    net::Shares::Share connection{};
    net::Shares::Share handshake{};
  };
  /// REQUIRES: before open().
  void hold(LimitShares shares) { shares_ = std::move(shares); }

  /// `on_closed` is called once, when it is closed.
  void open(OnClosed on_closed);
  /// Ends the calls with `unavailable`, says good-bye, and closes when that is written.
  void drain();

  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] std::size_t message_bytes_max() const noexcept {
    return context_.message_bytes_max;
  }
  /// Bytes buffered for its calls.
  [[nodiscard]] std::size_t buffered() const noexcept { return buffered_; }
  [[nodiscard]] bool is_shed() const noexcept { return is_overfull_; }
  /// Closes it soon, because too much is buffered. Its bytes do not count any more.
  void shed();
  /// Ends the unary calls whose message is not complete in time.
  void expire_requests(Clock::time_point now);

  // For its calls.
  void schedule_write(Call& call);
  void on_delivered(Call& call);

 private:
  struct Head {
    std::string path;
    std::string method;
    std::string content_type;
    std::string authorization;
  };
  /// The functions that nghttp2 calls; connection.cpp.
  struct Events;
  friend struct Events;

  void start_session() override;
  void closed() override;
  void wrote() override;
  [[nodiscard]] bool is_done() const override { return is_draining_ && calls_.empty(); }
  [[nodiscard]] bool is_overfull() const override { return is_overfull_; }
  [[nodiscard]] bool may_read() const override;

  [[nodiscard]] Call* call_of(std::int32_t stream) const;
  void begin_call(std::int32_t stream);
  void on_data(std::int32_t stream, std::span<const std::uint8_t> piece);
  void half_close(std::int32_t stream);
  void end_call(std::int32_t stream);
  void accept_call(std::int32_t stream, const Router::Route& route);
  void begin_response(Call& call);
  void refuse(std::int32_t stream, const Status& status);
  void refuse_http(std::int32_t stream, const char* http_status);
  /// Counts a refusal until its response is written. False: there are too many; the stream is reset
  /// without a response.
  [[nodiscard]] bool note_refusal(std::int32_t stream);
  void submit_end(Call& call, bool with_head);
  [[nodiscard]] std::ptrdiff_t read_pending(Call& call, std::span<std::uint8_t> room,
                                            std::uint32_t& flags);
  /// Brings the count of buffered bytes up to date.
  void count(Call& call);
  void recount(std::size_t& counted, std::size_t bytes);

  ServerContext& context_;
  std::string peer_;
  OnClosed on_closed_;
  absl::flat_hash_map<std::int32_t, std::shared_ptr<Call>> calls_;
  std::vector<std::shared_ptr<Call>> drained_;  ///< To be told.
  Head head_;                                   ///< Of the call whose headers are arriving.
  /// Deadlines of the unary calls whose message is not complete. Ids of streams only grow, so the
  /// first is the oldest.
  absl::btree_map<std::int32_t, Clock::time_point> arriving_;
  absl::flat_hash_set<std::int32_t> refused_;  ///< Streams whose refusal is not written yet.
  std::size_t refused_bytes_ = 0;              ///< What of them is in `buffered_`.
  std::size_t open_calls_ = 0;                 ///< Calls that need no authentication.
  std::size_t buffered_ = 0;                   ///< Of the calls.
  LimitShares shares_;
  bool is_draining_ = false;
  bool is_overfull_ = false;  ///< Too much is buffered.
};

}  // namespace tenure::grpc
