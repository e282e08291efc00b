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

#include "grpc/http2_connection.hpp"
#include "grpc/message.hpp"
#include "grpc/status.hpp"
#include "net/transport.hpp"

namespace tenure::grpc {

class Channel;

/// Client side of one gRPC call; derive to receive replies. Loop thread only. The channel keeps it
/// alive until ended().
///
/// A call cannot be reused. Its functions have no effect before begin() and after ended(), so an
/// owner need not track the state of the connection.
class ClientCall : public std::enable_shared_from_this<ClientCall> {
 public:
  ClientCall();
  virtual ~ClientCall() = default;
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  /// Queues a message. No effect after half_close().
  void send(const google::protobuf::MessageLite& message);
  /// Ends the request stream.
  void half_close();
  /// Resets the call; ended() is called with `cancelled`.
  void cancel();

 protected:
  /// Called with each message, which is valid during the call.
  virtual void received(std::string_view message) = 0;
  /// Called once, with the final status.
  virtual void ended(const Status& status) = 0;

 private:
  friend class Channel;

  Channel* channel_ = nullptr;  ///< Channel; null: not started or ended.
  std::int32_t stream_ = 0;
  /// Received bytes that are not delivered yet.
  MessageReader reader_;
  std::string out_;       ///< Framed outgoing messages.
  std::size_t sent_ = 0;  ///< Bytes of out_ already passed to the channel.
  /// Status from the trailers; nullopt: none received yet.
  std::optional<Status> status_;
  std::vector<MetadataField> trailers_;  ///< Trailing metadata with the prefix `tenure-`.
  bool is_half_closed_ = false;
};

/// Client connection with multiplexed calls. Loop thread only.
///
/// Does not reconnect: a channel is closed for good, and its owner opens another one. check() of
/// the base class must be called regularly to detect a dead server.
class Channel final : public Http2Connection {
 public:
  /// Server as the client addresses it.
  struct Origin {
    std::string authority{};  ///< "host:port"
    bool is_tls = false;
  };
  using OnReady = std::function<void()>;
  using OnClosed = std::function<void()>;

  Channel(boost::asio::io_context& loop, std::unique_ptr<net::Transport> transport, Origin origin,
          KeepAlive keep_alive = {});

  /// `on_ready`: calls may start. `on_closed`: the connection is closed and all calls have ended.
  /// Each is called at most once.
  void open(OnReady on_ready, OnClosed on_closed);
  /// Replaces the `on_closed` callback.
  void set_on_closed(OnClosed on_closed) { on_closed_ = std::move(on_closed); }
  /// "host:port" of the server.
  [[nodiscard]] const std::string& authority() const noexcept { return origin_.authority; }
  [[nodiscard]] bool is_tls() const noexcept { return origin_.is_tls; }
  using Http2Connection::is_closed;
  /// Request metadata sent with every later call. REQUIRES: at most metadata_fields_max fields.
  void set_metadata(std::vector<MetadataField> lines) { metadata_ = std::move(lines); }
  static constexpr std::size_t metadata_fields_max = 4;
  /// Starts a call. REQUIRES: the channel is ready. `path`: "/package.Service/Method".
  void begin(const std::string& path, const std::shared_ptr<ClientCall>& call);

 private:
  friend class ClientCall;
  /// nghttp2 callbacks; see channel.cpp.
  struct Events;
  friend struct Events;

  /// Configures nghttp2 and reports readiness. Requests need not wait for the settings of the
  /// server.
  void start_session() override;
  /// Ends all calls with the reason of the close, then reports the close.
  void closed() override;

  /// Call of a stream; null: it has ended.
  [[nodiscard]] ClientCall* find(std::int32_t stream) const;
  void add_header(std::int32_t stream, std::string_view name, std::string_view value);
  /// Delivers the complete messages in the received bytes.
  void on_data(std::int32_t stream, std::span<const std::uint8_t> piece);
  /// Ends a call with its trailers, or with the reason of the reset if it has none.
  void end(std::int32_t stream, std::uint32_t error);
  void schedule_write(ClientCall& call);
  void cancel(ClientCall& call);
  /// Copies output into a DATA frame for nghttp2.
  [[nodiscard]] static std::ptrdiff_t read_pending(ClientCall& call, std::span<std::uint8_t> room,
                                                   std::uint32_t& flags);

  Origin origin_;
  /// Metadata of every request; see set_metadata().
  std::vector<MetadataField> metadata_;
  OnReady on_ready_;
  OnClosed on_closed_;
  /// Open calls by stream.
  absl::flat_hash_map<std::int32_t, std::shared_ptr<ClientCall>> calls_;
};

/// Unary call. `done(status, response)` is called once.
/// Has no timeout of its own: the owner cancels, or the channel closes.
template <class Response>
class UnaryClientCall final : public ClientCall {
 public:
  using Done = std::move_only_function<void(const Status&, Response)>;

  explicit UnaryClientCall(Done done) : done_(std::move(done)) {}

  static void start(Channel& channel, const std::string& path,
                    const google::protobuf::MessageLite& request, Done done) {
    const auto call = std::make_shared<UnaryClientCall>(std::move(done));
    channel.begin(path, call);
    call->send(request);
    call->half_close();
  }

 private:
  void received(std::string_view message) override {
    has_response_ = response_.ParseFromArray(message.data(), static_cast<int>(message.size()));
  }
  void ended(const Status& status) override {
    const bool is_missing = status.ok() && !has_response_;
    done_(is_missing ? Status{StatusCode::internal, "the reply has no message"} : status,
          std::move(response_));
  }

  Done done_;
  Response response_;
  bool has_response_ = false;
};

}  // namespace tenure::grpc
