#pragma once

#include "server/rpc/desk.hpp"
#include "server/rpc/membership.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/snapshot_reads.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// For operators; see proto/tenure/v1/admin.proto.
class AdminService {
 public:
  explicit AdminService(Desk& desk) : desk_(desk), members_(desk), snapshots_(desk) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  void list(const v1::ListRequest& request, const ReplyTo<v1::ListResponse>& reply);
  void explain_one(const v1::ExplainRequest& request, const ReplyTo<v1::ExplainResponse>& reply);
  void force_release(const v1::ForceReleaseRequest& request,
                     const ReplyTo<v1::ForceReleaseResponse>& reply);
  void compact(const v1::CompactRequest& request, const ReplyTo<v1::CompactResponse>& reply);
  void snapshot(const v1::SnapshotRequest& request, const ReplyTo<v1::SnapshotResponse>& reply);
  void reload_users(const v1::ReloadUsersRequest& request,
                    const ReplyTo<v1::ReloadUsersResponse>& reply);
  void top(const v1::TopRequest& request, const ReplyTo<v1::TopResponse>& reply);
  void check(const v1::CheckTokenRequest& request, const ReplyTo<v1::CheckTokenResponse>& reply);
  void status(const v1::StatusRequest& request, const ReplyTo<v1::StatusResponse>& reply);

  Desk& desk_;
  Membership members_;
  SnapshotReads snapshots_;
};

}  // namespace tenure::server
