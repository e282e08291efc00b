#include "server/rpc/admin_service.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "server/requests/token_check.hpp"
#include "server/rpc/explain.hpp"
#include "server/rpc/top.hpp"
#include "server/rpc/unary.hpp"
#include "wire/answers.hpp"

namespace tenure::server {
namespace {

/// A page ends with the lock that exceeds this size: gRPC clients accept 4 MiB by default.
constexpr std::size_t page_bytes = std::size_t{1} << 20;

/// Writes all limits by name. for_each_limit() makes a new limit appear without a change here.
void write_limits(const core::Limits& limits,
                  google::protobuf::Map<std::string, std::uint64_t>& out) {
  core::for_each_limit(limits, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const core::ClusterTime&>) {
      out[name] = wire::milliseconds(value);
    } else {
      out[name] = value;
    }
  });
}

/// Cumulative counts, from which a client computes quantiles between two replies.
void write(const Totals::Buckets& buckets, google::protobuf::RepeatedPtrField<v1::Bucket>& out) {
  for (const auto& bucket : buckets) {
    auto& added = *out.Add();
    added.set_bound(bucket.bound);
    added.set_count(bucket.count);
  }
}

void write(const Totals& totals, v1::Counters& out) {
  out.set_granted(totals.granted);
  out.set_released(totals.released);
  out.set_expired(totals.expired);
  out.set_forced(totals.forced);
  out.set_deadlocks(totals.deadlocks);
  out.set_renewed(totals.renewed);
  out.set_commands(totals.commands);
  write(totals.acquire_seconds, *out.mutable_acquire_seconds());
  write(totals.commit_seconds, *out.mutable_commit_seconds());
}

/// No default case: the compiler reports a new verdict without a value.
v1::TokenVerdict verdict_of(TokenVerdict verdict) {
  switch (verdict) {
    case TokenVerdict::held: return v1::TOKEN_HELD;
    case TokenVerdict::superseded: return v1::TOKEN_SUPERSEDED;
    case TokenVerdict::ended: return v1::TOKEN_ENDED;
    case TokenVerdict::never_given: return v1::TOKEN_NEVER_GIVEN;
  }
  return v1::TOKEN_VERDICT_UNSPECIFIED;
}

core::ResourceKind kind_of(bool is_space) {
  return is_space ? core::ResourceKind::space : core::ResourceKind::name;
}

}  // namespace

void AdminService::add_to(Routes& routes) {
  const std::string service = "/tenure.v1.Admin/";
  using enum auth::Permission;
  // read_names: the handlers filter their replies, or check the name of the request.
  routes.add(service + "List", read_names, *this, &AdminService::list);
  routes.add(service + "Explain", read_names, *this, &AdminService::explain_one);
  routes.add(service + "ForceRelease", admin_name, *this, &AdminService::force_release);
  routes.add(service + "Compact", admin_global, *this, &AdminService::compact);
  routes.add(service + "Snapshot", admin_global, *this, &AdminService::snapshot);
  routes.add(service + "ReloadUsers", admin_global, *this, &AdminService::reload_users);
  routes.add(service + "Top", read_names, *this, &AdminService::top);
  routes.add(service + "CheckToken", read_names, *this, &AdminService::check);
  routes.add(service + "Status", authenticated, *this, &AdminService::status);
  members_.add_to(routes);
  snapshots_.add_to(routes);
}

