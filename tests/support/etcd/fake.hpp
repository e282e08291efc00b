#pragma once

#ifdef TENURE_WITH_SERVER  // which has the server's end of gRPC

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "backends/etcd/etcd.pb.h"
#include "grpc/server.hpp"

namespace tenure::test {

/// Fake etcd: a gRPC server that answers as the test specifies.
class FakeEtcd {
 public:
  using Message = std::shared_ptr<google::protobuf::MessageLite>;
  /// Some messages of a stream, which goes on.
  using Messages = std::vector<Message>;
  /// A message, or how it ends without one.
  using Reply = std::variant<Message, grpc::Status, Messages>;
  using Answer = std::function<Reply(std::string_view request)>;

  FakeEtcd() {
    using namespace backends::etcd;
    answer("/etcdserverpb.Maintenance/Status", [](auto) {
      auto status = std::make_shared<pb::StatusResponse>();
      status->mutable_header()->set_cluster_id(1);
      status->set_version("3.4.23");
      status->set_leader(1);
      return status;
    });
    answer("/etcdserverpb.KV/Range", [](auto) { return std::make_shared<pb::RangeResponse>(); });
    answer("/etcdserverpb.Lease/LeaseGrant", [](auto) {
      auto granted = std::make_shared<pb::LeaseGrantResponse>();
      granted->set_ttl(60);
      return granted;
    });
    answer("/etcdserverpb.Lease/LeaseRevoke",
           [](auto) { return std::make_shared<pb::LeaseRevokeResponse>(); });
  }
  ~FakeEtcd() {
    if (server_) {
      server_->stop_accepting();
      server_->stop(std::chrono::milliseconds(0));
    }
    work_.reset();
    loop_.stop();
  }
  FakeEtcd(const FakeEtcd&) = delete;
  FakeEtcd& operator=(const FakeEtcd&) = delete;

  /// REQUIRES: before start().
  void answer(std::string path, Answer answer) {
    context_.router.add(
        std::move(path),
        {.open = [answer = std::move(answer)](
                     const grpc::CallInfo& info) { return std::make_shared<Call>(info, answer); },
         .ended = [](grpc::StatusCode) {}});
  }
  [[nodiscard]] std::string start() {
    server_ = std::make_shared<grpc::Server>(context_, grpc::ServerOptions{});
    const auto port = server_->listen().value();
    server_->open();
    thread_ = std::jthread([this] { loop_.run(); });
    return "etcd://127.0.0.1:" + std::to_string(port);
  }

 private:
  class Call final : public grpc::Call {
   public:
    Call(const grpc::CallInfo& info, Answer answer)
        : grpc::Call(info), answer_(std::move(answer)) {}

   private:
    void received(std::string_view message) override {
      const auto reply = answer_(message);
      if (const auto* sent = std::get_if<Message>(&reply)) {
        send(**sent);
        finish({});
      } else if (const auto* some = std::get_if<Messages>(&reply)) {
        for (const auto& one : *some) {
          send(*one);
        }
      } else {
        finish(std::get<grpc::Status>(reply));
      }
    }
    void half_closed() override {}
    void closed() override {}

    Answer answer_;
  };

  boost::asio::io_context loop_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_{
      loop_.get_executor()};
  grpc::ServerContext context_{.loop = loop_};
  std::shared_ptr<grpc::Server> server_;
  std::jthread thread_;
};

}  // namespace tenure::test

#endif
