#pragma once

#include "server/rpc/desk.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::server {

/// The lock service: translates, proposes, answers. What each call promises stands in
/// proto/tenure/v1/lock.proto.
class LockService {
 public:
  explicit LockService(Desk& desk) : desk_(desk) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  void lock(const v1::LockRequest& request, const ReplyTo<v1::LockResponse>& reply);
  void try_lock(const v1::TryLockRequest& request, const ReplyTo<v1::LockResponse>& reply);
  void unlock(const v1::UnlockRequest& request, const ReplyTo<v1::UnlockResponse>& reply);
  void downgrade(const v1::DowngradeRequest& request, const ReplyTo<v1::DowngradeResponse>& reply);
  void grant(const v1::LeaseGrantRequest& request, const ReplyTo<v1::LeaseGrantResponse>& reply);
  void revoke(const v1::LeaseRevokeRequest& request, const ReplyTo<v1::LeaseRevokeResponse>& reply);
  void time_to_live(const v1::LeaseTimeToLiveRequest& request,
                    const ReplyTo<v1::LeaseTimeToLiveResponse>& reply);
  void leases(const v1::LeasesRequest& request, const ReplyTo<v1::LeasesResponse>& reply);

  Desk& desk_;
};

}  // namespace tenure::server
