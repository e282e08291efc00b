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

/// What a call knows when it begins.
struct CallInfo {
  Connection& connection;
  std::int32_t stream{};
  std::string_view authorization{};   ///< The client's field of that name; lasts as long as this.
  std::size_t message_bytes_max = 0;  ///< Largest message of the client.
};

/// One call of a client: messages come, messages go, a status ends it. Whoever serves it derives
/// from this. All on the thread of the loop; the connection keeps the call alive until closed(),
/// and whoever needs it for longer holds a shared_ptr: what is sent then goes nowhere.
class Call : public std::enable_shared_from_this<Call> {
 public:
  explicit Call(const CallInfo& info);
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Address of the client.
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  /// Has a status, sent or not.
  [[nodiscard]] bool is_finished() const noexcept { return status_.has_value(); }
  /// Ends the call when all that is queued is written. The first one counts.
  void finish(Status status);

 protected:
  /// The next message. It lasts as long as the call of this function.
  virtual void received(std::string_view message) = 0;
  /// The client will say no more; it still listens.
  virtual void half_closed() = 0;
  /// All is over, in whatever way; not finished: the client went away.
  virtual void closed() = 0;
  /// All that was queued is on its way.
  virtual void drained() {}

  void send(const google::protobuf::MessageLite& message);
  [[nodiscard]] bool has_queued() const noexcept { return sent_ < out_.size(); }

  /// No more messages until resume_reading(). The client feels it when its window is full.
  void pause_reading() noexcept { is_reading_paused_ = true; }
  void resume_reading();

 private:
  friend class Connection;

  /// Hands over what has arrived, as far as it may.
  void deliver_messages();
  [[nodiscard]] bool may_deliver() const;
  void finish_with_reader_error();

  Connection* connection_;  ///< Null: closed.
  std::int32_t stream_;
  std::string peer_;
  MessageReader reader_;
  std::string out_;                       ///< Framed, not yet passed to the connection but for the
  std::size_t sent_ = 0;                  ///< first so many bytes.
  std::size_t unacknowledged_bytes_ = 0;  ///< Arrived, and the client has no new window for it yet.
  std::size_t accounted_bytes_ = 0;  ///< What of this call is in the connection's count of memory.
  std::optional<Status> status_;
  const std::function<void(StatusCode)>* on_ended_ = nullptr;  ///< The router's, to be told.
  bool is_open_ = false;                                       ///< Needs no authentication.
  bool has_headers_ = false;                                   ///< The response has headers.
  bool is_half_closed_ = false;                                ///< By the client,
  bool is_half_close_delivered_ = false;  ///< and we were told after its last message.
  bool is_reading_paused_ = false;
  bool is_delivering_ = false;
};

}  // namespace tenure::grpc
