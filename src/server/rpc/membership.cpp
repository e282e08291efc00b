#include "server/rpc/membership.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "server/config/members.hpp"

namespace tenure::server {
namespace {

/// Completion of a membership change: replies with the header of the current state, or with the
/// error.
template <class Response>
auto reply_to(RpcContext& context, const ReplyPtr<Response>& reply) {
  return [&context, reply](const Result<void>& done) {
    if (!done) {
      reply_error(context, reply, done.error());
      return;
    }
    // The change is committed; a failed read only leaves the header empty.
    context.store.peek([&context, reply](const Result<View>& view) {
      if (view) {
        context.write_header(*view, *reply->response.mutable_header());
      }
      reply->complete();
    });
  };
}

}  // namespace

void write_members(const View& view, google::protobuf::RepeatedPtrField<v1::Member>& out) {
  std::vector<const MemberStatus*> members;
  for (const auto& member : view.members) {
    members.push_back(&member);
  }
  // View::members has no defined order.
  std::ranges::sort(members, {}, &MemberStatus::id);
  for (const auto* member : members) {
    auto& written = *out.Add();
    written.set_id(member->id);
    written.set_is_voter(member->is_voter);
    written.set_is_leader(member->id == view.log.leader);
    written.set_peer_address(member->peer_address);
    written.set_client_address(member->client_address);
    written.set_match_index(member->match_index);
    written.set_newest_version(member->newest_version);
    // Clamped: the protobuf field is unsigned.
    written.set_silent_ms(static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, static_cast<std::int64_t>(member->silent.count()))));
  }
}

void Membership::add_to(Routes& routes) {
  const std::string service = "/tenure.v1.Admin/";
  using enum auth::Permission;
  routes.add(service + "MemberList", authenticated, *this, &Membership::list);
  routes.add(service + "MemberAdd", admin_global, *this, &Membership::add);
  routes.add(service + "MemberRemove", admin_global, *this, &Membership::remove);
  routes.add(service + "TransferLeadership", admin_global, *this, &Membership::transfer);
}

void Membership::list(const v1::MemberListRequest& request,
                      const ReplyPtr<v1::MemberListResponse>& reply) {
  read_and_reply(context_, reply, consistency_of(request),
                 [](const View& view, v1::MemberListResponse& out) {
                   write_members(view, *out.mutable_members());
                   out.set_cluster_version(view.state.version.get());
                   return grpc::Status{};
                 });
}

void Membership::add(const v1::MemberAddRequest& request,
                     const ReplyPtr<v1::MemberAddResponse>& reply) {
  // A wrong address would be committed and could only be corrected by another change.
  if (const auto checked = check_member(
          {.id = request.id(), .peer = request.peer_address(), .client = request.client_address()});
      !checked) {
    reply->complete({grpc::StatusCode::invalid_argument, checked.error().detail});
    return;
  }
  context_.store.change_members(AddMember{.id = request.id(),
                                          .peer_address = request.peer_address(),
                                          .client_address = request.client_address()},
                                reply_to(context_, reply));
}

// The store rejects an unknown id, and a change that would leave too few voters.
void Membership::remove(const v1::MemberRemoveRequest& request,
                        const ReplyPtr<v1::MemberRemoveResponse>& reply) {
  context_.store.change_members(RemoveMember{.id = request.id()}, reply_to(context_, reply));
}

void Membership::transfer(const v1::TransferLeadershipRequest& request,
                          const ReplyPtr<v1::TransferLeadershipResponse>& reply) {
  context_.store.transfer_leadership(request.to(), reply_to(context_, reply));
}

}  // namespace tenure::server
