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

#include <absl/container/flat_hash_map.h>
#include <boost/asio/io_context.hpp>
#include <nghttp2/nghttp2.h>

#include "h2/call.hpp"
#include "h2/router.hpp"
#include "h2/transport.hpp"

namespace tenure::h2 {

/// What all connections of a server have in common. Of the loop's thread.
struct House {
  boost::asio::io_context& loop;
  Router router{};
  std::size_t message_bytes_max = 64 * 1024;
  std::size_t calls_per_connection_max = 20'000;
  /// What may be buffered of answers and of messages that are not whole, of one connection and of
  /// all. Whose calls add to more than that loses the connection.
  std::size_t connection_bytes_max = std::size_t{64} << 20;
  std::size_t memory_bytes_max = std::size_t{512} << 20;
  std::chrono::milliseconds ping_every{10'000};
  /// Whoever does not answer for so long is gone, though no FIN came.
  std::chrono::milliseconds ping_wait{5'000};

  std::size_t buffered = 0;
};

/// One client's connection: HTTP/2 by nghttp2, and on it the calls. All on the loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Gone = std::function<void(const std::shared_ptr<Connection>&)>;

  Connection(House& house, std::unique_ptr<Transport> transport, std::string peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// `gone` is called once, when it is closed.
  void open(Gone gone);
  /// Sends a ping if it is quiet, and closes if the last one was not answered.
  void check(Clock::time_point now);
  /// Ends the calls with `unavailable`, says good-bye, and closes when that is written.
  void farewell();
  void close();

  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] std::size_t message_bytes_max() const noexcept { return house_.message_bytes_max; }

  // For its calls.
  void wants_to_write(Call& call);
  void took_in(Call& call);

 private:
  struct Head {
    std::string path;
    std::string method;
    std::string content_type;
  };
  struct SessionDeleter {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  /// The functions that nghttp2 calls; connection.cpp.
  struct Events;
  friend struct Events;

  void start_session();
  void read();
  void arrived(std::span<const std::uint8_t> bytes);
  void flush_soon();
  void flush();
  void tell_drained();

  [[nodiscard]] Call* call_of(std::int32_t stream) const;
  void begin_call(std::int32_t stream);
  void add_piece(std::int32_t stream, std::span<const std::uint8_t> piece);
  void half_close(std::int32_t stream);
  void end_call(std::int32_t stream);
  void begin_response(Call& call);
  void refuse(std::int32_t stream, const Status& status);
  void refuse_http(std::int32_t stream, const char* http_status);
  void submit_end(Call& call, bool with_head);
  [[nodiscard]] std::ptrdiff_t take_out(Call& call, std::span<std::uint8_t> room,
                                        std::uint32_t& flags);
  /// Brings the count of buffered bytes up to date.
  void count(Call& call);

  House& house_;
  std::unique_ptr<Transport> transport_;
  std::string peer_;
  Gone gone_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  absl::flat_hash_map<std::int32_t, std::shared_ptr<Call>> calls_;
  std::vector<std::shared_ptr<Call>> drained_;  ///< To be told.
  Head head_;                                   ///< Of the call whose headers are arriving.
  std::string out_;                             ///< Being written.
  std::size_t buffered_ = 0;                    ///< Of the calls.
  Clock::time_point heard_;                     ///< When something last arrived,
  Clock::time_point pinged_;                    ///< and when we asked whether anybody is there.
  bool is_ping_open_ = false;
  bool is_writing_ = false;
  bool is_flush_due_ = false;
  bool is_leaving_ = false;
  bool is_overfull_ = false;  ///< Too much is buffered.
  bool is_broken_ = false;    ///< The client does not speak HTTP/2.
  bool is_greeted_ = false;
  bool is_closed_ = false;
};

}  // namespace tenure::h2
