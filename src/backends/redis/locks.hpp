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

/// What is asked of the locks on a server: leases, waits and what the server tells. Waiting costs
/// nothing: who is next is told, and only when nobody renews in time does the server have to be
/// asked. All on the loop's thread.
class Locks {
 public:
  Locks(boost::asio::io_context& loop, CommandRouter& router, CommandEncoder commands);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  [[nodiscard]] const CommandEncoder& commands() const noexcept { return encoder_; }
  void listen(Listener* listener) noexcept { listener_ = listener; }

  void grant_lease(const LeaseRequest& request) { memberships_.add(request.id, request.ttl); }
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(ReleaseRequest request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  void holders(std::string_view name, Backend::Done<std::vector<Holder>> done);

  /// A message of the wake channel: that a request may be granted, that a hold was
  /// hold_force_released away, or that it is time to look.
  void handle_message(std::string_view message);
  /// We may have missed one, or the server may have forgotten us.
  void resend_waits(const KeyFilter& affected = {});
  /// Other servers may have hold_force_released the place of those that granted what we hold: who
  /// holds no more is told.
  void verify_holds();
  /// Ends all waits and gives back all that is held, as far as the server can be told.
  void end();

 private:
  struct Wait {
    AcquireRequest request{};
    MemberKey member_key{};
    Backend::Done<Granted> done{};
    std::size_t position = 0;
    bool is_queued = false;           ///< The server has said so.
    bool is_request_pending = false;  ///< A question is on its way.
    bool is_announced =
        false;                ///< A message says that it is granted; the server has to confirm it.
    bool is_leaving = false;  ///< Called off; the server is asked what became of it.
    /// Its lease was renewed while the answer was out, so what the server gave it may end before we
    /// stop believing in it: it has to be renewed there, too, before it counts.
    bool needs_renewal = false;
    /// Granted; it counts when it is renewed, or when enough replicas have it.
    std::optional<Granted> pending_grant{};
    /// Delays between the attempts to take a barging lock, whose release is not announced.
    net::Backoff backoff{
        {.min = std::chrono::milliseconds(2), .max = std::chrono::milliseconds(50)}};
  };
  /// A lock that somebody here waits for.
  struct WatchedLock {
    std::size_t waiting = 0;
    std::optional<net::TimerQueue::Clock::time_point> alarm{};  ///< The next one.
  };
  struct Renewal;

  [[nodiscard]] bool is_waited_for(LeaseId lease, const MemberKey& member_key);
  /// It holds nothing there.
  [[nodiscard]] bool is_only_a_wait(LeaseId lease, const MemberKey& member_key);
  void send_acquire(const RequestKey& key);
  void send_acquire(const RequestKey& key, Wait& wait, std::chrono::milliseconds ttl);
  void acquire_replied(const RequestKey& key, const std::shared_ptr<const AcquireSpec>& spec,
                       const Result<Command::Response>& answer);
  void queued(Wait& wait, const Reply& reply);
  void retry_barging_later(const RequestKey& key, Wait& wait, std::int64_t left_ms);
  using Waits = absl::flat_hash_map<RequestKey, Wait>;
  void settle(const RequestKey& key, Result<Granted> answer);
  void settle(Waits::iterator it, Result<Granted> answer);
  /// What the server says to one that was called off. `is_kept`: what was granted before stays.
  void leave_replied(const RequestKey& key, bool is_kept, const Result<Command::Response>& answer);
  /// Those of a lease whose answers are out: from now on it is believed in for longer.
  void mark_waits_for_renewal(const LeaseMemberships::Lease& lease, LeaseId id);
  /// What waits there was renewed.
  void mark_renewed(LeaseId lease, const MemberKey& member_key);
  /// It is granted: settles it when the server counts what we believe, and enough replicas know.
  void confirm(Waits::iterator it, Granted granted);
  void renewal_replied(const RequestKey& key, const Result<Command::Response>& answer);
  /// Gives back what was granted too late, or does not count.
  void give_back(const Wait& wait) { give_back(wait.request, wait.member_key.member); }
  void give_back(const AcquireRequest& request, std::string_view member);
  /// Nobody waits for this answer any more.
  void give_back_if_abandoned(const AcquireRequest& request, const Reply& reply);
  void schedule_expiry_check(std::string_view name, std::chrono::milliseconds time);
  void check_expiry(std::string_view name);
  void grant_announced(std::string_view member, std::string_view rest);
  void confirm_if_announced(const RequestKey& key);
  void confirm_replied(const RequestKey& key, const Result<Command::Response>& answer);
  void confirm(Waits::iterator it, const Reply& reply);
  void hold_force_released(std::string_view member, std::string_view requests);
  using Members = std::vector<std::pair<std::size_t, std::string>>;  ///< Of which lease, by index.
  enum class Ttl : std::uint8_t { at_least, exact };
  void renew(std::vector<LeaseId> leases, Ttl ttl, Backend::Done<Renewed> done);
  void renew_members(const std::shared_ptr<Renewal>& renewal, const AcquireSpec& spec,
                     std::uint32_t replicas, Members members);
  void members_renewed(Renewal& renewal, const std::string& name, const Members& members,
                       const Result<Command::Response>& answer);

  CommandRouter& router_;
  const CommandEncoder encoder_;
  Listener* listener_ = nullptr;
  LeaseMemberships memberships_;
  Waits waits_;
  absl::flat_hash_map<std::string, WatchedLock> watched_;
  net::TimerQueue timers_;
};

}  // namespace tenure::backends::redis
