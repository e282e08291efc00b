#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <boost/asio/io_context.hpp>
#include <google/protobuf/message_lite.h>
#include <nghttp2/nghttp2.h>

#include "grpc/link.hpp"
#include "grpc/message.hpp"
#include "grpc/status.hpp"
#include "net/transport.hpp"

namespace tenure::grpc {

class Channel;

/// A client's end of one call. Derive to hear the answers. All on the loop's thread; the channel
/// keeps it alive until ended().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange();
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void send(const google::protobuf::MessageLite& message);
  /// No more will be sent.
  void half_close();
  /// Ends it at once; ended() is called with `cancelled`.
  void cancel();

 protected:
  /// The next message. It lasts as long as the call of this function.
  virtual void received(std::string_view message) = 0;
  /// All is over; called once.
  virtual void ended(const Status& status) = 0;

 private:
  friend class Channel;

  Channel* channel_ = nullptr;  ///< Null: not begun, or ended.
  std::int32_t stream_ = 0;
  MessageReader reader_;
  std::string out_;       ///< Framed, not yet passed to the channel but for the
  std::size_t sent_ = 0;  ///< first so many bytes.
  std::optional<Status> status_;
  std::vector<Trailer> trailers_;  ///< Ours, of the status.
  bool is_half_closed_ = false;
};

/// A client's end of a connection.
class Channel final : public Link {
 public:
  struct Origin {
    std::string authority{};  ///< "host:port"
    bool is_tls = false;
  };
  using Ready = std::function<void()>;
  using Gone = std::function<void()>;

  Channel(boost::asio::io_context& loop, std::unique_ptr<net::Transport> transport, Origin origin,
          Patience patience = {});

  /// `ready`: calls may begin. `gone`: it is closed, and every exchange has ended. Each at most
  /// once.
  void open(Ready ready, Gone gone);
  /// Somebody else is to be told.
  void when_gone(Gone gone) { gone_ = std::move(gone); }
  /// "host:port", of the server.
  [[nodiscard]] const std::string& authority() const noexcept { return origin_.authority; }
  [[nodiscard]] bool is_tls() const noexcept { return origin_.is_tls; }
  /// Nobody is at the other end any more.
  [[nodiscard]] bool is_gone() const noexcept { return is_closed(); }
  /// Lines of our own, for every call that begins from now on. REQUIRES: not more than lines_max.
  void set_lines(std::vector<Trailer> lines) { lines_ = std::move(lines); }
  static constexpr std::size_t lines_max = 4;
  /// REQUIRES: ready. `path`: "/package.Service/Method".
  void begin(const std::string& path, const std::shared_ptr<Exchange>& exchange);

 private:
  friend class Exchange;
  /// The functions that nghttp2 calls; channel.cpp.
  struct Events;
  friend struct Events;

  void start_session() override;
  void closed() override;

  [[nodiscard]] Exchange* find(std::int32_t stream) const;
  void add_header(std::int32_t stream, std::string_view name, std::string_view value);
  void add_piece(std::int32_t stream, std::span<const std::uint8_t> piece);
  void end(std::int32_t stream, std::uint32_t error);
  void wants_to_write(Exchange& exchange);
  void cancel(Exchange& exchange);
  [[nodiscard]] static std::ptrdiff_t take_out(Exchange& exchange, std::span<std::uint8_t> room,
                                               std::uint32_t& flags);

  Origin origin_;
  std::vector<Trailer> lines_;
  Ready ready_;
  Gone gone_;
  absl::flat_hash_map<std::int32_t, std::shared_ptr<Exchange>> exchanges_;
};

/// One question, one answer. `done(status, response)` is called once.
template <class Response>
class Question final : public Exchange {
 public:
  using Done = std::move_only_function<void(const Status&, Response)>;

  explicit Question(Done done) : done_(std::move(done)) {}

  static void ask(Channel& channel, const std::string& path,
                  const google::protobuf::MessageLite& request, Done done) {
    const auto question = std::make_shared<Question>(std::move(done));
    channel.begin(path, question);
    question->send(request);
    question->half_close();
  }

 private:
  void received(std::string_view message) override {
    is_answered_ = response_.ParseFromArray(message.data(), static_cast<int>(message.size()));
  }
  void ended(const Status& status) override {
    const bool is_missing = status.ok() && !is_answered_;
    done_(is_missing ? Status{StatusCode::internal, "the answer has no message"} : status,
          std::move(response_));
  }

  Done done_;
  Response response_;
  bool is_answered_ = false;
};

}  // namespace tenure::grpc
