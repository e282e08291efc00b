#pragma once

#include "server/rpc/membership.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/rpc/snapshot_read_service.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// Implements the Admin service; see proto/tenure/v1/admin.proto.
///
/// Every handler checks the permission first, then validates the request, then reads or proposes. A
/// request for a name needs the right on that name; the permission of the route only excludes
/// clients that have the right on no name. Store thread only.
class AdminService {
 public:
  explicit AdminService(RpcContext& context)
      : context_(context), members_(context), snapshots_(context) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  void list(const v1::ListRequest& request, const ReplyPtr<v1::ListResponse>& reply);
  /// Describes one lock; see explain.hpp.
  void explain_one(const v1::ExplainRequest& request, const ReplyPtr<v1::ExplainResponse>& reply);
  void force_release(const v1::ForceReleaseRequest& request,
                     const ReplyPtr<v1::ForceReleaseResponse>& reply);
  void compact(const v1::CompactRequest& request, const ReplyPtr<v1::CompactResponse>& reply);
  void snapshot(const v1::SnapshotRequest& request, const ReplyPtr<v1::SnapshotResponse>& reply);
  /// A failed reload leaves the present users in force and returns the reason.
  void reload_users(const v1::ReloadUsersRequest& request,
                    const ReplyPtr<v1::ReloadUsersResponse>& reply);
  void top(const v1::TopRequest& request, const ReplyPtr<v1::TopResponse>& reply);
  void check(const v1::CheckTokenRequest& request, const ReplyPtr<v1::CheckTokenResponse>& reply);
  /// Answers from the local state on every member: an operator needs it most without a leader.
  void status(const v1::StatusRequest& request, const ReplyPtr<v1::StatusResponse>& reply);

  RpcContext& context_;
  Membership members_;
  SnapshotReadService snapshots_;
};

}  // namespace tenure::server
