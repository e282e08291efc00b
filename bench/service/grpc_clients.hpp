#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "etcd_lease.grpc.pb.h"
#include "etcd_lock.grpc.pb.h"
#include "tenure/v1/lock.grpc.pb.h"

namespace tenure::bench {

using Channel = std::shared_ptr<::grpc::Channel>;

inline void insist(const ::grpc::Status& status, const char* what) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
    std::exit(1);
  }
}

inline Channel connect(const std::string& address) {
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return ::grpc::CreateCustomChannel(address, ::grpc::InsecureChannelCredentials(), arguments);
}

/// One call under way.
struct Turn {
  ::grpc::CompletionQueue& queue;
  void* tag;
  std::optional<::grpc::ClientContext> context{};
  ::grpc::Status status{};
};

/// Lock that a client acquires.
struct LockSpec {
  std::string name;
  std::chrono::seconds ttl = std::chrono::minutes(10);  ///< TTL of its lease.
};

/// One of Tenure's clients, with a lease of its own.
class TenureClient {
 public:
  TenureClient(const Channel& channel, const LockSpec& spec)
      : stub_(v1::LockService::NewStub(channel)) {
    ::grpc::ClientContext context;
    v1::LeaseGrantRequest request;
    request.set_ttl_ms(static_cast<std::uint64_t>(std::chrono::milliseconds(spec.ttl).count()));
    v1::LeaseGrantResponse lease;
    insist(stub_->LeaseGrant(&context, request, &lease), "LeaseGrant");
    lock_.set_name(spec.name);
    lock_.set_lease_id(lease.id());
    unlock_.set_lease_id(lease.id());
  }

  /// Waits for the answer.
  void lock() {
    ::grpc::ClientContext context;
    locked_.Clear();
    insist(stub_->Lock(&context, lock_, &locked_), "Lock");
  }
  void unlock() {
    ::grpc::ClientContext context;
    unlock_.set_fencing_token(locked_.fencing_token());
    insist(stub_->Unlock(&context, unlock_, &unlocked_), "Unlock");
  }
  // The same, reported by the queue.
  void lock(Turn& turn) {
    locked_.Clear();
    locking_ = stub_->AsyncLock(&*turn.context, lock_, &turn.queue);
    locking_->Finish(&locked_, &turn.status, turn.tag);
  }
  void unlock(Turn& turn) {
    unlock_.set_fencing_token(locked_.fencing_token());
    unlocking_ = stub_->AsyncUnlock(&*turn.context, unlock_, &turn.queue);
    unlocking_->Finish(&unlocked_, &turn.status, turn.tag);
  }

 private:
  std::unique_ptr<v1::LockService::Stub> stub_;
  v1::LockRequest lock_;
  v1::LockResponse locked_;
  v1::UnlockRequest unlock_;
  v1::UnlockResponse unlocked_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<v1::LockResponse>> locking_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<v1::UnlockResponse>> unlocking_;
};

/// One of etcd's.
class EtcdClient {
 public:
  EtcdClient(const Channel& channel, const LockSpec& spec)
      : stub_(v3lockpb::Lock::NewStub(channel)) {
    ::grpc::ClientContext context;
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(spec.ttl.count());
    etcdserverpb::LeaseGrantResponse lease;
    insist(etcdserverpb::Lease::NewStub(channel)->LeaseGrant(&context, request, &lease),
           "LeaseGrant");
    lock_.set_name(spec.name);
    lock_.set_lease(lease.id());
  }

  /// Waits for the answer.
  void lock() {
    ::grpc::ClientContext context;
    insist(stub_->Lock(&context, lock_, &locked_), "Lock");
  }
  void unlock() {
    ::grpc::ClientContext context;
    unlock_.set_key(locked_.key());
    insist(stub_->Unlock(&context, unlock_, &unlocked_), "Unlock");
  }
  // The same, reported by the queue.
  void lock(Turn& turn) {
    locking_ = stub_->AsyncLock(&*turn.context, lock_, &turn.queue);
    locking_->Finish(&locked_, &turn.status, turn.tag);
  }
  void unlock(Turn& turn) {
    unlock_.set_key(locked_.key());
    unlocking_ = stub_->AsyncUnlock(&*turn.context, unlock_, &turn.queue);
    unlocking_->Finish(&unlocked_, &turn.status, turn.tag);
  }

 private:
  std::unique_ptr<v3lockpb::Lock::Stub> stub_;
  v3lockpb::LockRequest lock_;
  v3lockpb::LockResponse locked_;
  v3lockpb::UnlockRequest unlock_;
  v3lockpb::UnlockResponse unlocked_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<v3lockpb::LockResponse>> locking_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<v3lockpb::UnlockResponse>> unlocking_;
};

}  // namespace tenure::bench