void AdminService::list(const v1::ListRequest& request, const ReplyPtr<v1::ListResponse>& reply) {
  const auto limit = page_size(request.limit());
  // The position of a page is the last lock of the page before, not an index: locks come and go
  // between the pages.
  core::Resource after{.name = request.after(), .kind = kind_of(request.after_is_space())};
  // Denied only if no name under the prefix is readable; otherwise the page omits unreadable names.
  if (!access_of(reply->principal).may_any(auth::Verb::read, request.prefix()) &&
      reply_if_denied(reply, auth::Verb::read, request.prefix())) {
    return;
  }
  read_and_reply(context_, reply, consistency_of(request),
                 [after, limit, prefix = request.prefix(), access = access_of(reply->principal)](
                     const View& view, v1::ListResponse& out) {
                   const auto& locks = view.state.locks.locks();
                   // A position before the prefix must not start the page outside of the selection.
                   auto it = after.name.view() < prefix
                                 ? locks.lower_bound(core::ResourceView{.name = prefix})
                                 : locks.upper_bound(after);
                   const auto is_wanted = [&] {
                     it = auth::first_readable(locks, it, access);
                     return it != locks.end() && it->first.name.starts_with(prefix);
                   };
                   std::size_t bytes = 0;
                   for (std::uint32_t n = 0; n < limit && bytes < page_bytes && is_wanted(); ++n) {
                     auto& lock = *out.add_locks();
                     write(it->first, it->second, view, lock);
                     bytes += lock.ByteSizeLong();
                     ++it;
                   }
                   // Also true if the page ended early because of its size.
                   out.set_more(is_wanted());
                   return grpc::Status{};
                 });
}

void AdminService::explain_one(const v1::ExplainRequest& request,
                               const ReplyPtr<v1::ExplainResponse>& reply) {
  core::Resource resource{.name = request.name(), .kind = kind_of(request.is_space())};
  if (resource.name.empty()) {
    reply->complete({grpc::StatusCode::invalid_argument, "name is required"});
    return;
  }
  if (reply_if_denied(reply, auth::Verb::read, request.name())) {
    return;
  }
  read_and_reply(
      context_, reply, consistency_of(request),
      [resource, access = access_of(reply->principal)](const View& view, v1::ExplainResponse& out) {
        explain(resource, view, access, out);
        return grpc::Status{};
      });
}

void AdminService::force_release(const v1::ForceReleaseRequest& request,
                                 const ReplyPtr<v1::ForceReleaseResponse>& reply) {
  if (reply_if_denied(reply, auth::Verb::admin, request.name())) {
    return;
  }
  core::ForceRelease force{
      .resource = {.name = request.name(), .kind = kind_of(request.is_space())}};
  // 0 releases all holders; a token restricts the release to one of them.
  if (request.fencing_token() != 0) {
    force.token = core::FencingToken(request.fencing_token());
  }
  const auto access = access_of(reply->principal);
  // The event records the operator. Without users the address is the best evidence.
  force.operator_name = access.user() == nullptr ? reply->peer() : access.user()->name;
  force.reason = request.reason();
  propose_and_reply<core::Forced>(context_, reply, std::move(force),
                                  [](const core::Forced& forced, v1::ForceReleaseResponse& out) {
                                    out.set_holds(forced.holds);
                                  });
}

void AdminService::compact(const v1::CompactRequest& request,
                           const ReplyPtr<v1::CompactResponse>& reply) {
  propose_and_reply<core::Done>(context_, reply,
                                core::Compact{.revision = core::Revision(request.revision())},
                                [](const core::Done&, v1::CompactResponse&) {});
}

void AdminService::snapshot(const v1::SnapshotRequest& /*request*/,
                            const ReplyPtr<v1::SnapshotResponse>& reply) {
  // The callback runs when the snapshot is durable.
  context_.store.take_snapshot([&context = context_, reply](const Result<std::uint64_t>& index) {
    if (!index) {
      reply_error(context, reply, index.error());
      return;
    }
    reply->response.set_index(*index);
    // The snapshot exists; a failed read only leaves the header empty.
    context.store.peek([&context, reply](const Result<View>& view) {
      if (view) {
        context.write_header(*view, *reply->response.mutable_header());
      }
      reply->complete();
    });
  });
}

void AdminService::reload_users(const v1::ReloadUsersRequest& /*request*/,
                                const ReplyPtr<v1::ReloadUsersResponse>& reply) {
  // An error, not success: an operator would otherwise believe that users are now enforced.
  if (!context_.reload && context_.authorizer == nullptr) {
    reply->complete({grpc::StatusCode::failed_precondition,
                     "neither users nor certificates are configured; start tenured with "
                     "--auth-file or --tls-cert"});
    return;
  }
  // The hook reloads the certificates too.
  const auto users = context_.reload ? context_.reload() : context_.authorizer->reload();
  if (!users) {
    reply->complete({grpc::StatusCode::failed_precondition, users.error().detail});
    return;
  }
  reply->response.set_users(*users);
  context_.store.peek([&context = context_, reply](const Result<View>& view) {
    if (view) {
      context.write_header(*view, *reply->response.mutable_header());
    }
    reply->complete();
  });
}

