#include "grpc/call.hpp"

#include <utility>

#include "grpc/connection.hpp"

namespace tenure::grpc {
namespace {

/// Of one call: who does not read its answers is not asked for more questions.
constexpr std::size_t queued_bytes_max = 256 * 1024;

}  // namespace

Call::Call(const Opening& opening)
    : connection_(&opening.connection),
      stream_(opening.stream),
      peer_(opening.connection.peer()),
      reader_(opening.message_bytes_max) {}

void Call::send(const google::protobuf::MessageLite& message) {
  if (connection_ == nullptr || status_) {
    return;
  }
  append_framed(message, out_);
  connection_->wants_to_write(*this);
}

void Call::finish(Status status) {
  if (status_) {
    return;
  }
  status_ = std::move(status);
  if (connection_ == nullptr) {
    return;
  }
  reader_.clear();
  connection_->wants_to_write(*this);
}

void Call::read_on() {
  if (std::exchange(is_held_back_, false)) {
    take_in();
  }
}

bool Call::may_take_in() const {
  return connection_ != nullptr && !status_ && !is_held_back_ &&
         out_.size() - sent_ < queued_bytes_max;
}

void Call::take_in() {
  // A message may lead to read_on() at once; the loop that is under way sees to it.
  if (is_taking_in_ || connection_ == nullptr) {
    return;
  }
  is_taking_in_ = true;
  const auto self = shared_from_this();
  while (may_take_in()) {
    const auto message = reader_.next();
    if (!message) {
      break;
    }
    received(*message);
  }
  is_taking_in_ = false;
  if (connection_ == nullptr) {
    return;
  }
  if (reader_.fault() != MessageReader::Fault::none) {
    refuse_fault();
  }
  reader_.trim();
  connection_->took_in(*this);
  if (is_half_closed_ && may_take_in() && !std::exchange(is_half_closed_told_, true)) {
    half_closed();
  }
}

void Call::refuse_fault() {
  if (reader_.fault() == MessageReader::Fault::compressed) {
    finish({StatusCode::unimplemented, "compressed messages are not understood"});
    return;
  }
  const bool is_configured = reader_.bytes_max() == connection_->message_bytes_max();
  finish({StatusCode::resource_exhausted,
          "a message has more than " + std::to_string(reader_.bytes_max()) + " bytes" +
              (is_configured ? " (service.message_bytes_max)" : "")});
}

}  // namespace tenure::grpc
