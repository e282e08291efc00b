#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/message_lite.h>

#include "grpc/message.hpp"
#include "grpc/status.hpp"

namespace tenure::grpc {

class Connection;

/// Properties of a new call.
/// Valid only during the constructor of the call.
struct CallInfo {
  Connection& connection;
  std::int32_t stream{};
  std::string_view
      authorization{};  ///< Authorization header of the client; valid as long as this struct.
  std::size_t message_bytes_max = 0;  ///< Maximum size of a request message.
};

/// Server side of one gRPC call; services derive from it. Loop thread only. The connection owns the
/// call until closed(); code that needs it longer holds a shared_ptr, and what it sends then is
/// discarded.
///
/// Life of a call: received() for each message, half_closed() at most once, drained() after each
/// time all output was passed to the transport, closed() exactly once. The service sends messages
/// at any time before finish(). No callback runs inside send() or finish(), so a service may use
/// them while it iterates over its calls.
class Call : public std::enable_shared_from_this<Call> {
 public:
  explicit Call(const CallInfo& info);
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Network address of the client.
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  /// Whether a status was set, sent or not.
  [[nodiscard]] bool is_finished() const noexcept { return status_.has_value(); }
  /// Ends the call with `status` after the queued messages are written. Only the first call has an
  /// effect.
  void finish(Status status);

 protected:
  /// Called with each message, which is valid during the call.
  virtual void received(std::string_view message) = 0;
  /// Called after the last message of the client, which can still receive.
  virtual void half_closed() = 0;
  /// Called once at the end. If the call is not finished, the client disconnected or cancelled.
  virtual void closed() = 0;
  /// Called when the queue of outgoing messages is empty.
  virtual void drained() {}

  /// Queues a message. No effect after finish() or closed(), so a late reply needs no check. The
  /// queue is not limited here: a service that sends without being asked uses drained() for
  /// backpressure, and the connection closes if its buffers exceed the limit.
  void send(const google::protobuf::MessageLite& message);
  [[nodiscard]] bool has_queued() const noexcept { return sent_ < out_.size(); }

  /// Stops delivering messages until resume_reading(). HTTP/2 flow control then stops the client.
  void pause_reading() noexcept { is_reading_paused_ = true; }
  /// May deliver messages before it returns, if some are buffered.
  void resume_reading();

 private:
  friend class Connection;

  /// Delivers complete messages unless paused or over the output limit.
  void deliver_messages();
  [[nodiscard]] bool may_deliver() const;
  /// Reports an unreadable message. The rest of the stream cannot be parsed after it.
  void finish_with_reader_error();

  Connection* connection_;  ///< Connection; null: closed.
  /// HTTP/2 stream of the call.
  std::int32_t stream_;
  std::string peer_;
  /// Received bytes that are not delivered yet.
  MessageReader reader_;
  std::string out_;       ///< Framed outgoing messages.
  std::size_t sent_ = 0;  ///< Bytes of out_ already passed to the connection.
  std::size_t unacknowledged_bytes_ =
      0;  ///< Received bytes not yet returned to the flow-control window.
  std::size_t accounted_bytes_ =
      0;  ///< Bytes of this call included in the connection's `buffered_`.
  /// Final status; nullopt: the call continues.
  std::optional<Status> status_;
  const std::function<void(StatusCode)>* on_ended_ =
      nullptr;                            ///< Completion callback of the route.
  bool is_open_ = false;                  ///< The call needs no authentication.
  bool has_headers_ = false;              ///< The response headers were submitted.
  bool is_half_closed_ = false;           ///< The client has sent END_STREAM.
  bool is_half_close_delivered_ = false;  ///< half_closed() was called.
  /// The service has paused delivery.
  bool is_reading_paused_ = false;
  /// deliver_messages() is running; guards against recursion.
  bool is_delivering_ = false;
};

}  // namespace tenure::grpc