void AdminService::top(const v1::TopRequest& request, const ReplyPtr<v1::TopResponse>& reply) {
  if (!access_of(reply->principal).may_any(auth::Verb::read, request.prefix()) &&
      reply_if_denied(reply, auth::Verb::read, request.prefix())) {
    return;
  }
  read_and_reply(context_, reply, consistency_of(request),
                 [&context = context_, request, access = access_of(reply->principal)](
                     const View& view, v1::TopResponse& out) {
                   out.set_version(context.version);
                   if (context.metrics != nullptr) {
                     write(context.metrics->totals(), *out.mutable_counters());
                   }
                   write_top(request, view, access, out);
                   return grpc::Status{};
                 });
}

void AdminService::check(const v1::CheckTokenRequest& request,
                         const ReplyPtr<v1::CheckTokenResponse>& reply) {
  if (reply_if_denied(reply, auth::Verb::read, request.name())) {
    return;
  }
  core::Resource resource{.name = request.name(), .kind = kind_of(request.is_space())};
  if (resource.name.empty() || request.fencing_token() == 0) {
    reply->complete({grpc::StatusCode::invalid_argument, "name and token are required"});
    return;
  }
  read_and_reply(context_, reply, consistency_of(request),
                 [resource, token = core::FencingToken(request.fencing_token())](
                     const View& view, v1::CheckTokenResponse& out) {
                   const auto found = check_token(view.state, resource, token);
                   out.set_verdict(verdict_of(found.verdict));
                   out.set_newest_token(found.newest.get());
                   if (found.holder != nullptr) {
                     const auto& items = found.holder->items;
                     // The hold may have several items; the reply shows the one at this lock.
                     const auto* item = std::ranges::find_if(
                         items, [&](const core::Item& one) { return one.is_at(resource); });
                     write_holder(*found.holder, item == items.end() ? items.front() : *item, view,
                                  *out.mutable_holder());
                   }
                   return grpc::Status{};
                 });
}

void AdminService::status(const v1::StatusRequest& /*request*/,
                          const ReplyPtr<v1::StatusResponse>& reply) {
  context_.store.peek([&context = context_, reply](const Result<View>& view) {
    if (!view) {
      reply->complete(wire::status_of(view.error()));
      return;
    }
    const auto& state = view->state;
    const auto& log = view->log;
    context.write_header(*view, *reply->response.mutable_header());
    reply->response.set_version(context.version);
    reply->response.set_is_leader(log.is_leader);
    reply->response.set_leader_id(log.leader);
    reply->response.set_commit_index(log.commit_index);
    reply->response.set_applied_index(log.applied_index);
    reply->response.set_first_index(log.first_index);
    reply->response.set_last_index(log.last_index);
    reply->response.set_snapshot_index(log.snapshot_index);
    reply->response.set_log_bytes(log.log_bytes);
    reply->response.set_snapshot_bytes(log.snapshot_bytes);
    reply->response.set_has_space(log.has_space);
    reply->response.set_locks(state.locks.locks().size());
    reply->response.set_holds(state.locks.holds().size());
    reply->response.set_waits(state.locks.waits().size());
    reply->response.set_leases(state.leases.all().size());
    reply->response.set_compact_revision(state.events.compact_revision().get());
    reply->response.set_cluster_time_ms(wire::milliseconds(view->now));
    reply->response.set_leader_address(log.leader_address);
    reply->response.set_term(log.term);
    reply->response.set_cluster_version(state.version.get());
    write_members(*view, *reply->response.mutable_members());
    write_limits(state.limits, *reply->response.mutable_limits());
    reply->complete();
  });
}

}  // namespace tenure::server
