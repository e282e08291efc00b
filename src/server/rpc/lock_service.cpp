#include "server/rpc/lock_service.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/keep_alive_stream.hpp"
#include "server/rpc/lock_call.hpp"
#include "server/rpc/session_stream.hpp"
#include "server/rpc/unary.hpp"
#include "server/rpc/watch_stream.hpp"
#include "sys/chance.hpp"
#include "wire/answers.hpp"
#include "wire/items.hpp"
#include "wire/requests.hpp"

namespace tenure::server {
namespace {

constexpr std::uint32_t page_max = 1000;
/// A wait of more than 30 years is one without end.
constexpr std::uint64_t timeout_ms_max = 1'000'000'000'000;

void write(const core::Lease& lease, const View& view, v1::Lease& out) {
  out.set_id(lease.id.get());
  out.set_ttl_ms(wire::milliseconds(lease.deadline - view.now));
  out.set_granted_ttl_ms(wire::milliseconds(lease.ttl));
  out.set_client(lease.client);
  out.set_address(lease.address);
  out.set_last_seen_ms(wire::milliseconds(view.now - lease.last_seen));
  out.set_create_revision(lease.create_revision.get());
  const auto& owned = view.state.locks.owned(lease.id);
  out.set_locks(owned.holds.size());
  out.set_waits(owned.waits.size());
}

template <class Record>
void write_items(const Record& record, core::FencingToken token,
                 google::protobuf::RepeatedPtrField<v1::Hanging>& out) {
  for (const auto& item : record.items) {
    auto& hanging = *out.Add();
    wire::write(item, *hanging.mutable_item());
    hanging.set_fencing_token(token.get());
    hanging.set_request_id(record.request.get());
  }
}

LockCall::Order order_of(core::Acquire acquire) {
  LockCall::Order order{.acquire = std::move(acquire)};
  if (order.acquire.request == core::RequestId{}) {
    order.acquire.request = core::RequestId(sys::random_id());
    order.has_own_id = false;
  }
  return order;
}

}  // namespace

grpc::ServerUnaryReactor* LockService::Lock(grpc::CallbackServerContext* context,
                                            const v1::LockRequest* request,
                                            v1::LockResponse* response) {
  auto acquire = wire::acquire_from(*request);
  if (!acquire) {
    return answer(*context, wire::status_of(acquire.error()));
  }
  auto order = order_of(*std::move(acquire));
  if (request->has_timeout_ms() && request->timeout_ms() < timeout_ms_max) {
    order.timeout = std::chrono::milliseconds(request->timeout_ms());
  }
  return LockCall::open(desk_, std::move(order), *response);
}

grpc::ServerUnaryReactor* LockService::TryLock(grpc::CallbackServerContext* context,
                                               const v1::TryLockRequest* request,
                                               v1::LockResponse* response) {
  auto acquire = wire::acquire_from(*request);
  if (!acquire) {
    return answer(*context, wire::status_of(acquire.error()));
  }
  return LockCall::open(desk_, order_of(*std::move(acquire)), *response);
}

grpc::ServerUnaryReactor* LockService::Unlock(grpc::CallbackServerContext* context,
                                              const v1::UnlockRequest* request,
                                              v1::UnlockResponse* response) {
  auto release = wire::release_from(*request);
  if (!release) {
    return answer(*context, wire::status_of(release.error()));
  }
  return decide<core::Released>(desk_, *context, *std::move(release), *response,
                                [](const core::Released& released, v1::UnlockResponse& out) {
                                  out.set_count_left(released.count_left);
                                });
}

grpc::ServerUnaryReactor* LockService::LeaseGrant(grpc::CallbackServerContext* context,
                                                  const v1::LeaseGrantRequest* request,
                                                  v1::LeaseGrantResponse* response) {
  auto grant = wire::grant_from(*request);
  grant.address = context->peer();
  grant.client = request->client().empty() ? grant.address : request->client();
  return decide<core::LeaseGranted>(
      desk_, *context, std::move(grant), *response,
      [](const core::LeaseGranted& lease, v1::LeaseGrantResponse& out) {
        out.set_id(lease.id.get());
        out.set_ttl_ms(wire::milliseconds(lease.ttl));
      });
}

grpc::ServerUnaryReactor* LockService::LeaseRevoke(grpc::CallbackServerContext* context,
                                                   const v1::LeaseRevokeRequest* request,
                                                   v1::LeaseRevokeResponse* response) {
  return decide<core::Done>(desk_, *context,
                            core::RevokeLease{.lease = core::LeaseId(request->id())}, *response,
                            [](const core::Done&, v1::LeaseRevokeResponse&) {});
}

grpc::ServerBidiReactor<v1::LeaseKeepAliveRequest, v1::LeaseKeepAliveResponse>*
LockService::LeaseKeepAlive(grpc::CallbackServerContext* /*context*/) {
  const auto stream = std::make_shared<KeepAliveStream>(desk_);
  stream->open();
  return stream.get();
}

grpc::ServerUnaryReactor* LockService::LeaseTimeToLive(grpc::CallbackServerContext* context,
                                                       const v1::LeaseTimeToLiveRequest* request,
                                                       v1::LeaseTimeToLiveResponse* response) {
  return look(desk_, *context, *response,
              [id = core::LeaseId(request->id()), wants_keys = request->keys()](
                  const View& view, v1::LeaseTimeToLiveResponse& out) {
                const auto* lease = view.state.leases.find(id);
                if (lease == nullptr) {
                  return wire::lease_lost(id);
                }
                write(*lease, view, *out.mutable_lease());
                const auto& owned = view.state.locks.owned(id);
                for (const auto token : wants_keys ? owned.holds : std::set<core::FencingToken>()) {
                  write_items(*view.state.locks.find(token), token, *out.mutable_held());
                }
                for (const auto ticket : wants_keys ? owned.waits : std::set<core::Revision>()) {
                  write_items(*view.state.locks.find(ticket), {}, *out.mutable_waiting());
                }
                return grpc::Status::OK;
              });
}

grpc::ServerUnaryReactor* LockService::Leases(grpc::CallbackServerContext* context,
                                              const v1::LeasesRequest* request,
                                              v1::LeasesResponse* response) {
  const auto limit = request->limit() == 0 ? page_max : std::min(request->limit(), page_max);
  return look(
      desk_, *context, *response,
      [after = core::LeaseId(request->after()), limit](const View& view, v1::LeasesResponse& out) {
        const auto& leases = view.state.leases.all();
        auto it = leases.upper_bound(after);
        for (std::uint32_t n = 0; n < limit && it != leases.end(); ++n, ++it) {
          write(it->second, view, *out.add_leases());
        }
        out.set_more(it != leases.end());
        return grpc::Status::OK;
      });
}

grpc::ServerBidiReactor<v1::WatchRequest, v1::WatchResponse>* LockService::Watch(
    grpc::CallbackServerContext* /*context*/) {
  const auto stream = std::make_shared<WatchStream>(desk_);
  stream->open();
  return stream.get();
}

grpc::ServerBidiReactor<v1::SessionRequest, v1::SessionResponse>* LockService::Session(
    grpc::CallbackServerContext* context) {
  const auto stream = std::make_shared<SessionStream>(desk_, context->peer());
  stream->open();
  return stream.get();
}

}  // namespace tenure::server
