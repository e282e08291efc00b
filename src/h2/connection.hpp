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
#include "h2/link.hpp"
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
  Link::Patience patience{};

  std::size_t buffered = 0;
};

/// A server's end of a connection, and on it the calls.
class Connection final : public Link {
 public:
  using Gone = std::function<void(const std::shared_ptr<Connection>&)>;

  Connection(House& house, std::unique_ptr<Transport> transport, std::string peer);

  /// `gone` is called once, when it is closed.
  void open(Gone gone);
  /// Ends the calls with `unavailable`, says good-bye, and closes when that is written.
  void farewell();

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
    std::string authorization;
  };
  /// The functions that nghttp2 calls; connection.cpp.
  struct Events;
  friend struct Events;

  void start_session() override;
  void closed() override;
  void wrote() override;
  [[nodiscard]] bool is_through() const override { return is_leaving_ && calls_.empty(); }
  [[nodiscard]] bool is_overfull() const override { return is_overfull_; }

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
  std::string peer_;
  Gone gone_;
  absl::flat_hash_map<std::int32_t, std::shared_ptr<Call>> calls_;
  std::vector<std::shared_ptr<Call>> drained_;  ///< To be told.
  Head head_;                                   ///< Of the call whose headers are arriving.
  std::size_t buffered_ = 0;                    ///< Of the calls.
  bool is_leaving_ = false;
  bool is_overfull_ = false;  ///< Too much is buffered.
};

}  // namespace tenure::h2
