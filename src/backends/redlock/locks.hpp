#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "backends/backend.hpp"
#include "backends/redlock/command_encoder.hpp"
#include "backends/redlock/quorum_client.hpp"
#include "backends/redlock/url.hpp"
#include "net/backoff.hpp"
#include "net/timer_queue.hpp"
#include "sys/boot_clock.hpp"

namespace tenure::backends::redlock {

/// Locks by majority vote as seen by one client: leases, holds and pending acquires.
///
/// Requests of one client for the same lock wait in a LocalQueue, and only the first of them asks
/// for votes, so that a client does not compete with itself. An attempt proposes a token, collects
/// votes, and wins with a majority of servers that vote in time and have run long enough; all
/// voters of a won attempt agree on its token before it is used (docs/decisions/0017). A failed
/// attempt withdraws its votes and is repeated after a jittered delay, or when a release is
/// announced.
///
/// Runs on the loop's thread.
class Locks {
 public:
  /// Parameters of the backend.
  struct Options {
    /// Servers and options of the URL.
    const Deployment& deployment;
    /// Time without a responsive quorum after which waits fail with `unavailable`.
    std::chrono::milliseconds timeout{};
  };

  Locks(Options options, const QuorumClient::Voters& voters, QuorumClient& quorum,
        net::TimerQueue& timers, CommandEncoder encoder);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  /// Encoder of the commands.
  [[nodiscard]] const CommandEncoder& encoder() const noexcept { return encoder_; }
  /// Receiver of lost leases and force-releases; null: none.
  void listen(Listener* listener) noexcept { listener_ = listener; }

