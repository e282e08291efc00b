#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <boost/asio/io_context.hpp>

#include "backends/backend.hpp"
#include "backends/redis/command_encoder.hpp"
#include "backends/redis/lease_memberships.hpp"
#include "backends/redis/router.hpp"
#include "net/backoff.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redis {

/// Locks on Redis as seen by one client: leases, holds and pending acquires. Sends commands through
/// a CommandRouter and handles their replies and the published notifications; knows nothing about
/// connections.
///
/// A waiter does not poll: the releasing script publishes a notification to the next client. Only
/// if a TTL ends without a renewal is the server asked to expire the holder
/// (schedule_expiry_check()).
///
/// State of a pending acquire
///  sent       acquire.lua is in flight            is_request_pending
///  queued     the server has queued it            is_queued
///  announced  a message reports the grant         is_announced, confirm.lua is in flight
///  granted    the grant needs a renewal or WAIT   pending_grant
///  leaving    cancelled, leave.lua is in flight   is_leaving
///
/// Runs on the loop's thread.
class Locks {
 public:
  Locks(boost::asio::io_context& loop, CommandRouter& router, CommandEncoder encoder);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  /// Encoder of the commands.
  [[nodiscard]] const CommandEncoder& encoder() const noexcept { return encoder_; }
  /// Receiver of lost leases and force-releases; null: none.
  void listen(Listener* listener) noexcept { listener_ = listener; }

