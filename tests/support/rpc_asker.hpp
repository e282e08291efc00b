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

/// Any call of any service, by its path: one message, and what comes back. With a token or without.
class Asker {
 public:
  struct Answer {
    std::optional<grpc::Status> status{};  ///< None: it did not end.
    std::vector<std::string> messages{};

    [[nodiscard]] grpc::StatusCode code() const {
      return status ? status->code : grpc::StatusCode::unknown;
    }
    [[nodiscard]] std::string words() const { return status ? status->message : "no end"; }
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

  Asker(const std::string& address, std::string token) {
    const auto url = backends::parse_url("tenure://" + address);
    connector_ = std::make_shared<backends::ChannelConnector>(
        loop_,
        backends::Servers{.endpoints = backends::endpoints_of(*url, 0).value(),
                          .token = std::move(token)},
        backends::ChannelConnector::Calls{.connected = [this](const auto& channel) { channel_ = channel; },
                                .failed = [](const Error&) {}});
    connector_->dial();
    run_until([this] { return channel_ != nullptr; });
  }
  ~Asker() {
    connector_->stop();
    if (channel_) {
      channel_->close();
    }
    loop_.poll();
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  Answer ask(const std::string& path, const google::protobuf::MessageLite& request,
             Until until = Until::end) {
    const auto call = begin(path, request);
    call->half_close();
    run_until([&] {
      return call->answer.status || (until == Until::message && !call->answer.messages.empty());
    });
    if (!call->answer.status) {
      call->cancel();
    }
    return call->answer;
  }

  /// A call that goes on.
  class Talk final : public grpc::ClientCall {
   public:
    Answer answer{};

   private:
    void received(std::string_view message) override { answer.messages.emplace_back(message); }
    void ended(const grpc::Status& how) override {
      if (!answer.status) {
        answer.status = how;
      }
    }
  };
  std::shared_ptr<Talk> begin(const std::string& path,
                              const google::protobuf::MessageLite& request) {
    auto talk = std::make_shared<Talk>();
    channel_->begin(path, talk);
    talk->send(request);
    return talk;
  }
  /// Also for what is seen elsewhere: it looks again and again.
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
