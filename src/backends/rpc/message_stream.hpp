#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include <google/protobuf/arena.h>

#include "grpc/channel.hpp"

namespace tenure::backends {

/// Streaming call that passes its messages and its end to callbacks. A reply that cannot be parsed
/// cancels the call. Not thread safe: all calls run on the event loop's thread.
template <class Message>
class MessageStream final : public grpc::ClientCall {
 public:
  using OnMessage = std::function<void(const Message&)>;
  using OnEnded = std::function<void(const grpc::Status&)>;

  MessageStream(OnMessage on_message, OnEnded on_ended)
      : on_message_(std::move(on_message)), on_ended_(std::move(on_ended)) {}

  /// Cancels the call. No callback runs afterwards.
  void detach() {
    is_detached_ = true;
    cancel();
  }

 private:
  void received(std::string_view bytes) override {
    // Messages of a stream that was replaced arrive late and are ignored.
    if (is_detached_) {
      return;
    }
    // One arena per message avoids an allocation for each part. Protobuf aborts on an unaligned
    // buffer; zero-initialisation is not needed.
    alignas(8) std::array<char, std::size_t{16} * 1024> begin;  // NOLINT(*-member-init)
    google::protobuf::Arena arena(begin.data(), begin.size());
    auto& message = *google::protobuf::Arena::CreateMessage<Message>(&arena);
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      cancel();
      return;
    }
    on_message_(message);
  }
  void ended(const grpc::Status& status) override {
    if (!std::exchange(is_detached_, true)) {
      on_ended_(status);
    }
  }

  const OnMessage on_message_;
  const OnEnded on_ended_;
  bool is_detached_ = false;
};

}  // namespace tenure::backends
