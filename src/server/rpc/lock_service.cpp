#include "server/rpc/lock_service.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "server/auth/leases.hpp"
#include "server/rpc/keep_alive_stream.hpp"
#include "server/rpc/lock_call.hpp"
#include "server/rpc/session_stream.hpp"
#include "server/rpc/watch_stream.hpp"
#include "sys/random.hpp"
#include "wire/answers.hpp"
#include "wire/items.hpp"
#include "wire/requests.hpp"

namespace tenure::server {
namespace {

/// 10^12 ms, over 30 years: a longer timeout means no timeout.
constexpr std::uint64_t timeout_ms_max = 1'000'000'000'000;

void write(const core::Lease& lease, const View& view, v1::Lease& out) {
  out.set_id(lease.id.get());
  out.set_left_ms(wire::milliseconds(lease.deadline - view.now));
  out.set_ttl_ms(wire::milliseconds(lease.ttl));
  out.set_client(lease.client);
  out.set_address(lease.address);
  out.set_last_seen_ms(wire::milliseconds(view.now - lease.last_seen));
  out.set_create_revision(lease.create_revision.get());
  const auto& owned = view.state.locks.owned(lease.id);
  out.set_hold_count(owned.holds.size());
  out.set_wait_count(owned.waits.size());
  out.set_user(lease.user);
}

/// Writer of the readable holds and waits of one lease. Limited in visited items, readable or not,
/// which cost time on the store's thread, and in bytes: gRPC clients accept 4 MiB by default.
class AttachmentWriter {
 public:
  explicit AttachmentWriter(const auth::Access& access) : access_(access) {}

  [[nodiscard]] bool is_full() const { return items_ >= items_max || bytes_ >= bytes_max; }
  /// Adds the items of a hold, or of a wait with token 0.
  template <class Record>
  void write(const Record& record, core::FencingToken token,
             google::protobuf::RepeatedPtrField<v1::LeaseAttachment>& out) {
    for (auto it = record.items.begin(); it != record.items.end() && !is_full(); ++it) {
      ++items_;
      if (!access_.may(auth::Verb::read, it->name.view())) {
        continue;
      }
      auto& attachment = *out.Add();
      wire::write(*it, *attachment.mutable_item());
      attachment.set_fencing_token(token.get());
      attachment.set_request_id(record.request.get());
      bytes_ += attachment.ByteSizeLong();
    }
  }

 private:
  static constexpr std::size_t items_max = 10'000;
  static constexpr std::size_t bytes_max = std::size_t{1} << 20;

