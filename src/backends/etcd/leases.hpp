#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/etcd/connection.hpp"
#include "backends/fan_in.hpp"
#include "backends/rpc/message_stream.hpp"

namespace tenure::backends::etcd {

/// Leases of this client at etcd: grants, keep-alives over one stream, revocations. etcd counts
/// whole seconds with a minimum of about two, so a lease lives at etcd at least as long as here.
///
/// Not thread safe: all calls run on the event loop's thread.
class Leases {
 public:
  /// Maximum grants and revocations in flight: an overloaded etcd rejects all requests.
  static constexpr std::size_t requests_max = 64;

  using OnGranted = std::move_only_function<void(const Result<void>&)>;

  /// `lost` is called when etcd reports that a lease is gone, except for leases that were revoked
  /// or refused.
  Leases(std::shared_ptr<Connection> connection, std::function<void(LeaseId)> lost);
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;
  ~Leases() = default;

  /// Requests a lease from etcd. `done` runs when it is granted or refused.
  void grant(LeaseId id, std::chrono::milliseconds ttl, Backend::Done<void> done);
  /// Calls `on_granted` when the lease is granted, possibly at once, or with the reason why not.
  void when_granted(LeaseId id, OnGranted on_granted);
  /// Sends a keep-alive for each lease. `done` runs when every reply has arrived.
  void renew(std::vector<LeaseId> ids, Backend::Done<Renewed> done);
  /// Verifies that the lease is alive; calls `lost` if not.
  void check(LeaseId id);
  /// Revokes a lease, after a grant in flight has completed.
  void revoke(LeaseId id, Backend::Done<void> done);
  /// Forgets a lease that has ended.
  void forget(LeaseId id);

  /// Whether the lease is granted or requested, and has not ended.
  [[nodiscard]] bool has(LeaseId id) const { return leases_.contains(id); }
  [[nodiscard]] std::vector<LeaseId> all() const;
  /// Shortest TTL of the live leases; 0: there are none.
  [[nodiscard]] std::chrono::milliseconds shortest_ttl() const {
    return leases_.empty() ? std::chrono::milliseconds::zero() : shortest_ttl_;
  }
  [[nodiscard]] bool is_idle() const { return in_flight_ == 0 && requests_.empty(); }

  /// Sends the queued requests.
  void connected();
  /// Fails the renewals in flight; grants and revocations are sent again later.
  void disconnected();
  /// Fails all pending requests.
  void fail_all(const Error& why);

 private:
  /// One lease of this client.
  struct Lease {
    std::chrono::milliseconds ttl{};
    /// Callback of the grant; null afterwards.
    Backend::Done<void> done{};
    /// Callbacks of when_granted() until the grant.
    std::vector<OnGranted> waiting{};
    bool is_granted = false;
    /// Grant requested on this connection.
    bool is_asked = false;
    /// Grant requested on an earlier connection; its outcome is unknown.
    bool is_retry = false;
  };
  /// One lease of a batch of renewals.
  struct RenewalItem {
    std::shared_ptr<FanIn<Renewed>> renewal{};
    std::size_t index = 0;
  };

  /// Queues the grant or revocation of a lease.
  void enqueue_request(LeaseId id);
  /// Sends queued requests while slots are free.
  void send_next();
  /// Frees the slot of a completed request.
  void request_done();
  void send_grant(LeaseId id);
  void grant_done(LeaseId id, const grpc::Status& status, std::int64_t seconds);
  /// Completes the grant and all callbacks that wait for it.
  void complete_grant(LeaseId id, const Result<void>& result);
  void keep_alive(LeaseId id, RenewalItem item);
  /// Matches a keep-alive reply: replies for one lease arrive in request order.
  void keep_alive_done(std::int64_t number, std::int64_t seconds);
  void stream_ended(const grpc::Status& status);
  void send_revoke(LeaseId id);
  void revoke_done(LeaseId id, const grpc::Status& status);
  void enqueue_revoke(LeaseId id, Backend::Done<void> done);

  std::shared_ptr<Connection> connection_;
  std::function<void(LeaseId)> on_lost_;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  std::chrono::milliseconds shortest_ttl_{};
  /// Callbacks of pending revocations.
  absl::flat_hash_map<LeaseId, Backend::Done<void>> revokes_;
  /// Keep-alive stream of the connection; null until the first renewal needs it.
  std::shared_ptr<MessageStream<pb::LeaseKeepAliveResponse>> stream_;
  /// Keep-alives of one lease without a reply.
  struct Awaiting {
    LeaseId id{};
    std::deque<RenewalItem> items{};
  };
  /// Keep-alives without a reply, by etcd lease id.
  absl::flat_hash_map<std::int64_t, Awaiting> awaiting_reply_;
  /// Leases whose grant or revocation waits for a free slot.
  std::deque<LeaseId> requests_;
  /// Grants and revocations without a reply.
  std::size_t in_flight_ = 0;
};

}  // namespace tenure::backends::etcd
