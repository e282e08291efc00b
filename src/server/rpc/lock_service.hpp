#pragma once

#include "server/rpc/routes.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::server {

/// Implements LockService: decodes requests, proposes commands and encodes replies.
/// proto/tenure/v1/lock.proto documents the semantics.
///
/// Unary calls serve generated clients in any language; the Session stream also pipelines
/// operations and reports lost leases. Store thread only.
class LockService {
 public:
  explicit LockService(RpcContext& context) : context_(context) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  void lock(const v1::LockRequest& request, const ReplyPtr<v1::LockResponse>& reply);
  void try_lock(const v1::TryLockRequest& request, const ReplyPtr<v1::LockResponse>& reply);
  void unlock(const v1::UnlockRequest& request, const ReplyPtr<v1::UnlockResponse>& reply);
  void downgrade(const v1::DowngradeRequest& request, const ReplyPtr<v1::DowngradeResponse>& reply);
  void grant(const v1::LeaseGrantRequest& request, const ReplyPtr<v1::LeaseGrantResponse>& reply);
  void revoke(const v1::LeaseRevokeRequest& request,
              const ReplyPtr<v1::LeaseRevokeResponse>& reply);
  /// A lease that the user may not see is reported as unknown.
  void time_to_live(const v1::LeaseTimeToLiveRequest& request,
                    const ReplyPtr<v1::LeaseTimeToLiveResponse>& reply);
  void leases(const v1::LeasesRequest& request, const ReplyPtr<v1::LeasesResponse>& reply);

  RpcContext& context_;
};

}  // namespace tenure::server
