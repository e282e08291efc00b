#include "grpc/call.hpp"

#include <utility>

#include "grpc/connection.hpp"

namespace tenure::grpc {
namespace {

/// Output limit per call: while the client does not read its replies, no further messages are
/// delivered.
constexpr std::size_t queued_bytes_max = 256 * 1024;

}  // namespace

Call::Call(const CallInfo& info)
    : connection_(&info.connection),
      stream_(info.stream),
      peer_(info.connection.peer()),
      reader_(info.message_bytes_max) {}

void Call::send(const google::protobuf::MessageLite& message) {
  if (connection_ == nullptr || status_) {
    return;
  }
  append_framed(message, out_);
  connection_->schedule_write(*this);
}

void Call::finish(Status status) {
  if (status_) {
    return;
  }
  status_ = std::move(status);
  if (connection_ == nullptr) {
    return;
  }
  // No further message is delivered; the memory is freed now because the write may take long.
  reader_.clear();
  connection_->schedule_write(*this);
}

void Call::resume_reading() {
  if (std::exchange(is_reading_paused_, false)) {
    deliver_messages();
  }
}

bool Call::may_deliver() const {
  return connection_ != nullptr && !status_ && !is_reading_paused_ &&
         out_.size() - sent_ < queued_bytes_max;
}

void Call::deliver_messages() {
  // A handler may call resume_reading(); the running loop then delivers the next message.
  if (is_delivering_ || connection_ == nullptr) {
    return;
  }
  is_delivering_ = true;
  // A handler may end the call, which removes it from the connection.
  const auto self = shared_from_this();
  while (may_deliver()) {
    const auto message = reader_.next();
    if (!message) {
      break;
    }
    received(*message);
  }
  is_delivering_ = false;
  if (connection_ == nullptr) {
    return;
  }
  if (reader_.error() != MessageReader::Error::none) {
    finish_with_reader_error();
  }
  // The string_view of the last message refers to the buffer until here.
  reader_.trim();
  // Returns the flow-control window of the delivered bytes, so the client may send more.
  connection_->on_delivered(*this);
  // Only after all messages: a paused call gets half_closed() when it resumes.
  if (is_half_closed_ && may_deliver() && !std::exchange(is_half_close_delivered_, true)) {
    half_closed();
  }
}

void Call::finish_with_reader_error() {
  if (reader_.error() == MessageReader::Error::compressed) {
    finish({StatusCode::unimplemented, "compressed messages are not supported"});
    return;
  }
  // Calls with a fixed limit of their own must not refer to a setting.
  const bool is_configured = reader_.bytes_max() == connection_->message_bytes_max();
  finish({StatusCode::resource_exhausted,
          "message larger than " + std::to_string(reader_.bytes_max()) + " bytes" +
              (is_configured ? " (service.message_bytes_max)" : "")});
}

}  // namespace tenure::grpc