  // Operations of the backend; see backends/backend.hpp.
  void grant_lease(const LeaseRequest& request, Backend::Done<void> done) {
    leases_[request.id].ttl = request.ttl;
    done({});
  }
  void renew(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void holders(const std::string& name, Backend::Done<std::vector<Holder>> done);

  /// Handles a notification of one server: a lock was released (`f`), or a hold was force-released
  /// (`t`).
  void handle_message(std::string_view message);
  /// Fails all waits and releases all holds, as far as the servers are connected.
  void end();

 private:
  /// One round of voting for a request, and its result.
  struct Attempt {
    /// State of one server in the attempt.
    struct Slot {
      /// The vote was requested, so the server may have it.
      bool is_asked = false;
      /// The server voted for another acquisition, so there is no vote to withdraw.
      bool is_refused = false;
      /// The server voted for this attempt.
      bool is_yes = false;
      /// The server may have lost an earlier vote, so its vote does not count.
      bool is_recently_started = false;
      /// Token that the server proposes.
      std::uint64_t token = 0;
    };
    /// Request of the attempt.
    RequestKey key{};
    /// Specification of the request.
    std::shared_ptr<const AcquireSpec> spec{};
    /// Member id of the acquisition.
    std::string member{};
    /// TTL of the lease when the attempt was started or last renewed.
    std::chrono::milliseconds ttl{};
    /// State by server.
    std::vector<Slot> slots{};
    /// Proposed token.
    std::uint64_t proposed = 0;
    /// TTL that the votes were requested with; part of the expected head at release.
    std::chrono::milliseconds voted_ttl{};
    /// Time from which the votes last one TTL at least: before the request was sent.
    sys::BootTime valid_from{};
    /// Token that the voters agreed on.
    FencingToken token{};
    /// Time until the first of the competing votes expires; negative: unknown.
    std::chrono::milliseconds remaining{-1};
    /// Longest TTL of the competing votes.
    std::chrono::milliseconds reported_ttl{0};
    /// Error that a retry would not change.
    std::optional<Error> refusal{};
    /// Number of servers that reported such an error.
    std::size_t refusals = 0;
  };
  /// Pending acquire.
  struct Wait {
    /// Request of the caller.
    AcquireRequest request{};
    /// Callback of the caller.
    Backend::Done<Granted> done{};
    /// Attempt in progress; null: none.
    std::shared_ptr<Attempt> attempt{};
    /// Last failed attempt; its servers may have the client on their wake lists.
    std::shared_ptr<Attempt> last{};
    /// Number of failed attempts.
    std::uint32_t refused = 0;
    /// Delays between the attempts.
    net::Backoff backoff{net::Backoff::Options{}};
  };
  /// Requests of this client for one lock.
  struct LocalQueue {
    /// Requests in order of arrival.
    std::deque<RequestKey> waiters{};
    /// Number of holds of this client.
    std::size_t held = 0;
    /// The first request has an attempt in progress.
    bool has_attempt = false;
    /// Number of the delay in progress; 0: none.
    std::uint64_t pause = 0;
    /// Number of servers that announced a release during the delay.
    std::size_t release_notices = 0;
    /// Another client waits and this client had the lock last, so the next attempt is delayed.
    bool yields_to_others = false;
    /// Time since which no quorum responds.
    std::optional<sys::BootTime> no_quorum_since{};
  };
  /// Hold of a lease.
  struct Held {
    /// Specification of the acquire request.
    std::shared_ptr<const AcquireSpec> spec{};
    /// Member id of the acquisition.
    std::string member{};
    /// Fencing token.
    FencingToken token{};
    /// TTL that the votes were requested with.
    std::chrono::milliseconds ttl{};
    /// An earlier attempt failed, so servers may have the client on their wake lists.
    bool was_refused = false;
    /// Number of servers on which an operator released the lock.
    std::size_t force_release_notices = 0;
  };
  /// Lease of this client.
  struct Lease {
    /// Current TTL.
    std::chrono::milliseconds ttl{};
    /// Last renewal: the caller counts one TTL from then.
    sys::BootTime touched{};
    /// Holds by request.
    absl::btree_map<RequestId, Held> holds{};
    /// Pending requests.
    std::vector<RequestId> waits{};
    /// Ended as soon as the pending change of the TTL has its replies.
    LeaseTracking tracking = LeaseTracking::kept;
  };
  /// Result of extending the votes of a hold. unknown: too few servers replied.
  enum class ExtendResult : std::uint8_t { yes, lost, unknown };
  /// Votes of one hold while they are extended.
  struct Extension;

  // locks.cpp: acquire.
  //
  /// Error of a request that can be rejected without a vote.
  [[nodiscard]] std::optional<Error> immediate_error(const AcquireRequest& request);
  /// Starts an attempt for the first local waiter, unless this client holds the lock.
  void start_next_attempt(const std::string& name);
  /// Requests the votes of all servers.
  void start_attempt(const RequestKey& key);
  /// Reply of one server to vote.lua or vote_plain.lua.
  [[nodiscard]] Verdict handle_vote(Attempt& attempt, std::size_t server,
                                    const Result<QuorumClient::Response>& answer);
  /// The votes are decided.
  void voting_done(const std::shared_ptr<Attempt>& attempt, const VoteTally& count);
  /// Chooses the token and writes it back where needed.
  void agree_on_token(const std::shared_ptr<Attempt>& attempt);
  /// Reports the lock as held, after a renewal of the votes if the lease was renewed in between.
  void grant(const std::shared_ptr<Attempt>& attempt);
  /// Fails the request, or schedules its next attempt.
  void attempt_failed(const std::shared_ptr<Attempt>& attempt, bool is_quorum_reachable);
  /// Delays the next attempt.
  void pause(const std::string& name, std::chrono::microseconds length);
  /// Ends the delay.
  void end_pause(const std::string& name);
  /// Completes a request and removes it.
  void settle(const RequestKey& key, Result<Granted> answer);
  /// Withdraws the votes of an attempt on all servers that may have one.
  void withdraw_votes(const Attempt& attempt, CommandEncoder::Waits waits);
  /// Withdraws the votes and wake list entries of a request.
  void withdraw_wait(const Wait& wait);
  /// The attempt belongs to a pending request.
  [[nodiscard]] bool is_current(const Attempt& attempt) const;
  /// A quorum of servers with a sufficient uptime voted for the attempt.
  [[nodiscard]] bool has_trusted_quorum(const Attempt& attempt) const;
  /// The votes are valid for a while, allowing for clock drift.
  [[nodiscard]] bool is_in_time(const Attempt& attempt) const;
  /// Timeout of a call for a lock with this TTL.
  [[nodiscard]] std::chrono::milliseconds timeout_for(std::chrono::milliseconds ttl) const;
  /// Token that all servers are likely to accept.
  [[nodiscard]] std::uint64_t propose_token(sys::BootTime now) const;
  /// Vote command with the deadline for one server.
  [[nodiscard]] std::string vote_command_for(std::size_t server, std::string command,
                                             std::chrono::milliseconds ttl) const;
  /// Uptime that a server needs for its vote to count.
  [[nodiscard]] std::chrono::milliseconds min_uptime_for(const Attempt& attempt) const;
  /// Error that lists the servers without a reply, and those with an uptime below `age`.
  [[nodiscard]] Error no_quorum_error(std::chrono::milliseconds age = {}) const;

  // leases.cpp: renew and release.
  //
  /// Extends the votes of a hold on all servers. `change`: number of the TTL change; 0: renewal.
  void extend(const Held& held, std::chrono::milliseconds ttl, RequestId change,
              std::move_only_function<void(ExtendResult)> done);
  /// Votes again on a server that lost the vote of a hold.
  void restore_vote(const Extension& extension, std::size_t server);
  /// Whether the lease still has the hold that this request began.
  [[nodiscard]] bool is_held(LeaseId lease, RequestId request) const;
  /// Forgets a lease, whose holds end at their TTL.
  void untrack(LeaseId id);
  /// Releases a hold on all servers.
  void release_votes(const Held& held, CommandEncoder::Waits waits, Backend::Done<void> done);
  /// Updates the local queue after a hold.
  void hold_ended(const std::string& name);
  /// Handles a `t` message.
  void hold_force_released(std::string_view member);

  /// Parameters of the backend.
  const Options options_;
  /// Delays between the attempts of a wait.
  const net::Backoff::Options retry_;
  /// Voting servers.
  const QuorumClient::Voters& voters_;
  /// Quorum calls to them.
  QuorumClient& quorum_;
  /// Timers of delays.
  net::TimerQueue& timers_;
  /// Encoder of the commands.
  const CommandEncoder encoder_;
  /// Receiver of lost leases and force-releases; null: none.
  Listener* listener_ = nullptr;
  /// Leases by id.
  absl::flat_hash_map<LeaseId, Lease> leases_;
  /// Pending acquires by lease and request.
  absl::flat_hash_map<RequestKey, Wait> waits_;
  /// Local queues by lock name.
  absl::flat_hash_map<std::string, LocalQueue> queues_;
  /// Number of the last delay.
  std::uint64_t last_pause_ = 0;
  /// end() was called.
  bool is_ending_ = false;
};

}  // namespace tenure::backends::redlock
