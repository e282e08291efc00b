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

/// What is asked of the locks on all servers: leases, holds and waits. Those of one client who want
/// the same lock stand in waiters, and only the first of them asks the servers; so a client does
/// not outvote itself. All on the loop's thread.
class Locks {
 public:
  /// What the servers are, and how long an answer may take before it is `unavailable`.
  struct Options {
    const Deployment& deployment;
    std::chrono::milliseconds timeout{};
  };

  Locks(Options options, const QuorumClient::Voters& voters, QuorumClient& quorum,
        net::TimerQueue& timers, CommandEncoder commands);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  [[nodiscard]] const CommandEncoder& commands() const noexcept { return encoder_; }
  void listen(Listener* listener) noexcept { listener_ = listener; }

  void grant_lease(const LeaseRequest& request) { leases_[request.id].ttl = request.ttl; }
  void renew(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void holders(const std::string& name, Backend::Done<std::vector<Holder>> done);

  /// A message of one server's: a lock came free, or a hold was taken away.
  void handle_message(std::string_view message);
  /// Ends all waits and gives back all that is held, as far as the servers can be told.
  void end();

 private:
  /// One question for votes, and what came of it.
  struct Attempt {
    struct Slot {
      bool is_asked = false;
      bool is_refused = false;  ///< By another's vote, so there is none of ours.
      bool is_yes = false;
      bool is_recently_started = false;  ///< So its word does not count.
      std::uint64_t token = 0;
    };
    RequestKey key{};
    std::shared_ptr<const AcquireSpec> spec{};
    std::string member{};
    std::chrono::milliseconds ttl{};
    std::vector<Slot> slots{};
    std::uint64_t proposed = 0;  ///< As the token.
    std::chrono::milliseconds voted_ttl{};
    sys::BootTime valid_from{};  ///< Our votes have a whole ttl from then on at least.
    FencingToken token{};
    std::chrono::milliseconds remaining{-1};    ///< Until the first of the others' votes ends.
    std::chrono::milliseconds reported_ttl{0};  ///< The longest of theirs.
    std::optional<Error> refusal{};             ///< To ask again would not help,
    std::size_t refusals = 0;                   ///< say so many.
  };
  struct Wait {
    AcquireRequest request{};
    Backend::Done<Granted> done{};
    std::shared_ptr<Attempt> attempt{};             ///< Under way; null: none is.
    std::shared_ptr<Attempt> last{};                ///< That failed: servers may mean to wake us.
    std::uint32_t refused = 0;                      ///< Attempts that came to nothing.
    net::Backoff backoff{net::Backoff::Options{}};  ///< Delays between its attempts.
  };
  /// Those here who want, or have, the same lock.
  struct LocalQueue {
    std::deque<RequestKey> waiters{};
    std::size_t held = 0;
    bool has_attempt = false;         ///< The first of the waiters.
    std::uint64_t pause = 0;          ///< Its number; 0: no pause.
    std::size_t release_notices = 0;  ///< Deployment that said so since it began.
    bool yields_to_others = false;  ///< Somebody elsewhere waits, and we were the last to have it.
    std::optional<sys::BootTime> no_quorum_since{};  ///< No quorum since then.
  };
  struct Held {
    std::shared_ptr<const AcquireSpec> spec{};
    std::string member{};
    FencingToken token{};
    std::chrono::milliseconds ttl{};        ///< That was handle_vote for.
    bool was_refused = false;               ///< At first: servers may mean to wake us.
    std::size_t force_release_notices = 0;  ///< Deployment where an operator took it away.
  };
  struct Lease {
    std::chrono::milliseconds ttl{};
    sys::BootTime touched{};  ///< Somebody believes in a whole ttl from then on.
    absl::btree_map<RequestId, Held> holds{};
    std::vector<RequestId> waits{};
  };
  enum class Extended : std::uint8_t { yes, lost, unknown };
  struct Extension;
  struct Renewal;

  // locks.cpp: acquiring.
  [[nodiscard]] std::optional<Error> refuse_at_once(const AcquireRequest& request);
  void start_next_attempt(const std::string& name);
  void start_attempt(const RequestKey& key);
  [[nodiscard]] Verdict handle_vote(Attempt& attempt, std::size_t server,
                                    const Result<QuorumClient::Response>& answer);
  void voting_done(const std::shared_ptr<Attempt>& attempt, const VoteTally& count);
  void agree_on_token(const std::shared_ptr<Attempt>& attempt);
  void grant(const std::shared_ptr<Attempt>& attempt);
  void attempt_failed(const std::shared_ptr<Attempt>& attempt, bool is_quorum_there);
  void pause(const std::string& name, std::chrono::microseconds length);
  void end_pause(const std::string& name);
  void settle(const RequestKey& key, Result<Granted> answer);
  void withdraw_votes(const Attempt& attempt, CommandEncoder::Waits waits);
  void withdraw_wait(const Wait& wait);
  [[nodiscard]] bool is_under_way(const Attempt& attempt) const;
  [[nodiscard]] bool has_trusted_quorum(const Attempt& attempt) const;
  [[nodiscard]] bool is_in_time(const Attempt& attempt) const;
  [[nodiscard]] std::chrono::milliseconds timeout_for(std::chrono::milliseconds ttl) const;
  [[nodiscard]] std::uint64_t propose_token(sys::BootTime now) const;
  [[nodiscard]] std::string vote_command_for(std::size_t server, std::string command,
                                             std::chrono::milliseconds ttl) const;
  /// How long a server must have run to be believed.
  [[nodiscard]] std::chrono::milliseconds min_uptime_for(const Attempt& attempt) const;
  /// Which servers do not answer, and which are younger than this.
  [[nodiscard]] Error no_quorum_error(std::chrono::milliseconds age = {}) const;

  // locks_leases.cpp: having and giving back.
  void extend(const Held& held, std::chrono::milliseconds ttl, RequestId change,
              std::move_only_function<void(Extended)> done);
  void restore_vote(const Extension& extension, std::size_t server);
  void release_votes(const Held& held, CommandEncoder::Waits waits, Backend::Done<void> done);
  void hold_ended(const std::string& name);
  void hold_force_released(std::string_view member);

  const Options options_;
  const net::Backoff::Options retry_;  ///< Delays between the attempts of a wait.
  const QuorumClient::Voters& voters_;
  QuorumClient& quorum_;
  net::TimerQueue& timers_;
  const CommandEncoder encoder_;
  Listener* listener_ = nullptr;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  absl::flat_hash_map<RequestKey, Wait> waits_;
  absl::flat_hash_map<std::string, LocalQueue> queues_;
  std::uint64_t last_pause_ = 0;
  bool is_ending_ = false;
};

}  // namespace tenure::backends::redlock