  // Operations of the backend; see backends/backend.hpp.
  void grant_lease(const LeaseRequest& request, Backend::Done<void> done) {
    memberships_.add(request.id, request.ttl);
    done({});
  }
  /// at_least: never shorten the expiry; exact: set it.
  enum class Ttl : std::uint8_t { at_least, exact };
  /// Renews all memberships of some leases, with one command for each lock.
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done, Ttl ttl = Ttl::at_least);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(ReleaseRequest request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  void holders(std::string_view name, Backend::Done<std::vector<Holder>> done);

  /// Handles a notification: a request may have been granted (`g`), a hold was force-released
  /// (`t`), or an expiry is due earlier (`l`).
  void handle_message(std::string_view message);
  /// Sends the queued requests for the affected keys again. Needed after a reconnect, because
  /// notifications may have been lost, and after a failover, because the new primary may not know
  /// the requests. A request that is still queued keeps its position.
  void resend_waits(const KeyFilter& affected = {});
  /// Renews all leases after a failover, and reports those whose holds the new primary does not
  /// know.
  void verify_holds();
  /// Fails all waits and releases all holds, as far as the servers are connected.
  void end();

 private:
  /// Pending acquire.
  struct Wait {
    /// Request of the caller.
    AcquireRequest request{};
    /// Lock and member of the request.
    MemberKey member_key{};
    /// Callback of the caller.
    Backend::Done<Granted> done{};
    /// Position in the queue when the request joined it.
    std::size_t position = 0;
    /// The server has queued the request.
    bool is_queued = false;
    /// An acquire or confirm command is in flight.
    bool is_request_pending = false;
    /// A message reports the grant, and the server has not confirmed it yet.
    bool is_announced = false;
    /// Cancelled; the reply to leave.lua is due.
    bool is_leaving = false;
    /// The lease was renewed while the acquire was in flight. The server may count a shorter TTL
    /// for the grant than the client counts for the lease, so the grant is renewed before it is
    /// reported.
    bool needs_renewal = false;
    /// Grant that awaits a renewal or enough replicas before it is reported.
    std::optional<Granted> pending_grant{};
    /// Delays between attempts to acquire a barging lock, whose release is not announced.
    net::Backoff backoff{
        {.min = std::chrono::milliseconds(2), .max = std::chrono::milliseconds(50)}};
  };
  /// Lock with local waiters.
  struct WatchedLock {
    /// Number of local waiters in its queue.
    std::size_t waiting = 0;
    /// Time of the next expiry check, if one is scheduled.
    std::optional<net::TimerQueue::Clock::time_point> alarm{};
  };
  /// Renewal of several leases in progress.
  struct Renewal;

  /// The lease has a queued request for this member.
  [[nodiscard]] bool has_queued_wait(LeaseId lease, const MemberKey& member_key);
  /// The lease waits for this member and does not hold it.
  [[nodiscard]] bool is_wait_only(LeaseId lease, const MemberKey& member_key);
  /// Sends the acquire command of a request, with the TTL of its lease.
  void send_acquire(const RequestKey& key);
  void send_acquire(const RequestKey& key, Wait& wait, std::chrono::milliseconds ttl);
  /// Reply to acquire.lua or acquire_barging.lua.
  void acquire_replied(const RequestKey& key, const std::shared_ptr<const AcquireSpec>& spec,
                       const Result<Command::Response>& answer);
  /// The request has joined the queue.
  void queued(Wait& wait, const Reply& reply);
  /// Schedules the next attempt, with backoff and not later than shortly after the holder's TTL.
  void retry_barging_later(const RequestKey& key, Wait& wait, std::int64_t left_ms);
  /// Pending acquires by lease and request.
  using Waits = absl::flat_hash_map<RequestKey, Wait>;
  /// Completes a request and removes it.
  void settle(const RequestKey& key, Result<Granted> answer);
  void settle(Waits::iterator it, Result<Granted> answer);
  /// Reply to leave.lua. `is_kept`: a grant that came before the cancellation stands.
  void leave_replied(const RequestKey& key, bool is_kept, const Result<Command::Response>& answer);
  /// Removes the lease, and settles its waits as lost.
  [[nodiscard]] LeaseMemberships::Lease take_lease(LeaseId lease);
  /// Sets needs_renewal for the requests of a lease whose replies are outstanding.
  void mark_waits_for_renewal(const LeaseMemberships::Lease& lease, LeaseId id);
  /// Clears needs_renewal for the requests of this member.
  void mark_renewed(LeaseId lease, const MemberKey& member_key);
  /// Reports a grant, after a renewal and WAIT where these are needed.
  void confirm(Waits::iterator it, Granted granted);
  /// Reply to that renewal.
  void renewal_replied(const RequestKey& key, const Result<Command::Response>& answer);
  /// Releases a grant that cannot be reported any more.
  void release_grant(const Wait& wait) { release_grant(wait.request, wait.member_key.member); }
  void release_grant(const AcquireRequest& request, std::string_view member);
  /// Releases what an abandoned request received, if it received anything.
  void release_grant_if_abandoned(const AcquireRequest& request, const Reply& reply);
  /// Schedules check_expiry() after `time` plus jitter, unless an earlier check is scheduled.
  void schedule_expiry_check(std::string_view name, std::chrono::milliseconds time);
  /// Runs expire.lua, and schedules the next check by its reply.
  void check_expiry(std::string_view name);
  /// Handles a `g` message.
  void grant_announced(std::string_view member, std::string_view rest);
  /// Runs confirm.lua for an announced grant, unless a command of the request is in flight.
  void confirm_if_announced(const RequestKey& key);
  /// Reply to confirm.lua.
  void confirm_replied(const RequestKey& key, const Result<Command::Response>& answer);
  /// Reports the grant in a reply of acquire.lua or confirm.lua.
  void confirm(Waits::iterator it, const Reply& reply);
  /// Handles a `t` message.
  void hold_force_released(std::string_view member, std::string_view requests);
  /// Index of the lease within a renewal, and member.
  using Members = std::vector<std::pair<std::size_t, std::string>>;
  /// Sends the renewal of some members of one lock.
  void renew_members(const std::shared_ptr<Renewal>& renewal, const AcquireSpec& spec,
                     std::uint32_t replicas, Members members);
  /// Reply to that renewal: one digit for each member.
  void members_renewed(Renewal& renewal, const std::string& name, const Members& members,
                       const Result<Command::Response>& answer);

  /// Router of the commands to the servers.
  CommandRouter& router_;
  /// Encoder of the commands.
  const CommandEncoder encoder_;
  /// Receiver of lost leases and force-releases; null: none.
  Listener* listener_ = nullptr;
  /// Leases and their memberships.
  LeaseMemberships memberships_;
  /// Pending acquires.
  Waits waits_;
  /// Locks with local waiters or a scheduled check, by name.
  absl::flat_hash_map<std::string, WatchedLock> watched_;
  /// Timers of expiry checks and barging retries.
  net::TimerQueue timers_;
};

}  // namespace tenure::backends::redis
