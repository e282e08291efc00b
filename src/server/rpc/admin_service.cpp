#include "server/rpc/admin_service.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "server/rpc/explain.hpp"
#include "server/rpc/unary.hpp"
#include "wire/answers.hpp"

namespace tenure::server {
namespace {

constexpr std::uint32_t page_max = 1000;

core::PlaceKind kind_of(bool is_space) {
  return is_space ? core::PlaceKind::space : core::PlaceKind::name;
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::List(grpc::CallbackServerContext* context,
                                             const v1::ListRequest* request,
                                             v1::ListResponse* response) {
  const auto limit = request->limit() == 0 ? page_max : std::min(request->limit(), page_max);
  core::Place after{.name = request->after(), .kind = kind_of(request->after_is_space())};
  return look(desk_, *context, *response,
              [after, limit, prefix = request->prefix()](const View& view, v1::ListResponse& out) {
                const auto& locks = view.state.locks.locks();
                auto it = after.name < prefix ? locks.lower_bound({.name = prefix})
                                              : locks.upper_bound(after);
                const auto is_wanted = [&] {
                  return it != locks.end() && it->first.name.starts_with(prefix);
                };
                for (std::uint32_t n = 0; n < limit && is_wanted(); ++n, ++it) {
                  write(it->first, it->second, view, *out.add_locks());
                }
                out.set_more(is_wanted());
                return grpc::Status::OK;
              });
}

grpc::ServerUnaryReactor* AdminService::Explain(grpc::CallbackServerContext* context,
                                                const v1::ExplainRequest* request,
                                                v1::ExplainResponse* response) {
  core::Place place{.name = request->name(), .kind = kind_of(request->is_space())};
  if (place.name.empty()) {
    return answer(*context, {grpc::StatusCode::INVALID_ARGUMENT, "which name?"});
  }
  return look(desk_, *context, *response, [place](const View& view, v1::ExplainResponse& out) {
    explain(place, view, out);
    return grpc::Status::OK;
  });
}

grpc::ServerUnaryReactor* AdminService::ForceRelease(grpc::CallbackServerContext* context,
                                                     const v1::ForceReleaseRequest* request,
                                                     v1::ForceReleaseResponse* response) {
  core::ForceRelease force{
      .place = {.name = request->name(), .kind = kind_of(request->is_space())}};
  if (request->fencing_token() != 0) {
    force.token = core::FencingToken(request->fencing_token());
  }
  return decide<core::Forced>(desk_, *context, std::move(force), *response,
                              [](const core::Forced& forced, v1::ForceReleaseResponse& out) {
                                out.set_holds(forced.holds);
                              });
}

grpc::ServerUnaryReactor* AdminService::Compact(grpc::CallbackServerContext* context,
                                                const v1::CompactRequest* request,
                                                v1::CompactResponse* response) {
  return decide<core::Done>(desk_, *context,
                            core::Compact{.revision = core::Revision(request->revision())},
                            *response, [](const core::Done&, v1::CompactResponse&) {});
}

grpc::ServerUnaryReactor* AdminService::Snapshot(grpc::CallbackServerContext* context,
                                                 const v1::SnapshotRequest* /*request*/,
                                                 v1::SnapshotResponse* response) {
  auto* reactor = context->DefaultReactor();
  desk_.store.take_snapshot([&desk = desk_, reactor, response](const Result<std::uint64_t>& index) {
    if (!index) {
      reactor->Finish(wire::status_of(index.error()));
      return;
    }
    response->set_index(*index);
    desk.store.peek([&desk, reactor, response](const Result<View>& view) {
      if (view) {
        desk.write_header(*view, *response->mutable_header());
      }
      reactor->Finish(grpc::Status::OK);
    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::Status(grpc::CallbackServerContext* context,
                                               const v1::StatusRequest* /*request*/,
                                               v1::StatusResponse* response) {
  auto* reactor = context->DefaultReactor();
  desk_.store.peek([&desk = desk_, reactor, response](const Result<View>& view) {
    if (!view) {
      reactor->Finish(wire::status_of(view.error()));
      return;
    }
    const auto& [state, log, now] = *view;
    desk.write_header(*view, *response->mutable_header());
    response->set_version(desk.version);
    response->set_is_leader(log.is_leader);
    response->set_leader_id(log.leader);
    response->set_commit_index(log.commit);
    response->set_applied_index(log.applied);
    response->set_first_index(log.first);
    response->set_last_index(log.last);
    response->set_snapshot_index(log.snapshot);
    response->set_log_bytes(log.log_bytes);
    response->set_snapshot_bytes(log.snapshot_bytes);
    response->set_has_space(log.has_space);
    response->set_locks(state.locks.locks().size());
    response->set_holds(state.locks.holds().size());
    response->set_waits(state.locks.waits().size());
    response->set_leases(state.leases.all().size());
    response->set_compact_revision(state.events.compact_revision().get());
    response->set_cluster_time_ms(wire::milliseconds(now));
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace tenure::server
