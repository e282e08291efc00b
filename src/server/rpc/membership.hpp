#pragma once

#include "server/rpc/desk.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// The calls of Admin about who is in the cluster.
class Membership {
 public:
  explicit Membership(Desk& desk) : desk_(desk) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  void list(const v1::MemberListRequest& request, const ReplyTo<v1::MemberListResponse>& reply);
  void add(const v1::MemberAddRequest& request, const ReplyTo<v1::MemberAddResponse>& reply);
  void remove(const v1::MemberRemoveRequest& request,
              const ReplyTo<v1::MemberRemoveResponse>& reply);
  void transfer(const v1::TransferLeadershipRequest& request,
                const ReplyTo<v1::TransferLeadershipResponse>& reply);

  Desk& desk_;
};

/// By id.
void write_members(const View& view, google::protobuf::RepeatedPtrField<v1::Member>& out);

}  // namespace tenure::server
