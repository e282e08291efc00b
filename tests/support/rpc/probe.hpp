#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <google/protobuf/message_lite.h>

#include "backends/rpc/channel_connector.hpp"
#include "backends/url.hpp"
#include "grpc/channel.hpp"

namespace tenure::test {

/// Client that calls any method by its path with one message and collects the replies. With or
/// without a token.
class RpcProbe {
 public:
  struct Reply {
    std::optional<grpc::Status> status{};  ///< Final status; nullopt: the call is still open.
    std::vector<std::string> messages{};

    [[nodiscard]] grpc::StatusCode code() const {
      return status ? status->code : grpc::StatusCode::unknown;
    }
    [[nodiscard]] std::string message() const { return status ? status->message : "no end"; }
    template <class Message>
    [[nodiscard]] Message first() const {
      Message message;
      if (!messages.empty()) {
        (void)message.ParseFromString(messages.front());
      }
      return message;
    }
  };
  enum class Until : bool { message, end };

  RpcProbe(const std::string& address, std::string token) {
    const auto url = backends::parse_url("tenure://" + address);
    connector_ = std::make_shared<backends::ChannelConnector>(
        loop_,
        backends::Servers{.endpoints = backends::endpoints_of(*url, 0).value(),
                          .token = std::move(token)},
        backends::ChannelConnector::Callbacks{
            .connected = [this](const auto& channel) { channel_ = channel; },
            .failed = [](const Error&) {}});
    connector_->connect();
    run_until([this] { return channel_ != nullptr; });
  }
  ~RpcProbe() {
    connector_->stop();
    if (channel_) {
      channel_->close();
    }
    loop_.poll();
  }
  RpcProbe(const RpcProbe&) = delete;
  RpcProbe& operator=(const RpcProbe&) = delete;

  Reply call(const std::string& path, const google::protobuf::MessageLite& request,
             Until until = Until::end) {
    const auto call = begin(path, request);
    call->half_close();
    run_until([&] {
      return call->reply.status || (until == Until::message && !call->reply.messages.empty());
    });
    if (!call->reply.status) {
      call->cancel();
    }
    return call->reply;
  }

  /// Call that stays open.
  class OpenCall final : public grpc::ClientCall {
   public:
    Reply reply{};

   private:
    void received(std::string_view message) override { reply.messages.emplace_back(message); }
    void ended(const grpc::Status& how) override {
      if (!reply.status) {
        reply.status = how;
      }
    }
  };
  std::shared_ptr<OpenCall> begin(const std::string& path,
                                  const google::protobuf::MessageLite& request) {
    auto call = std::make_shared<OpenCall>();
    channel_->begin(path, call);
    call->send(request);
    return call;
  }
  /// Runs the loop until a condition holds, also one that changes outside the loop; polls every 5
  /// ms.
  template <class IsDone>
  void run_until(const IsDone& is_done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!is_done() && std::chrono::steady_clock::now() < deadline) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(5));
    }
  }

 private:
  boost::asio::io_context loop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<backends::ChannelConnector> connector_;
};

}  // namespace tenure::test
