#pragma once

#include "server/rpc/desk.hpp"
#include "tenure/v1/admin.grpc.pb.h"

namespace tenure::server {

/// For operators; see proto/tenure/v1/admin.proto.
class AdminService final : public v1::Admin::CallbackService {
 public:
  explicit AdminService(Desk& desk) : desk_(desk) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListRequest* request,
                                 v1::ListResponse* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* ForceRelease(grpc::CallbackServerContext* context,
                                         const v1::ForceReleaseRequest* request,
                                         v1::ForceReleaseResponse* response) override;
  grpc::ServerUnaryReactor* Compact(grpc::CallbackServerContext* context,
                                    const v1::CompactRequest* request,
                                    v1::CompactResponse* response) override;
  grpc::ServerUnaryReactor* Snapshot(grpc::CallbackServerContext* context,
                                     const v1::SnapshotRequest* request,
                                     v1::SnapshotResponse* response) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const v1::StatusRequest* request,
                                   v1::StatusResponse* response) override;

 private:
  Desk& desk_;
};

}  // namespace tenure::server
