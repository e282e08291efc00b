#pragma once

#include "server/rpc/desk.hpp"
#include "tenure/v1/lock.grpc.pb.h"

namespace tenure::server {

/// The lock service as gRPC calls it: translates, proposes, answers. What each call promises stands
/// in proto/tenure/v1/lock.proto.
class LockService final : public v1::LockService::CallbackService {
 public:
  explicit LockService(Desk& desk) : desk_(desk) {}

  grpc::ServerUnaryReactor* Lock(grpc::CallbackServerContext* context,
                                 const v1::LockRequest* request,
                                 v1::LockResponse* response) override;
  grpc::ServerUnaryReactor* TryLock(grpc::CallbackServerContext* context,
                                    const v1::TryLockRequest* request,
                                    v1::LockResponse* response) override;
  grpc::ServerUnaryReactor* Unlock(grpc::CallbackServerContext* context,
                                   const v1::UnlockRequest* request,
                                   v1::UnlockResponse* response) override;

  grpc::ServerUnaryReactor* LeaseGrant(grpc::CallbackServerContext* context,
                                       const v1::LeaseGrantRequest* request,
                                       v1::LeaseGrantResponse* response) override;
  grpc::ServerUnaryReactor* LeaseRevoke(grpc::CallbackServerContext* context,
                                        const v1::LeaseRevokeRequest* request,
                                        v1::LeaseRevokeResponse* response) override;
  grpc::ServerBidiReactor<v1::LeaseKeepAliveRequest, v1::LeaseKeepAliveResponse>* LeaseKeepAlive(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* LeaseTimeToLive(grpc::CallbackServerContext* context,
                                            const v1::LeaseTimeToLiveRequest* request,
                                            v1::LeaseTimeToLiveResponse* response) override;
  grpc::ServerUnaryReactor* Leases(grpc::CallbackServerContext* context,
                                   const v1::LeasesRequest* request,
                                   v1::LeasesResponse* response) override;

  grpc::ServerBidiReactor<v1::WatchRequest, v1::WatchResponse>* Watch(
      grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<v1::SessionRequest, v1::SessionResponse>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  Desk& desk_;
};

}  // namespace tenure::server
