#pragma once

#include "server/rpc/routes.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// Admin calls for cluster membership.
///
/// A change is acknowledged when its configuration is committed. One change at a time; the rules
/// that keep a quorum are those of the store. Store thread only.
class Membership {
 public:
  explicit Membership(RpcContext& context) : context_(context) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  void list(const v1::MemberListRequest& request, const ReplyPtr<v1::MemberListResponse>& reply);
  void add(const v1::MemberAddRequest& request, const ReplyPtr<v1::MemberAddResponse>& reply);
  void remove(const v1::MemberRemoveRequest& request,
              const ReplyPtr<v1::MemberRemoveResponse>& reply);
  /// Target 0: the voter whose log is most complete.
  void transfer(const v1::TransferLeadershipRequest& request,
                const ReplyPtr<v1::TransferLeadershipResponse>& reply);

  RpcContext& context_;
};

/// Writes the members, sorted by id.
void write_members(const View& view, google::protobuf::RepeatedPtrField<v1::Member>& out);

}  // namespace tenure::server
