#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "server/rpc/rpc_server.hpp"
#include "support/store/memory_store.hpp"
#include "tenure/v1/admin.grpc.pb.h"
#include "tenure/v1/lock.grpc.pb.h"

namespace tenure::test {

/// Real gRPC server on loopback with the real state machine, and a client. Every wait is bounded by
/// `test_timeout`.
class RpcTest : public ::testing::Test {
 public:
  static constexpr std::chrono::seconds test_timeout{20};

  static std::unique_ptr<::grpc::ClientContext> context() {
    auto made = std::make_unique<::grpc::ClientContext>();
    made->set_deadline(std::chrono::system_clock::now() + test_timeout);
    return made;
  }

 protected:
  RpcTest() : RpcTest(server::RpcOptions{}, core::Limits{}) {}
  RpcTest(server::RpcOptions options, const core::Limits& limits)
      : store_({.limits = limits}), server_(store_, with_any_port(std::move(options))) {
    store_.start();
    const auto port = server_.start();
    EXPECT_TRUE(port.has_value());
    address_ = "127.0.0.1:" + std::to_string(port.value_or(0));
    channel_ = connect();
    locks_ = v1::LockService::NewStub(channel_);
    admin_ = v1::Admin::NewStub(channel_);
  }
  ~RpcTest() override {
    server_.stop();
    store_.stop();
  }

  /// Stub on a separate connection.
  [[nodiscard]] std::shared_ptr<::grpc::Channel> connect() const {
    ::grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return ::grpc::CreateCustomChannel(address_, ::grpc::InsecureChannelCredentials(), arguments);
  }

  [[nodiscard]] std::uint64_t lease(std::uint64_t ttl_ms = 60'000) {
    v1::LeaseGrantRequest request;
    request.set_ttl_ms(ttl_ms);
    v1::LeaseGrantResponse response;
    const auto status = locks_->LeaseGrant(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.id();
  }

  [[nodiscard]] static v1::LockRequest lock_request(const std::string& name, std::uint64_t lease) {
    v1::LockRequest request;
    request.set_name(name);
    request.set_lease_id(lease);
    return request;
  }

  v1::LockResponse lock(const v1::LockRequest& request) {
    v1::LockResponse response;
    const auto status = locks_->Lock(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::LockResponse lock(const std::string& name, std::uint64_t lease) {
    return lock(lock_request(name, lease));
  }
  ::grpc::Status lock_status(const v1::LockRequest& request) {
    v1::LockResponse response;
    return locks_->Lock(context().get(), request, &response);
  }

  v1::LockResponse try_lock(const std::string& name, std::uint64_t lease,
                            v1::Mode mode = v1::MODE_UNSPECIFIED) {
    v1::TryLockRequest request;
    request.set_name(name);
    request.set_lease_id(lease);
    request.set_mode(mode);
    v1::LockResponse response;
    const auto status = locks_->TryLock(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  ::grpc::Status unlock(std::uint64_t lease, std::uint64_t token) {
    v1::UnlockRequest request;
    request.set_lease_id(lease);
    request.set_fencing_token(token);
    v1::UnlockResponse response;
    return locks_->Unlock(context().get(), request, &response);
  }

  ::grpc::Status revoke(std::uint64_t lease) {
    v1::LeaseRevokeRequest request;
    request.set_id(lease);
    v1::LeaseRevokeResponse response;
    return locks_->LeaseRevoke(context().get(), request, &response);
  }

  /// Polls until the number of waits is `count`, for at most test_timeout.
  [[nodiscard]] bool becomes_true(const std::function<bool(const server::View&)>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + test_timeout;
    bool holds = false;
    while (!holds && std::chrono::steady_clock::now() < deadline) {
      store_.look([&](const server::View& view) { holds = is_so(view); });
    }
    return holds;
  }
  [[nodiscard]] bool waits_become(std::size_t count) {
    return becomes_true(
        [&](const server::View& view) { return view.state.locks.waits().size() == count; });
  }

  MemoryStore store_;
  server::RpcServer server_;
  std::string address_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<v1::LockService::Stub> locks_;
  std::unique_ptr<v1::Admin::Stub> admin_;

 private:
  static server::RpcOptions with_any_port(server::RpcOptions options) {
    options.address = "127.0.0.1:0";
    return options;
  }
};

/// Lock call in progress, on a thread of its own.
class PendingLock {
 public:
  PendingLock(v1::LockService::Stub& locks, const v1::LockRequest& request) {
    context_.set_deadline(std::chrono::system_clock::now() + RpcTest::test_timeout);
    call_ = locks.AsyncLock(&context_, request, &queue_);
    call_->Finish(&response_, &status_, this);
  }
  ~PendingLock() {
    if (!is_finished_) {
      context_.TryCancel();
      (void)wait();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  PendingLock(const PendingLock&) = delete;
  PendingLock& operator=(const PendingLock&) = delete;

  void cancel() { context_.TryCancel(); }
  [[nodiscard]] ::grpc::Status wait() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    is_finished_ = true;
    return status_;
  }
  [[nodiscard]] const v1::LockResponse& response() const { return response_; }

 private:
  ::grpc::ClientContext context_;
  ::grpc::CompletionQueue queue_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<v1::LockResponse>> call_;
  v1::LockResponse response_;
  ::grpc::Status status_;
  bool is_finished_ = false;
};

}  // namespace tenure::test