  const auth::Access& access_;
  std::size_t items_ = 0;
  std::size_t bytes_ = 0;
};

/// Holds, then waits.
void write_attachments(const core::LockTable::Owned& owned, const View& view,
                       const auth::Access& access, v1::LeaseTimeToLiveResponse& out) {
  AttachmentWriter writer(access);
  for (auto it = owned.holds.begin(); it != owned.holds.end() && !writer.is_full(); ++it) {
    writer.write(*view.state.locks.find(*it), *it, *out.mutable_held());
  }
  for (auto it = owned.waits.begin(); it != owned.waits.end() && !writer.is_full(); ++it) {
    writer.write(*view.state.locks.find(*it), {}, *out.mutable_waiting());
  }
}

/// A client that sends no request id cannot retry, so a grant it misses is released at once.
PendingAcquire::Request pending_of(core::Acquire acquire) {
  PendingAcquire::Request pending{.acquire = std::move(acquire)};
  if (pending.acquire.request == core::RequestId{}) {
    pending.acquire.request = core::RequestId(sys::random_id());
    pending.has_client_request_id = false;
  }
  return pending;
}

}  // namespace

void LockService::add_to(Routes& routes) {
  const std::string service = "/tenure.v1.LockService/";
  using enum auth::Permission;
  // own_lease and lock_names are checked by the handlers, which know the lease and the names.
  routes.add(service + "Lock", lock_names, *this, &LockService::lock);
  routes.add(service + "TryLock", lock_names, *this, &LockService::try_lock);
  routes.add(service + "Unlock", own_lease, *this, &LockService::unlock);
  routes.add(service + "Downgrade", own_lease, *this, &LockService::downgrade);
  routes.add(service + "LeaseGrant", lock_any_name, *this, &LockService::grant);
  routes.add(service + "LeaseRevoke", own_lease, *this, &LockService::revoke);
  routes.add(service + "LeaseKeepAlive", own_lease, stream_handler<KeepAliveStream>(context_));
  routes.add(service + "LeaseTimeToLive", own_lease, *this, &LockService::time_to_live);
  routes.add(service + "Leases", own_lease, *this, &LockService::leases);
  routes.add(service + "Watch", read_names, stream_handler<WatchStream>(context_));
  routes.add(service + "Session", per_operation, stream_handler<SessionStream>(context_));
}

void LockService::lock(const v1::LockRequest& request, const ReplyPtr<v1::LockResponse>& reply) {
  auto acquire = wire::acquire_from(request);
  if (!acquire) {
    reply->complete(wire::status_of(acquire.error()));
    return;
  }
  // The right on all names, then the ownership of the lease.
  if (reply_if_denied(reply, authorize_lock(reply->principal.get(), acquire->items)) ||
      reply_if_denied(context_, reply, acquire->lease)) {
    return;
  }
  auto pending = pending_of(*std::move(acquire));
  // No timeout: the call waits until the grant, the end of the lease or a disconnect.
  if (request.has_timeout_ms() && request.timeout_ms() < timeout_ms_max) {
    pending.timeout = std::chrono::milliseconds(request.timeout_ms());
  }
  run_lock_call(context_, std::move(pending), reply);
}

void LockService::try_lock(const v1::TryLockRequest& request,
                           const ReplyPtr<v1::LockResponse>& reply) {
  auto acquire = wire::acquire_from(request);
  if (!acquire) {
    reply->complete(wire::status_of(acquire.error()));
    return;
  }
  if (reply_if_denied(reply, authorize_lock(reply->principal.get(), acquire->items)) ||
      reply_if_denied(context_, reply, acquire->lease)) {
    return;
  }
  // Never waits, so it needs no timeout.
  run_lock_call(context_, pending_of(*std::move(acquire)), reply);
}

void LockService::unlock(const v1::UnlockRequest& request,
                         const ReplyPtr<v1::UnlockResponse>& reply) {
  auto release = wire::release_from(request);
  if (!release) {
    reply->complete(wire::status_of(release.error()));
    return;
  }
  // Releasing needs no right on the name: a user whose right was withdrawn can still release.
  if (reply_if_denied(context_, reply, release->lease)) {
    return;
  }
  propose_and_reply<core::Released>(context_, reply, *std::move(release),
                                    [](const core::Released& released, v1::UnlockResponse& out) {
                                      out.set_count_left(released.count_left);
                                    });
}

void LockService::downgrade(const v1::DowngradeRequest& request,
                            const ReplyPtr<v1::DowngradeResponse>& reply) {
  auto downgrade = wire::downgrade_from(request);
  if (!downgrade) {
    reply->complete(wire::status_of(downgrade.error()));
    return;
  }
  if (reply_if_denied(context_, reply, downgrade->lease)) {
    return;
  }
  propose_and_reply<core::Downgraded>(
      context_, reply, *std::move(downgrade),
      [](const core::Downgraded& downgraded, v1::DowngradeResponse& out) {
        out.set_mode(wire::mode_of(downgraded.mode));
      });
}

void LockService::grant(const v1::LeaseGrantRequest& request,
                        const ReplyPtr<v1::LeaseGrantResponse>& reply) {
  auto grant = wire::grant_from(request);
  grant.address = reply->peer();
  // Leases without a client name are listed by address.
  grant.client = request.client().empty() ? grant.address : request.client();
  // Last: it prefixes the client name with the authenticated user.
  bind_to_principal(reply->principal.get(), grant);
  propose_and_reply<core::LeaseGranted>(
      context_, reply, std::move(grant),
      [](const core::LeaseGranted& lease, v1::LeaseGrantResponse& out) {
        out.set_id(lease.id.get());
        out.set_ttl_ms(wire::milliseconds(lease.ttl));
      });
}

void LockService::revoke(const v1::LeaseRevokeRequest& request,
                         const ReplyPtr<v1::LeaseRevokeResponse>& reply) {
  if (reply_if_denied(context_, reply, core::LeaseId(request.id()))) {
    return;
  }
  propose_and_reply<core::Done>(context_, reply,
                                core::RevokeLease{.lease = core::LeaseId(request.id())},
                                [](const core::Done&, v1::LeaseRevokeResponse&) {});
}

void LockService::time_to_live(const v1::LeaseTimeToLiveRequest& request,
                               const ReplyPtr<v1::LeaseTimeToLiveResponse>& reply) {
  read_and_reply(context_, reply, consistency_of(request),
                 [id = core::LeaseId(request.id()), wants_keys = request.keys(),
                  access = access_of(reply->principal)](
                     const View& view, v1::LeaseTimeToLiveResponse& out) -> grpc::Status {
                   const auto* lease = view.state.leases.find(id);
                   if (lease == nullptr || !auth::is_visible(access, *lease)) {
                     return wire::lease_lost(id);
                   }
                   write(*lease, view, *out.mutable_lease());
                   // A lease can hold thousands of items, so they are listed on request only.
                   if (wants_keys) {
                     write_attachments(view.state.locks.owned(id), view, access, out);
                   }
                   return {};
                 });
}

void LockService::leases(const v1::LeasesRequest& request,
                         const ReplyPtr<v1::LeasesResponse>& reply) {
  const auto limit = page_size(request.limit());
  read_and_reply(
      context_, reply, consistency_of(request),
      [after = core::LeaseId(request.after()), limit, access = access_of(reply->principal)](
          const View& view, v1::LeasesResponse& out) -> grpc::Status {
        // Sorted by id, so the last id of a page is the position of the next one.
        const auto page = auth::visible_leases_after(view.state.leases, access, {after, limit});
        for (const auto* lease : page.leases) {
          write(*lease, view, *out.add_leases());
        }
        out.set_more(page.has_more);
        return {};
      });
}

}  // namespace tenure::server
